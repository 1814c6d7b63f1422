internal import TidemarkEngine

extension DiskState {
  /// The longest text of a lock's owner that is kept.
  private static let ownerBytes = 4096

  mutating func syncDirectory(_ path: String, _ fault: Fault?) throws(SimulatedErrno) {
    let node = try image.node(at: path)
    guard let directory = image.directories[node] else { throw .ENOTDIR }
    if fault == .powerCut { return }
    image.directories[node]?.sync()
    if directory.pending.contains(where: { $0.node == nil }) { sweep() }
  }

  func list(_ path: String) throws(SimulatedErrno) -> [String] {
    guard let directory = image.directories[try image.node(at: path)] else { throw .ENOTDIR }
    return directory.names
  }

  func kind(_ path: String) throws(SimulatedErrno) -> FileKind? {
    let node: Int
    do throws(SimulatedErrno) { node = try image.node(at: path) } catch {
      if error == .ENOENT || error == .ENOTDIR { return nil }
      throw error
    }
    return image.directories[node] == nil ? .file : .directory
  }

  /// Takes a lock.
  /// - Returns: its identifier, or the owner's text where it is taken.
  mutating func lock(
    _ path: String, owner: [UInt8], process: Int
  ) throws(SimulatedErrno) -> Result<Int, LockHeld> {
    let node: Int
    if try kind(path) == nil {
      node = try image.createFile(at: path)
    } else {
      node = try image.file(at: path)
    }
    let contents = image.files[node]?.visible ?? PagedBytes()
    if locks[node] != nil {
      return .failure(LockHeld(owner: contents.read(0..<min(contents.length, Self.ownerBytes))))
    }
    let text = Array(owner.prefix(Self.ownerBytes))
    let stamp = image.nextStamp()
    image.files[node]?.resize(to: 0, stamp: stamp)
    let next = image.nextStamp()
    image.files[node]?.write(text, at: 0, stamp: next)
    let id = nextIdentifier()
    locks[node] = HeldLock(id: id, process: process)
    return .success(id)
  }

  func holdsLock(_ id: Int, at path: String) -> Bool {
    guard let node = try? image.file(at: path) else { return false }
    return locks[node]?.id == id
  }

  mutating func unlock(_ id: Int) {
    locks = locks.filter { $0.value.id != id }
  }
}

/// Somebody has the lock.
struct LockHeld: Error, Sendable {
  var owner: [UInt8]
}
