/// A failed call on a ``FileSystem``, with the system's error number.
public struct FileSystemError: Error, Sendable, Hashable {
  /// The call that failed.
  public enum Operation: String, Sendable, Hashable {
    case open, createDirectory, syncDirectory, list, remove, rename, inspect, lock, bootIdentifier
    case length, read, write, truncate, allocate, sync, close
  }

  /// The call that failed.
  public var operation: Operation
  /// The path that it was about.
  public var path: String
  /// The system's error number (`errno`).
  public var number: Int32

  /// Creates an error.
  /// - Parameters:
  ///   - operation: the call that failed.
  ///   - path: the path that it was about.
  ///   - number: the system's error number.
  public init(_ operation: Operation, path: String, number: Int32) {
    self.operation = operation
    self.path = path
    self.number = number
  }
}
