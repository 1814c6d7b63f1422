package import TidemarkEngine

/// A disk that hands every call on to another one, but for those that it has itself: a test double
/// says only how it differs.
package protocol ForwardingDisk: FileSystem {
  var base: any FileSystem { get }
}

extension ForwardingDisk {
  package func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    try base.open(path, mode)
  }
  package func createDirectory(_ path: String) throws(FileSystemError) {
    try base.createDirectory(path)
  }
  package func syncDirectory(_ path: String) throws(FileSystemError) {
    try base.syncDirectory(path)
  }
  package func list(_ path: String) throws(FileSystemError) -> [String] { try base.list(path) }
  package func remove(_ path: String) throws(FileSystemError) { try base.remove(path) }
  package func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    try base.rename(path, to: newPath)
  }
  package func kind(_ path: String) throws(FileSystemError) -> FileKind? { try base.kind(path) }
  package func lock(
    _ path: String, owner: [UInt8]
  ) throws(FileSystemError) -> FileLockOutcome {
    try base.lock(path, owner: owner)
  }
  package func bootIdentifier() throws(FileSystemError) -> [UInt8] { try base.bootIdentifier() }
  package func freeBytes(_ path: String) -> Int? { base.freeBytes(path) }
}

/// The same for a file.
package protocol ForwardingFile: File {
  var base: any File { get }
}

extension ForwardingFile {
  package func length() throws(FileSystemError) -> Int { try base.length() }
  package func read(
    into buffer: inout MutableRawSpan, at offset: Int
  ) throws(FileSystemError) -> Int {
    try base.read(into: &buffer, at: offset)
  }
  package func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try base.write(bytes, at: offset)
  }
  package func truncate(to length: Int) throws(FileSystemError) { try base.truncate(to: length) }
  package func allocate(to length: Int) throws(FileSystemError) { try base.allocate(to: length) }
  package func sync() throws(FileSystemError) { try base.sync() }
  package func close() { base.close() }
}
