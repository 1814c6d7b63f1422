import TidemarkEngine
import TidemarkTestKit

extension File {
  /// Writes text or bytes in one call.
  @discardableResult
  func put(_ bytes: [UInt8], at offset: Int = 0) throws(FileSystemError) -> Int {
    try write(bytes.rawSpan, at: offset)
  }

  /// Reads up to `count` bytes in one call.
  func get(_ count: Int, at offset: Int = 0) throws(FileSystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = try bytes.withMutableRawSpan {
      (span: inout MutableRawSpan) throws(FileSystemError) in
      try self.read(into: &span, at: offset)
    }
    return Array(bytes.prefix(read))
  }
}

extension SimulatedFileSystem {
  /// Creates a file whose bytes and name are durable.
  @discardableResult
  func createDurable(_ path: String, _ bytes: [UInt8]) throws -> any File {
    let file = try open(path, .create)
    try file.put(bytes)
    try file.sync()
    try syncDirectory(path.split(separator: "/").dropLast().joined(separator: "/"))
    return file
  }
}

/// A file of sectors, each filled with its own number.
func numbered(_ sectors: Range<Int>) -> [UInt8] {
  sectors.flatMap { [UInt8](repeating: UInt8($0 & 0xff), count: 512) }
}

/// The error number that an action ends with; nil when it succeeds.
func number(_ action: () throws -> Void) -> SimulatedErrno? {
  do { try action() } catch {
    return (error as? FileSystemError).map { SimulatedErrno(rawValue: $0.number) }
  }
  return nil
}
