/// Files in memory, for stores that need not outlive the process.
///
/// It starts with an empty root directory; `/a`, `a` and `a/` are the same path. A file that is
/// removed stays readable for those who have it open.
package final class MemoryFileSystem: FileSystem {
  fileprivate enum Node {
    case file(MemoryFile.Content)
    case directory([String: Node])
  }

  /// Longest path, in components; it bounds the recursion.
  private static let depthLimit = 64

  private let root = Lock(Node.directory([:]))

  package init() {}

  package func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    let content = try content(.open, path, mode)
    return MemoryFile(path: path, content: content, isWritable: mode != .read)
  }

  package func createDirectory(_ path: String) throws(FileSystemError) {
    try change(.createDirectory, path) { (node) throws(SystemError) in
      guard node == nil else { throw SystemError(number: ErrorNumber.exists) }
      node = .directory([:])
    }
  }

  package func syncDirectory(_ path: String) throws(FileSystemError) {
    _ = try entries(.syncDirectory, path)
  }

  package func list(_ path: String) throws(FileSystemError) -> [String] {
    try entries(.list, path).keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  package func remove(_ path: String) throws(FileSystemError) {
    try change(.remove, path) { (node) throws(SystemError) in
      guard let found = node else { throw SystemError(number: ErrorNumber.noEntry) }
      if case .directory(let entries) = found, !entries.isEmpty {
        throw SystemError(number: ErrorNumber.directoryNotEmpty)
      }
      node = nil
    }
  }

  package func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    let node = try change(.rename, path) { (node) throws(SystemError) in
      guard case .file(let content) = node else {
        throw SystemError(number: node == nil ? ErrorNumber.noEntry : ErrorNumber.isADirectory)
      }
      return content
    }
    // The new name comes first, so that the file always has one.
    try change(.rename, newPath) { (target) throws(SystemError) in
      if case .directory = target { throw SystemError(number: ErrorNumber.isADirectory) }
      target = .file(node)
    }
    if path != newPath { try remove(path) }
  }

  package func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    do throws(FileSystemError) {
      return try change(.inspect, path) { (node) throws(SystemError) in
        switch node {
        case .file: .file
        case .directory: .directory
        case nil: nil
        }
      }
    } catch {
      if [ErrorNumber.noEntry, ErrorNumber.notADirectory].contains(error.number) { return nil }
      throw error
    }
  }

  package func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    let content = try content(.lock, path, nil)
    guard content.isLocked.raise() else { return .heldByThisProcess }
    content.bytes.withLock {
      $0.resize(to: 0)
      $0.write(owner.rawSpan, at: 0)
    }
    return .acquired(MemoryFileLock(fileSystem: self, path: path, content: content))
  }

  /// All zeros: files in memory do not outlive the machine's running.
  package func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    [UInt8](repeating: 0, count: 16)
  }

  /// - Parameter mode: how to open the file; nil creates it where it is missing.
  private func content(
    _ operation: FileSystemError.Operation, _ path: String, _ mode: FileMode?
  ) throws(FileSystemError) -> MemoryFile.Content {
    try change(operation, path) { (node) throws(SystemError) in
      switch node {
      case .some where mode == .create: throw SystemError(number: ErrorNumber.exists)
      case .directory: throw SystemError(number: ErrorNumber.isADirectory)
      case .file(let content): return content
      case nil where mode == .read || mode == .readWrite:
        throw SystemError(number: ErrorNumber.noEntry)
      case nil:
        let content = MemoryFile.Content()
        node = .file(content)
        return content
      }
    }
  }

  private func entries(
    _ operation: FileSystemError.Operation, _ path: String
  ) throws(FileSystemError) -> [String: Node] {
    try change(operation, path) { (node) throws(SystemError) in
      switch node {
      case .directory(let entries): return entries
      case .file: throw SystemError(number: ErrorNumber.notADirectory)
      case nil: throw SystemError(number: ErrorNumber.noEntry)
      }
    }
  }

  /// Calls `body` with the node at a path, nil for none, which it may look at, replace or remove.
  fileprivate func change<R>(
    _ operation: FileSystemError.Operation, _ path: String,
    _ body: (inout Node?) throws(SystemError) -> R
  ) throws(FileSystemError) -> R {
    do throws(SystemError) {
      let names = path.split(separator: "/").filter { $0 != "." }
      guard names.count <= Self.depthLimit, !names.contains("..") else {
        throw SystemError(number: ErrorNumber.invalidArgument)
      }
      return try root.withLock { (root) throws(SystemError) in
        // Only `node` holds the tree while it changes, so that its dictionaries are not copied.
        var node: Node? = root
        root = .directory([:])
        defer { root = node ?? root }
        let result = try Self.descend(&node, names[...], body)
        // The root directory cannot be removed.
        if node == nil { throw SystemError(number: ErrorNumber.invalidArgument) }
        return result
      }
    } catch { throw FileSystemError(operation, path: path, number: error.number) }
  }

  private static func descend<R>(
    _ node: inout Node?, _ names: ArraySlice<Substring>,
    _ body: (inout Node?) throws(SystemError) -> R
  ) throws(SystemError) -> R {
    guard let first = names.first else { return try body(&node) }
    switch node {
    case nil: throw SystemError(number: ErrorNumber.noEntry)
    case .file: throw SystemError(number: ErrorNumber.notADirectory)
    case .directory(var entries):
      node = nil
      defer { node = .directory(entries) }
      return try descend(&entries[String(first)], names.dropFirst(), body)
    }
  }
}

private final class MemoryFileLock: FileLock {
  private let fileSystem: MemoryFileSystem
  private let path: String
  private let content: MemoryFile.Content
  private let isReleased = AtomicSignal()

  var isCurrent: Bool {
    let found = try? fileSystem.change(.inspect, path) { (node) throws(SystemError) in
      if case .file(let found) = node { return found === content }
      return false
    }
    return found ?? false
  }

  init(fileSystem: MemoryFileSystem, path: String, content: MemoryFile.Content) {
    self.fileSystem = fileSystem
    self.path = path
    self.content = content
  }

  deinit { release() }

  func release() {
    if isReleased.raise() { content.isLocked.take() }
  }
}
