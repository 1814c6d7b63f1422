/// The lock of a file, held through `flock` and a table of this process.
///
/// The table is needed where `flock` locks for the process as a whole, as on NFS: there a
/// process would get its own lock a second time and lose it by closing either descriptor.
final class LocalFileLock: FileLock {
  /// The files whose locks this process holds.
  private static let held = Lock<Set<FileIdentity>>([])
  /// How much of an owner's text is read.
  private static let ownerBytes = 4096
  /// How often to try again when the file is replaced while it is being locked.
  private static let attempts = 16

  private let path: String
  private let identity: FileIdentity
  private let descriptor: Lock<Int32?>

  private init(_ path: String, identity: FileIdentity, descriptor: Int32) {
    self.path = path
    self.identity = identity
    self.descriptor = Lock(descriptor)
  }

  deinit { release() }

  static func acquire(
    _ path: String, owner: [UInt8]
  ) throws(SystemError) -> FileLockOutcome {
    try held.withLock { (held) throws(SystemError) in
      for _ in 0..<attempts {
        // Asked before the file is opened, since closing it might already cost the lock.
        if let identity = try SystemFiles.status(at: path)?.identity,
          held.contains(identity)
        {
          return .heldByThisProcess
        }
        if let outcome = try attempt(path, owner: owner, &held) { return outcome }
      }
      throw SystemError(number: ErrorNumber.inputOutput)
    }
  }

  /// - Returns: nil when the file was replaced meanwhile.
  private static func attempt(
    _ path: String, owner: [UInt8], _ held: inout Set<FileIdentity>
  ) throws(SystemError) -> FileLockOutcome? {
    let descriptor = try SystemFiles.openOrCreate(path)
    var isKept = false
    defer { if !isKept { SystemFiles.close(descriptor) } }
    guard try SystemFiles.lock(descriptor) else {
      return .held(owner: try readOwner(descriptor))
    }
    let identity = try SystemFiles.status(descriptor).identity
    guard try SystemFiles.status(at: path)?.identity == identity, !held.contains(identity) else {
      SystemFiles.unlock(descriptor)
      return nil
    }
    try writeOwner(owner, descriptor)
    held.insert(identity)
    isKept = true
    return .acquired(LocalFileLock(path, identity: identity, descriptor: descriptor))
  }

  var isCurrent: Bool {
    // A look that fails says nothing about the file.
    do throws(SystemError) { return try SystemFiles.status(at: path)?.identity == identity } catch {
      return true
    }
  }

  func release() {
    Self.held.withLock { held in
      descriptor.withLock { descriptor in
        guard let open = descriptor else { return }
        // Closing alone would leave the lock to a child process that was forked meanwhile.
        SystemFiles.unlock(open)
        SystemFiles.close(open)
        held.remove(identity)
        descriptor = nil
      }
    }
  }

  private static func readOwner(_ descriptor: Int32) throws(SystemError) -> [UInt8] {
    var text = [UInt8](repeating: 0, count: ownerBytes)
    let count = try text.withMutableRawSpan { (span) throws(SystemError) in
      try SystemFiles.read(descriptor, into: &span, at: 0)
    }
    return Array(text.prefix(count))
  }

  /// Writes the text over the one before, filled up with line feeds: cutting the file first takes
  /// a step of the file system's journal, for which no opening should wait.
  private static func writeOwner(_ owner: [UInt8], _ descriptor: Int32) throws(SystemError) {
    let before = try readOwner(descriptor)
    let filling = max(0, before.count - owner.count)
    let text = owner + [UInt8](repeating: UInt8(ascii: "\n"), count: filling)
    guard text != before else { return }
    do throws(SystemError) {
      var offset = 0
      while offset < text.count {
        let rest = text.rawSpan.extracting(droppingFirst: offset)
        let count = try SystemFiles.write(descriptor, rest, at: offset)
        guard count > 0 else { throw SystemError(number: ErrorNumber.inputOutput) }
        offset += count
      }
    } catch {
      // The text is a courtesy; a full disk must not keep anyone from opening the store.
      guard error.number == ErrorNumber.noSpace || error.number == ErrorNumber.quotaExceeded
      else { throw error }
    }
  }
}
