/// The lock of a file, held through `flock` and a table of this process.
///
/// The table is needed where `flock` locks for the process as a whole, as on NFS: there a process
/// would get its own lock a second time, and closing either descriptor would end both. The table's
/// lock is held while a file is locked or released, so that it and the system agree.
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

  static func acquire(_ path: String, owner: [UInt8]) throws(SystemError) -> FileLockOutcome {
    try held.withLock { (held) throws(SystemError) in
      for _ in 0..<attempts {
        // The table is asked before the file is opened: closing that descriptor might end the lock.
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

  /// - Returns: nil when the file was replaced or removed meanwhile: try again.
  private static func attempt(
    _ path: String, owner: [UInt8], _ held: inout Set<FileIdentity>
  ) throws(SystemError) -> FileLockOutcome? {
    let descriptor = try SystemFiles.openOrCreate(path)
    var isKept = false
    defer { if !isKept { SystemFiles.close(descriptor) } }
    guard try SystemFiles.lock(descriptor) else {
      return .held(owner: try SystemFiles.head(descriptor, ownerBytes))
    }
    let identity = try SystemFiles.status(descriptor).identity
    // The lock is worth something only if the locked file is the one that others find at the path.
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
    // A failed look proves nothing, and `false` would end all writing to the store.
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

  /// Overwrites the text of the owner before, filled up with line feeds to its length: cutting the
  /// file would make every opening wait for the file system's journal.
  private static func writeOwner(_ owner: [UInt8], _ descriptor: Int32) throws(SystemError) {
    let before = try SystemFiles.head(descriptor, ownerBytes)
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
      // The text is for people only; a full disk must not keep anyone from opening the store.
      guard error.number == ErrorNumber.noSpace || error.number == ErrorNumber.quotaExceeded
      else { throw error }
    }
  }
}
