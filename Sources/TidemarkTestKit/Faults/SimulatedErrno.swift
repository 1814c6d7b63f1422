/// A system error number, by the name that it has in the manual pages.
///
/// The numbers differ between systems; these are the running system's own, the same that the
/// real file system puts into `FileSystemError.number`.
public struct SimulatedErrno: Error, RawRepresentable, Sendable, Hashable {
  /// The number.
  public var rawValue: Int32

  /// Creates one from a number.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  private init(_ linux: Int32, darwin: Int32? = nil) {
    #if canImport(Darwin)
      rawValue = darwin ?? linux
    #else
      rawValue = linux
    #endif
  }

  /// Not permitted.
  public static let EPERM = SimulatedErrno(1)
  /// No such file or directory.
  public static let ENOENT = SimulatedErrno(2)
  /// Interrupted by a signal.
  public static let EINTR = SimulatedErrno(4)
  /// Input or output failed.
  public static let EIO = SimulatedErrno(5)
  /// The file is not open, or not in the mode asked for.
  public static let EBADF = SimulatedErrno(9)
  /// Try again.
  public static let EAGAIN = SimulatedErrno(11, darwin: 35)
  /// No memory.
  public static let ENOMEM = SimulatedErrno(12)
  /// Permission denied.
  public static let EACCES = SimulatedErrno(13)
  /// Exists already.
  public static let EEXIST = SimulatedErrno(17)
  /// Not a directory.
  public static let ENOTDIR = SimulatedErrno(20)
  /// Is a directory.
  public static let EISDIR = SimulatedErrno(21)
  /// An argument makes no sense.
  public static let EINVAL = SimulatedErrno(22)
  /// The system has too many open files.
  public static let ENFILE = SimulatedErrno(23)
  /// The process has too many open files.
  public static let EMFILE = SimulatedErrno(24)
  /// The file would become too large.
  public static let EFBIG = SimulatedErrno(27)
  /// The disk is full.
  public static let ENOSPC = SimulatedErrno(28)
  /// The file system can only be read.
  public static let EROFS = SimulatedErrno(30)
  /// The directory is not empty.
  public static let ENOTEMPTY = SimulatedErrno(39, darwin: 66)
  /// The user's share of the disk is used up.
  public static let EDQUOT = SimulatedErrno(122, darwin: 69)
}
