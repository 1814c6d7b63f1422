/// The file system of one store. Every file of the store is opened through it, so that suspending
/// the store closes them all (closing it only those open for writing), whoever still holds one.
///
/// Calls on an open file go to that file alone. What is closed stays so after ``reopen()``.
final class ClosableFileSystem: FileSystem {
  /// The file system beneath, which is never closed.
  let base: any FileSystem
  private let state = Lock(State())

  private struct State {
    var isClosed = false
    /// The directory beneath which no file can be opened for writing; nil where none is. Files can
    /// still be removed there: a compaction that is broken off takes its output away.
    var readOnlyRoot: String?
    var files: [ObjectIdentifier: OpenFile] = [:]
    /// At this many entries, `files` forgets those whose file nobody holds any more.
    var pruneCount = 64

    func mayWrite(_ path: String) -> Bool {
      !isClosed && !(readOnlyRoot.map { path.hasPrefix($0) } ?? false)
    }

    mutating func register(_ file: any File, _ path: String, _ mode: FileMode) {
      if files.count >= pruneCount {
        files = files.filter { $0.value.file != nil }
        pruneCount = max(64, 2 * files.count)
      }
      files[ObjectIdentifier(file)] = OpenFile(file: file, path: path, mode: mode)
    }
  }

  private struct OpenFile {
    weak var file: (any File)?
    let path: String
    let mode: FileMode
  }

  init(_ base: any FileSystem) { self.base = base }

  /// Closes the files that are open for writing and refuses to open more: a long rewrite, such as a
  /// compaction, fails at its next write instead of being waited for to its end.
  /// - Parameter root: only files beneath this directory; a backup elsewhere goes on.
  func stopWriting(beneath root: String) {
    let root = root + "/"
    close { state in
      state.readOnlyRoot = root
      return state.files.values.filter { $0.mode != .read && $0.path.hasPrefix(root) }
    }
  }

  /// Closes all files; every call but ``freeBytes(_:)`` then throws `ErrorNumber.suspended`.
  func close() {
    close { state in
      state.isClosed = true
      defer { state.files = [:] }
      return Array(state.files.values)
    }
  }

  /// Lets calls through again. Files that were closed stay so.
  func reopen() {
    state.withLock { state in
      state.isClosed = false
      state.readOnlyRoot = nil
    }
  }

  /// Whether files at a path may be opened for writing.
  func mayWrite(_ path: String) -> Bool { state.withLock { $0.mayWrite(path) } }

  private func close(_ choose: (inout State) -> [OpenFile]) {
    for file in state.withLock(choose) { file.file?.close() }
  }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    let file = try opened(for: .open, path).open(path, mode)
    let isRefused = state.withLock { state in
      guard mode == .read ? !state.isClosed : state.mayWrite(path) else { return true }
      state.register(file, path, mode)
      return false
    }
    guard isRefused else { return file }
    // `close()` or `stopWriting` ran before the file was in `files`, so neither has closed it. A
    // file that was created is taken away as far as that is possible.
    file.close()
    if mode == .create { try? base.remove(path) }
    throw FileSystemError(.open, path: path, number: ErrorNumber.suspended)
  }

  /// The wrapped file system, to which an operation is forwarded.
  /// - Throws: `ErrorNumber.suspended` while this one is closed.
  private func opened(
    for operation: FileSystemError.Operation, _ path: String
  ) throws(FileSystemError) -> any FileSystem {
    guard state.withLock({ $0.isClosed }) else { return base }
    throw FileSystemError(operation, path: path, number: ErrorNumber.suspended)
  }

  func createDirectory(_ path: String) throws(FileSystemError) {
    try opened(for: .createDirectory, path).createDirectory(path)
  }

  func syncDirectory(_ path: String) throws(FileSystemError) {
    try opened(for: .syncDirectory, path).syncDirectory(path)
  }

  func list(_ path: String) throws(FileSystemError) -> [String] {
    try opened(for: .list, path).list(path)
  }

  func remove(_ path: String) throws(FileSystemError) {
    try opened(for: .remove, path).remove(path)
  }

  func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    try opened(for: .rename, path).rename(path, to: newPath)
  }

  func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    try opened(for: .inspect, path).kind(path)
  }

  func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    try opened(for: .lock, path).lock(path, owner: owner)
  }

  func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    try opened(for: .bootIdentifier, "").bootIdentifier()
  }

  func freeBytes(_ path: String) -> Int? { base.freeBytes(path) }
}
