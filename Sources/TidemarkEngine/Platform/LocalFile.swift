internal import Synchronization

// The descriptor is closed once and only when no call uses it any more, so no call can
// meet a descriptor that the system has meanwhile given to another file.

/// A file of the operating system.
final class LocalFile: File {
  /// Set once the file is to be closed; the calls in progress are counted below it.
  private static let closing: UInt64 = 1 << 62
  /// Set by whoever closes the descriptor.
  private static let closed: UInt64 = 1 << 63

  private let path: String
  private let descriptor: Int32
  private let users = Atomic<UInt64>(0)

  init(path: String, descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit { close() }

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

  func close() {
    let (old, _) = users.bitwiseOr(Self.closing, ordering: .acquiringAndReleasing)
    if old == 0 { closeUnused() }
  }

  @inline(__always)
  private func use<R>(
    _ operation: FileSystemError.Operation, _ body: (Int32) throws(SystemError) -> R
  ) throws(FileSystemError) -> R {
    let before = users.add(1, ordering: .acquiring).oldValue
    defer {
      let after = users.subtract(1, ordering: .acquiringAndReleasing).newValue
      if after == Self.closing { closeUnused() }
    }
    guard before < Self.closing else {
      throw FileSystemError(operation, path: path, number: ErrorNumber.badDescriptor)
    }
    do throws(SystemError) {
      return try body(descriptor)
    } catch {
      throw FileSystemError(operation, path: path, number: error.number)
    }
  }

  /// Closes the descriptor if nobody has yet and no call has begun meanwhile.
  private func closeUnused() {
    let (isOurs, _) = users.compareExchange(
      expected: Self.closing, desired: Self.closing | Self.closed,
      ordering: .acquiringAndReleasing)
    if isOurs { SystemFiles.close(descriptor) }
  }
}
