/// The file system of one store, which closes the store's files when these are let go of, whoever
/// holds them.
///
/// Calls on an open file go to that file alone. Files of a former opening stay closed.
final class ClosableFileSystem: FileSystem {
  /// The file system beneath, which is never closed.
  let base: any FileSystem
  private let state = Lock(State())

  private struct State {
    var isClosed = false
    /// The directory beneath which no file can be written, while those at work clear up behind
    /// themselves.
    var readOnlyRoot: String?
    var files: [ObjectIdentifier: OpenFile] = [:]
    /// How many files there may be until those that nobody holds any more are forgotten.
    var room = 64

    func mayWrite(_ path: String) -> Bool {
      !isClosed && !(readOnlyRoot.map { path.hasPrefix($0) } ?? false)
    }

    mutating func note(_ file: any File, _ path: String, _ mode: FileMode) {
      if files.count >= room {
        files = files.filter { $0.value.file != nil }
        room = max(64, 2 * files.count)
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

  /// Closes the files that are open for writing, so that whoever writes for long ends soon, and
  /// opens no more of them.
  /// - Parameter root: the directory where that holds.
  func stopWriting(beneath root: String) {
    let root = root + "/"
    close { state in
      state.readOnlyRoot = root
      return state.files.values.filter { $0.mode != .read && $0.path.hasPrefix(root) }
    }
  }

  /// Closes all files and refuses everything.
  func close() {
    close { state in
      state.isClosed = true
      defer { state.files = [:] }
      return Array(state.files.values)
    }
  }

  /// Lets calls through again.
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
    try check(.open, path)
    let file = try base.open(path, mode)
    let isRefused = state.withLock { state in
      guard mode == .read ? !state.isClosed : state.mayWrite(path) else { return true }
      state.note(file, path, mode)
      return false
    }
    guard isRefused else { return file }
    // The store was let go of meanwhile.
    file.close()
    if mode == .create { try? base.remove(path) }
    throw FileSystemError(.open, path: path, number: ErrorNumber.suspended)
  }

  /// Makes sure that calls are let through.
  private func check(
    _ operation: FileSystemError.Operation, _ path: String
  ) throws(FileSystemError) {
    guard state.withLock({ $0.isClosed }) else { return }
    throw FileSystemError(operation, path: path, number: ErrorNumber.suspended)
  }

  func createDirectory(_ path: String) throws(FileSystemError) {
    try check(.createDirectory, path)
    try base.createDirectory(path)
  }

  func syncDirectory(_ path: String) throws(FileSystemError) {
    try check(.syncDirectory, path)
    try base.syncDirectory(path)
  }

  func list(_ path: String) throws(FileSystemError) -> [String] {
    try check(.list, path)
    return try base.list(path)
  }

  func remove(_ path: String) throws(FileSystemError) {
    try check(.remove, path)
    try base.remove(path)
  }

  func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    try check(.rename, path)
    try base.rename(path, to: newPath)
  }

  func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    try check(.inspect, path)
    return try base.kind(path)
  }

  func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    try check(.lock, path)
    return try base.lock(path, owner: owner)
  }

  func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    try check(.bootIdentifier, "")
    return try base.bootIdentifier()
  }

  func freeBytes(_ path: String) -> Int? { base.freeBytes(path) }
}
