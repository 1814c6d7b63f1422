internal import TidemarkEngine

/// Looking at the disk and damaging it behind the program's back. Nothing here counts as a call,
/// fails, or needs power; what is done is durable.
extension SimulatedFileSystem {
  /// Returns the paths of all files, in byte order and without a leading slash.
  public func files() -> [String] {
    machine.withLock { $0.image.paths().map(\.path) }
  }

  /// A file's bytes as a process sees them; nil when there is no such file.
  public func contents(of path: String) -> [UInt8]? {
    file(path).map { $0.visible.read(0..<$0.visible.length) }
  }

  /// A file's bytes that no power cut can take; nil when there is no such file, or when its name
  /// or that of a directory above it is not durable.
  public func durableContents(of path: String) -> [UInt8]? {
    machine.withLock { state in
      var node = DiskImage.root
      for part in DiskImage.parts(path) {
        guard let next = state.image.directories[node]?.durable[part] else { return nil }
        node = next
      }
      return state.image.files[node].map { $0.durable.read(0..<$0.durable.length) }
    }
  }

  /// How many writes, changes of length and changes of names are not synced yet.
  public var unsyncedChanges: Int { machine.withLock { $0.image.unsyncedChanges } }

  private func file(_ path: String) -> FileNode? {
    machine.withLock { state in
      (try? state.image.file(at: path)).flatMap { state.image.files[$0] }
    }
  }

  private func corrupt(_ path: String, _ change: @Sendable (inout PagedBytes) -> Void) -> Bool {
    machine.withLock { state in
      guard let node = try? state.image.file(at: path) else { return false }
      state.image.files[node]?.corrupt(change)
      return true
    }
  }

  /// Flips one bit of a file, as damage at rest does.
  /// - Parameters:
  ///   - bit: the index of the bit, counted from the lowest bit of the first byte.
  ///   - path: the path of the file.
  /// - Returns: false when there is no such file or bit.
  @discardableResult
  public func flipBit(_ bit: Int, inFile path: String) -> Bool {
    guard let length = file(path)?.visible.length, (0..<length).contains(bit / 8), bit >= 0
    else { return false }
    return corrupt(path) { bytes in
      let place = bit / 8
      let old = bytes.read(place..<(place + 1))
      bytes.write([old[0] ^ 1 << (bit % 8)], 0..<1, at: place)
    }
  }

  /// Overwrites bytes of a file, which grows if needed. The change is durable damage, not a write
  /// of the program.
  /// - Returns: false when there is no such file or the offset is negative.
  @discardableResult
  public func overwrite(_ path: String, at offset: Int, with new: [UInt8]) -> Bool {
    guard offset >= 0, offset <= DiskImage.maximumFileBytes - new.count else { return false }
    return corrupt(path) { bytes in
      bytes.write(new, new.indices, at: offset)
      bytes.extend(to: offset + new.count)
    }
  }

  /// Truncates a file to a length, or extends it with zeros.
  /// - Returns: false when there is no such file or the length is negative.
  @discardableResult
  public func cut(_ path: String, to length: Int) -> Bool {
    guard length >= 0, length <= DiskImage.maximumFileBytes else { return false }
    return corrupt(path) { $0.setLength(length) }
  }

  /// Replaces the whole content of a file. A missing file is created in its directory.
  /// - Returns: false when there is no such directory.
  @discardableResult
  public func replace(_ path: String, with new: [UInt8]) -> Bool {
    machine.withLock { state in
      if (try? state.image.node(at: path)) == nil {
        guard let place = try? state.image.parent(of: path),
          (try? state.image.createFile(at: path)) != nil
        else { return false }
        state.image.directories[place.directory]?.sync(place.name)
      }
      guard let node = try? state.image.file(at: path) else { return false }
      state.image.files[node]?.corrupt { $0 = PagedBytes(new) }
      return true
    }
  }

  /// Removes a file from the disk.
  /// - Returns: false when there is no such file.
  @discardableResult
  public func erase(_ path: String) -> Bool {
    machine.withLock { state in
      guard (try? state.image.file(at: path)) != nil, let place = try? state.image.parent(of: path),
        (try? state.image.remove(at: path)) != nil
      else { return false }
      state.image.directories[place.directory]?.sync(place.name)
      return true
    }
  }
}
