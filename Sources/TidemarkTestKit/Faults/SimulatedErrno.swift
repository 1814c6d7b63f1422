/// A system error number, by the name that it has in the manual pages.
///
/// The numbers differ between systems; these are the running system's own, the same that the
/// real file system puts into `FileSystemError.number`.
public struct SimulatedErrno: Error, RawRepresentable, Sendable, Hashable {
  /// The error number of the running system.
  public var rawValue: Int32

  /// Creates an error from a number of the running system.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  private init(_ linux: Int32, darwin: Int32? = nil) {
    #if canImport(Darwin)
      rawValue = darwin ?? linux
    #else
      rawValue = linux
    #endif
  }

  /// The operation is not permitted.
  public static let EPERM = SimulatedErrno(1)
  /// The file or directory does not exist.
  public static let ENOENT = SimulatedErrno(2)
  /// A signal interrupted the call.
  public static let EINTR = SimulatedErrno(4)
  /// The device failed to read or write.
  public static let EIO = SimulatedErrno(5)
  /// The file is not open, or not in the mode asked for.
  public static let EBADF = SimulatedErrno(9)
  /// The call cannot succeed now and may be tried again.
  public static let EAGAIN = SimulatedErrno(11, darwin: 35)
  /// The system has no memory for the call.
  public static let ENOMEM = SimulatedErrno(12)
  /// The permissions of the file do not allow the call.
  public static let EACCES = SimulatedErrno(13)
  /// The file exists already.
  public static let EEXIST = SimulatedErrno(17)
  /// A part of the path is not a directory.
  public static let ENOTDIR = SimulatedErrno(20)
  /// The path is a directory, where the call needs a file.
  public static let EISDIR = SimulatedErrno(21)
  /// An argument of the call is invalid.
  public static let EINVAL = SimulatedErrno(22)
  /// The system has too many open files.
  public static let ENFILE = SimulatedErrno(23)
  /// The process has too many open files.
  public static let EMFILE = SimulatedErrno(24)
  /// The file would become too large.
  public static let EFBIG = SimulatedErrno(27)
  /// The disk has no space left.
  public static let ENOSPC = SimulatedErrno(28)
  /// The file system is read-only.
  public static let EROFS = SimulatedErrno(30)
  /// The directory is not empty.
  public static let ENOTEMPTY = SimulatedErrno(39, darwin: 66)
  /// The user's disk quota is used up.
  public static let EDQUOT = SimulatedErrno(122, darwin: 69)
}
