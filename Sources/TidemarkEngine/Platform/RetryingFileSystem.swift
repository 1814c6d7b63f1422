/// Makes calls again that a signal has interrupted, so that nothing above needs to know `EINTR`.
///
/// The real file system does so at every system call; this does it for those that users bring.
struct RetryingFileSystem: FileSystem {
  private let base: any FileSystem

  /// A file system that sees to interruptions: the given one if it does so itself.
  static func covering(_ base: any FileSystem) -> any FileSystem {
    base is LocalFileSystem || base is RetryingFileSystem || base is ClosableFileSystem
      ? base : RetryingFileSystem(base: base)
  }

  private init(base: any FileSystem) { self.base = base }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    RetryingFile(
      try retrying { () throws(FileSystemError) in try base.open(path, mode) })
  }

  func createDirectory(_ path: String) throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.createDirectory(path) }
  }

  func syncDirectory(_ path: String) throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.syncDirectory(path) }
  }

  func list(_ path: String) throws(FileSystemError) -> [String] {
    try retrying { () throws(FileSystemError) in try base.list(path) }
  }

  func remove(_ path: String) throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.remove(path) }
  }

  func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.rename(path, to: newPath) }
  }

  func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    try retrying { () throws(FileSystemError) in try base.kind(path) }
  }

  func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    try retrying { () throws(FileSystemError) in try base.lock(path, owner: owner) }
  }

  func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    try retrying { () throws(FileSystemError) in try base.bootIdentifier() }
  }

  func freeBytes(_ path: String) -> Int? { base.freeBytes(path) }
}

/// A file whose calls are made again after an interruption.
private final class RetryingFile: File {
  private let base: any File

  init(_ base: any File) { self.base = base }

  func length() throws(FileSystemError) -> Int {
    try retrying { () throws(FileSystemError) in try base.length() }
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    var left = Limits.interruptions
    while true {
      do { return try base.read(into: &buffer, at: offset) } catch {
        guard error.number == ErrorNumber.interrupted, left > 0 else { throw error }
        left -= 1
      }
    }
  }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    var left = Limits.interruptions
    while true {
      do { return try base.write(bytes, at: offset) } catch {
        guard error.number == ErrorNumber.interrupted, left > 0 else { throw error }
        left -= 1
      }
    }
  }

  func truncate(to length: Int) throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.truncate(to: length) }
  }

  func allocate(to length: Int) throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.allocate(to: length) }
  }

  func sync() throws(FileSystemError) {
    try retrying { () throws(FileSystemError) in try base.sync() }
  }

  func close() { base.close() }
}

/// Calls until no signal interrupts; one that never ceases is an error after all.
private func retrying<R>(_ call: () throws(FileSystemError) -> R) throws(FileSystemError) -> R {
  var left = Limits.interruptions
  while true {
    do { return try call() } catch {
      guard error.number == ErrorNumber.interrupted, left > 0 else { throw error }
      left -= 1
    }
  }
}
