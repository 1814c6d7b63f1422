/// An open file of a ``MemoryFileSystem``; each opening has an object of its own.
final class MemoryFile: File {
  /// The content, shared by all openings of a file; it outlives the file's name.
  final class Content: Sendable {
    let bytes = Lock(MemoryBytes())
    /// Raised while somebody has the file's lock.
    let isLocked = AtomicSignal()
  }

  let content: Content
  private let path: String
  private let isWritable: Bool
  private let isClosed = AtomicFlag()

  init(path: String, content: Content, isWritable: Bool) {
    self.path = path
    self.content = content
    self.isWritable = isWritable
  }

  func length() throws(FileSystemError) -> Int {
    try check(.length)
    return content.bytes.withLock { $0.length }
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try check(.read, end: offset, limit: .max)
    return content.bytes.withLock { $0.read(into: &buffer, at: offset) }
  }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try check(.write, end: offset, limit: MemoryBytes.limit - bytes.byteCount)
    content.bytes.withLock { $0.write(bytes, at: offset) }
    return bytes.byteCount
  }

  func truncate(to length: Int) throws(FileSystemError) {
    try check(.truncate, end: length)
    content.bytes.withLock { $0.resize(to: length) }
  }

  func allocate(to length: Int) throws(FileSystemError) {
    try check(.allocate, end: length)
    content.bytes.withLock { if $0.length < length { $0.resize(to: length) } }
  }

  func sync() throws(FileSystemError) { try check(.sync) }
  func close() { isClosed.isSet = true }

  /// - Parameter end: the length or offset that the call asks for.
  private func check(
    _ operation: FileSystemError.Operation, end: Int = 0, limit: Int = MemoryBytes.limit
  ) throws(FileSystemError) {
    let isRead = operation == .read || operation == .length || operation == .sync
    let number: Int32? =
      if isClosed.isSet || !(isRead || isWritable) {
        ErrorNumber.badDescriptor
      } else if end < 0 {
        ErrorNumber.invalidArgument
      } else if end > limit {
        ErrorNumber.fileTooLarge
      } else {
        nil
      }
    if let number { throw FileSystemError(operation, path: path, number: number) }
  }
}
