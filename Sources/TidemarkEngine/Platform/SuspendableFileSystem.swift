/// Lets go of all open files for a while, for programs that are put to sleep.
///
/// An open file stays with its holder: its next call after ``resume()`` opens it again. While it is
/// suspended everything fails with ``ErrorNumber/suspended``.
final class SuspendableFileSystem: FileSystem {
  /// The file system beneath, which is never suspended.
  let base: any FileSystem
  private let state = Lock(State())

  private struct State {
    var isSuspended = false
    /// Set before `isSuspended`, while those at work clear up behind themselves.
    var refusesGrowth = false
    /// Where alone that holds; nil for everywhere.
    var refusedRoot: String?
    /// Files of earlier rounds are not opened again.
    var round = 0
    var files: [ObjectIdentifier: Reference] = [:]
  }

  private struct Reference {
    weak var file: SuspendableFile?
  }

  init(_ base: any FileSystem) { self.base = base }

  /// Refuses to write or to allocate, so that whoever does so for long ends soon.
  /// - Parameter root: the directory where that holds; nil for everywhere.
  func refuseGrowth(beneath root: String? = nil) {
    state.withLock { state in
      state.refusesGrowth = true
      state.refusedRoot = root
    }
  }

  /// Closes all files and refuses everything. A call that is under way ends first.
  func suspend() {
    let files = state.withLock { state in
      state.isSuspended = true
      state.refusesGrowth = false
      return state.files.values.compactMap(\.file)
    }
    for file in files { file.suspend() }
  }

  /// Lets calls through again.
  func resume() { state.withLock { $0.isSuspended = false } }

  /// Gives up the files that are known now: what is at their paths may be something else.
  func disown() { state.withLock { $0.round += 1 } }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    let file = SuspendableFile(
      path: path, mode: mode == .create ? .readWrite : mode, owner: self,
      round: try round(.open, path))
    // A file is known before it is open, so that a suspension which comes meanwhile closes it.
    state.withLock { $0.files[ObjectIdentifier(file)] = Reference(file: file) }
    try file.open(mode)
    return file
  }

  /// Opens a file that is known, also again after ``suspend()`` has closed it.
  fileprivate func openKnown(
    _ path: String, _ mode: FileMode, round: Int, for operation: FileSystemError.Operation
  ) throws(FileSystemError) -> any File {
    guard try self.round(operation, path) == round else {
      // One that was never open was not given up, either.
      let number = operation == .open ? ErrorNumber.suspended : ErrorNumber.badDescriptor
      throw FileSystemError(operation, path: path, number: number)
    }
    return try base.open(path, mode)
  }

  fileprivate func forget(_ file: ObjectIdentifier) {
    state.withLock { $0.files[file] = nil }
  }

  /// Makes sure that files may grow.
  func checkGrowth(
    _ operation: FileSystemError.Operation, _ path: String
  ) throws(FileSystemError) {
    let isRefused = state.withLock { state in
      state.refusesGrowth && (state.refusedRoot.map { path.hasPrefix($0 + "/") } ?? true)
    }
    guard isRefused else { return }
    throw FileSystemError(operation, path: path, number: ErrorNumber.suspended)
  }

  /// Makes sure that calls are let through.
  @discardableResult
  fileprivate func round(
    _ operation: FileSystemError.Operation, _ path: String
  ) throws(FileSystemError) -> Int {
    try state.withLock { (state: inout State) throws(FileSystemError) in
      guard !state.isSuspended else {
        throw FileSystemError(operation, path: path, number: ErrorNumber.suspended)
      }
      return state.round
    }
  }

  func createDirectory(_ path: String) throws(FileSystemError) {
    try round(.createDirectory, path)
    try base.createDirectory(path)
  }

  func syncDirectory(_ path: String) throws(FileSystemError) {
    try round(.syncDirectory, path)
    try base.syncDirectory(path)
  }

  func list(_ path: String) throws(FileSystemError) -> [String] {
    try round(.list, path)
    return try base.list(path)
  }

  func remove(_ path: String) throws(FileSystemError) {
    try round(.remove, path)
    try base.remove(path)
  }

  func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    try round(.rename, path)
    try base.rename(path, to: newPath)
  }

  func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    try round(.inspect, path)
    return try base.kind(path)
  }

  func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    try round(.lock, path)
    return try base.lock(path, owner: owner)
  }

  func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    try round(.bootIdentifier, "")
    return try base.bootIdentifier()
  }

  func freeBytes(_ path: String) -> Int? { base.freeBytes(path) }
}

/// A file that is closed while its file system is suspended, and opened again by its next call.
private final class SuspendableFile: File {
  private let path: String
  private let mode: FileMode
  private let owner: SuspendableFileSystem
  private let round: Int
  private let state = Lock(State())

  private struct State {
    /// Nil until it is opened, while suspended, and until the first call after that.
    var file: (any File)?
    var isClosed = false
  }

  init(path: String, mode: FileMode, owner: SuspendableFileSystem, round: Int) {
    self.path = path
    self.mode = mode
    self.owner = owner
    self.round = round
  }

  deinit { owner.forget(ObjectIdentifier(self)) }

  /// Opens it for the first time.
  func open(_ mode: FileMode) throws(FileSystemError) {
    try state.withLock { (state: inout State) throws(FileSystemError) in
      state.file = try owner.openKnown(path, mode, round: round, for: .open)
    }
  }

  func suspend() {
    state.withLock { state in
      state.file?.close()
      state.file = nil
    }
  }

  func length() throws(FileSystemError) -> Int {
    try use(.length) { (file) throws(FileSystemError) in try file.length() }
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    while true {
      let base = try file(.read)
      do { return try base.read(into: &buffer, at: offset) } catch {
        // Once the store is resumed there is another file to read from.
        guard wasTaken(base, error) else { throw error }
      }
    }
  }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try owner.checkGrowth(.write, path)
    let base = try file(.write)
    do { return try base.write(bytes, at: offset) } catch { throw told(error, by: base) }
  }

  func truncate(to length: Int) throws(FileSystemError) {
    try use(.truncate) { (file) throws(FileSystemError) in try file.truncate(to: length) }
  }

  func allocate(to length: Int) throws(FileSystemError) {
    try owner.checkGrowth(.allocate, path)
    try use(.allocate) { (file) throws(FileSystemError) in try file.allocate(to: length) }
  }

  func sync() throws(FileSystemError) {
    try use(.sync) { (file) throws(FileSystemError) in try file.sync() }
  }

  func close() {
    state.withLock { state in
      state.isClosed = true
      state.file?.close()
      state.file = nil
    }
  }

  private func use<R>(
    _ operation: FileSystemError.Operation, _ body: (any File) throws(FileSystemError) -> R
  ) throws(FileSystemError) -> R {
    let base = try file(operation)
    do { return try body(base) } catch { throw told(error, by: base) }
  }

  private func file(
    _ operation: FileSystemError.Operation
  ) throws(FileSystemError) -> any File {
    try state.withLock { (state: inout State) throws(FileSystemError) in
      if let file = state.file { return file }
      guard !state.isClosed else {
        throw FileSystemError(operation, path: path, number: ErrorNumber.badDescriptor)
      }
      let file = try owner.openKnown(path, mode, round: round, for: operation)
      state.file = file
      return file
    }
  }

  /// Whether a call failed because suspending closed the file under it.
  private func wasTaken(_ base: any File, _ error: FileSystemError) -> Bool {
    guard error.number == ErrorNumber.badDescriptor else { return false }
    return state.withLock { !$0.isClosed && $0.file !== base }
  }

  /// The error of a call, in the terms of who suspended the store under it.
  private func told(_ error: FileSystemError, by base: any File) -> FileSystemError {
    guard wasTaken(base, error) else { return error }
    return FileSystemError(error.operation, path: path, number: ErrorNumber.suspended)
  }
}
