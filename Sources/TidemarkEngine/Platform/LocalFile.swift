/// A file of the operating system.
///
/// ``close()`` only makes further calls fail; the descriptor is closed in `deinit`, with the last
/// reference to the object. A call that runs holds a reference, so it never uses a descriptor that
/// the system has meanwhile given to another file, and reads need no count of their own.
final class LocalFile: File {
  private let path: String
  private let descriptor: Int32
  private let isClosed = AtomicFlag()

  init(path: String, descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit { SystemFiles.close(descriptor) }

  func length() throws(FileSystemError) -> Int {
    try use(.length) { (descriptor) throws(SystemError) in
      try SystemFiles.status(descriptor).length
    }
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try use(.read) { (descriptor) throws(SystemError) in
      try SystemFiles.read(descriptor, into: &buffer, at: offset)
    }
  }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    try use(.write) { (descriptor) throws(SystemError) in
      try SystemFiles.write(descriptor, bytes, at: offset)
    }
  }

  func truncate(to length: Int) throws(FileSystemError) {
    try use(.truncate) { (descriptor) throws(SystemError) in
      try SystemFiles.truncate(descriptor, to: length)
    }
  }

  func allocate(to length: Int) throws(FileSystemError) {
    try use(.allocate) { (descriptor) throws(SystemError) in
      try SystemFiles.allocate(descriptor, to: length)
    }
  }

  func sync() throws(FileSystemError) {
    try use(.sync) { (descriptor) throws(SystemError) in try SystemFiles.sync(descriptor) }
  }

  func writeBack() throws(FileSystemError) {
    try use(.sync) { (descriptor) throws(SystemError) in try SystemFiles.writeBack(descriptor) }
  }

  func close() { isClosed.isSet = true }

  @inline(__always)
  private func use<R>(
    _ operation: FileSystemError.Operation, _ body: (Int32) throws(SystemError) -> R
  ) throws(FileSystemError) -> R {
    if isClosed.isSet {
      throw FileSystemError(operation, path: path, number: ErrorNumber.badDescriptor)
    }
    // Otherwise the optimiser may release the last reference before the system call has ended.
    defer { withExtendedLifetime(self) {} }
    do throws(SystemError) {
      return try body(descriptor)
    } catch { throw FileSystemError(operation, path: path, number: error.number) }
  }
}
