internal import TidemarkEngine

extension DiskState {
  /// An open file, or `EBADF`.
  func handle(_ id: Int) throws(SimulatedErrno) -> Handle {
    guard let handle = handles[id] else { throw .EBADF }
    return handle
  }

  mutating func open(_ path: String, _ mode: FileMode, process: Int) throws(SimulatedErrno) -> Int {
    if let maximumOpenFiles,
      handles.values.count(where: { $0.process == process })
        >= maximumOpenFiles
    {
      throw .EMFILE
    }
    let node: Int
    if mode == .create {
      node = try image.createFile(at: path)
    } else {
      node = try image.file(at: path)
    }
    let id = nextIdentifier()
    handles[id] = Handle(
      node: node, path: path, isWritable: mode != .read, process: process)
    return id
  }

  mutating func close(_ id: Int) {
    guard let handle = handles.removeValue(forKey: id) else { return }
    mix(SimulatedCall(.close, handle.path).fingerprint)
    sweep()
  }

  func length(_ id: Int) throws(SimulatedErrno) -> Int {
    image.files[try handle(id).node]?.visible.length ?? 0
  }

  mutating func read(
    _ id: Int, _ count: Int, at offset: Int, _ fault: Fault?
  ) throws(SimulatedErrno) -> [UInt8] {
    guard offset >= 0 else { throw .EINVAL }
    guard let file = image.files[try handle(id).node] else { throw .EBADF }
    guard offset < file.visible.length else { return [] }
    var end = min(offset + count, file.visible.length)
    if fault == .shortTransfer, end - offset > 1 {
      end = offset + generator.int(in: 1..<(end - offset))
      counts.add(.shortTransfer)
    }
    let right = file.visible.read(offset..<end)
    var bytes = right
    switch fault {
    case .bitFlipOnRead:
      let bit = generator.int(below: bytes.count * 8)
      bytes[bit / 8] ^= 1 << (bit % 8)
    case .misdirectedRead:
      let elsewhere = otherOffset(offset, in: file.visible.length)
      bytes = file.visible.read(elsewhere..<(elsewhere + bytes.count))
    case .staleRead: bytes = file.previous.read(offset..<end)
    default: break
    }
    // A fault that changed nothing is none.
    if let fault, bytes != right { counts.add(fault.kind) }
    mix(UInt64(bytes.count))
    return bytes
  }

  mutating func write(
    _ id: Int, _ all: [UInt8], at offset: Int, _ fault: Fault?
  ) throws(SimulatedErrno) -> Int {
    let handle = try handle(id)
    guard handle.isWritable else { throw .EBADF }
    guard offset >= 0 else { throw .EINVAL }
    guard !all.isEmpty else { return 0 }
    guard offset <= DiskImage.maximumFileBytes - all.count else { throw .EFBIG }
    var bytes = all
    if let free = freePages {
      let range = offset..<(offset + all.count)
      let fitting = image.files[handle.node]?.visible.fitting(range, free: free) ?? 0
      if fitting < all.count { counts.add(.diskFull) }
      guard fitting > 0 else { throw .ENOSPC }
      bytes = Array(bytes.prefix(fitting))
    }
    if fault == .shortTransfer, bytes.count > 1 {
      bytes = Array(bytes.prefix(generator.int(in: 1..<bytes.count)))
      counts.add(.shortTransfer)
    }
    if fault == .processKill { bytes = Array(bytes.prefix(generator.int(below: bytes.count + 1))) }
    mix(bytes.fingerprint)
    store(bytes, at: offset, in: handle.node, fault)
    return bytes.count
  }

  private mutating func store(_ bytes: [UInt8], at offset: Int, in node: Int, _ fault: Fault?) {
    let length = image.files[node]?.visible.length ?? 0
    let stamp = image.nextStamp()
    switch fault {
    case .bitFlipOnWrite:
      counts.add(.bitFlipOnWrite)
      var wrong = bytes
      let bit = generator.int(below: bytes.count * 8)
      wrong[bit / 8] ^= 1 << (bit % 8)
      image.files[node]?.write(wrong, at: offset, stamp: stamp)
    case .misdirectedWrite:
      counts.add(.misdirectedWrite)
      let elsewhere = otherOffset(offset, in: length)
      image.files[node]?.write(bytes, at: elsewhere, stamp: stamp)
      extend(node, to: offset + bytes.count, from: length)
    case .lostWrite:
      counts.add(.lostWrite)
      extend(node, to: offset + bytes.count, from: length)
    case .writebackFailure:
      counts.add(.writebackFailure)
      image.files[node]?.write(bytes, at: offset, stamp: stamp, lost: true)
    default:
      image.files[node]?.write(bytes, at: offset, stamp: stamp)
    }
  }

  /// Gives a file the length that a write which went elsewhere would have given it.
  private mutating func extend(_ node: Int, to end: Int, from length: Int) {
    guard end > image.files[node]?.visible.length ?? end else { return }
    let stamp = image.nextStamp()
    image.files[node]?.resize(to: end, stamp: stamp)
  }

  /// An offset in another sector, the same within the sector.
  private mutating func otherOffset(_ offset: Int, in length: Int) -> Int {
    let sector = offset / FileNode.sectorBytes
    let sectors = max(2, (length + FileNode.sectorBytes - 1) / FileNode.sectorBytes)
    let other = (sector + 1 + generator.int(below: sectors - 1)) % sectors
    return other * FileNode.sectorBytes + offset % FileNode.sectorBytes
  }

  mutating func truncate(_ id: Int, to length: Int) throws(SimulatedErrno) {
    let handle = try handle(id)
    guard handle.isWritable else { throw .EBADF }
    guard length >= 0 else { throw .EINVAL }
    guard length <= DiskImage.maximumFileBytes else { throw .EFBIG }
    let stamp = image.nextStamp()
    image.files[handle.node]?.resize(to: length, stamp: stamp)
  }

  mutating func allocate(_ id: Int, to length: Int) throws(SimulatedErrno) {
    let handle = try handle(id)
    guard handle.isWritable else { throw .EBADF }
    guard length >= 0 else { throw .EINVAL }
    guard length <= DiskImage.maximumFileBytes else { throw .EFBIG }
    let missing = image.files[handle.node]?.visible.missingPages(to: length) ?? 0
    if let free = freePages, missing > free {
      counts.add(.diskFull)
      throw .ENOSPC
    }
    let stamp = image.nextStamp()
    image.files[handle.node]?.reserve(to: length, stamp: stamp)
  }

  mutating func sync(_ id: Int, _ fault: Fault?) throws(SimulatedErrno) {
    let node = try handle(id).node
    // A cut in the middle of a sync leaves what the survival of un-synced changes says.
    if fault == .powerCut { return }
    if image.files[node]?.owesError == true {
      image.files[node]?.leaveClean()
      throw .EIO
    }
    switch fault {
    case .syncLeavesPagesClean:
      counts.add(.syncLeavesPagesClean)
      image.files[node]?.leaveClean()
      throw .EIO
    case .syncRevertsPages:
      counts.add(.syncRevertsPages)
      image.files[node]?.revert()
      throw .EIO
    case .syncFailsLate:
      counts.add(.syncFailsLate)
      image.files[node]?.syncLater()
    default: image.files[node]?.sync()
    }
  }
}
