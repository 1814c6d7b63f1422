import Synchronization
import Tidemark

/// A disk in memory whose syncs can be held up.
final class HeldDisk: FileSystem {
  private let memory = MemoryFileSystem()
  let isHeld = Atomic(false)

  func hold() { isHeld.store(true, ordering: .sequentiallyConsistent) }
  func letGo() { isHeld.store(false, ordering: .sequentiallyConsistent) }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    HeldFile(try memory.open(path, mode), self)
  }
  func createDirectory(_ path: String) throws(FileSystemError) {
    try memory.createDirectory(path)
  }
  func syncDirectory(_ path: String) throws(FileSystemError) { try memory.syncDirectory(path) }
  func list(_ path: String) throws(FileSystemError) -> [String] { try memory.list(path) }
  func remove(_ path: String) throws(FileSystemError) { try memory.remove(path) }
  func kind(_ path: String) throws(FileSystemError) -> FileKind? { try memory.kind(path) }
  func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    try memory.lock(path, owner: owner)
  }
  func bootIdentifier() throws(FileSystemError) -> [UInt8] { try memory.bootIdentifier() }
}

private final class HeldFile: File {
  private let file: any File
  private let disk: HeldDisk

  init(_ file: any File, _ disk: HeldDisk) {
    self.file = file
    self.disk = disk
  }

  func length() throws(FileSystemError) -> Int { try file.length() }
  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try file.read(into: &buffer, at: offset)
  }
  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try file.write(bytes, at: offset)
  }
  func truncate(to length: Int) throws(FileSystemError) { try file.truncate(to: length) }
  func allocate(to length: Int) throws(FileSystemError) { try file.allocate(to: length) }
  func sync() throws(FileSystemError) {
    while disk.isHeld.load(ordering: .sequentiallyConsistent) {}
    try file.sync()
  }
  func close() { file.close() }
}
