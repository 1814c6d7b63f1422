/// A failed call on a file system, with the system's error number.
public struct FileSystemError: Error, Sendable, Hashable {
  /// The file system call that failed.
  @nonexhaustive
  public enum Operation: String, Sendable, Hashable {
    /// A call on a file or directory by its path, such as `open` or `rename`.
    case open, createDirectory, syncDirectory, list, remove, rename, inspect, lock, bootIdentifier
    /// A call on an open file, such as `read` or `sync`.
    case length, read, write, truncate, allocate, sync, close
  }

  /// The file system call that failed.
  public var operation: Operation
  /// The path of the file or directory that the call was about.
  public var path: String
  /// The system's error number (`errno`).
  public var number: Int32

  /// Creates an error for a failed file system call.
  /// - Parameters:
  ///   - operation: the call that failed.
  ///   - path: the path of the file or directory.
  ///   - number: the system's error number (`errno`).
  public init(_ operation: Operation, path: String, number: Int32) {
    self.operation = operation
    self.path = path
    self.number = number
  }
}
