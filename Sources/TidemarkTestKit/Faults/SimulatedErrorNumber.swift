/// A system error number, by the name that it has in the manual pages.
///
/// The numbers differ between systems; these are the running system's own, the same that the
/// real file system puts into ``TidemarkEngine/FileSystemError/number``.
public struct SimulatedErrorNumber: Error, RawRepresentable, Sendable, Hashable {
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
  public static let EPERM = SimulatedErrorNumber(1)
  /// No such file or directory.
  public static let ENOENT = SimulatedErrorNumber(2)
  /// Interrupted by a signal.
  public static let EINTR = SimulatedErrorNumber(4)
  /// Input or output failed.
  public static let EIO = SimulatedErrorNumber(5)
  /// The file is not open, or not in the mode asked for.
  public static let EBADF = SimulatedErrorNumber(9)
  /// Try again.
  public static let EAGAIN = SimulatedErrorNumber(11, darwin: 35)
  /// No memory.
  public static let ENOMEM = SimulatedErrorNumber(12)
  /// Permission denied.
  public static let EACCES = SimulatedErrorNumber(13)
  /// Exists already.
  public static let EEXIST = SimulatedErrorNumber(17)
  /// Not a directory.
  public static let ENOTDIR = SimulatedErrorNumber(20)
  /// Is a directory.
  public static let EISDIR = SimulatedErrorNumber(21)
  /// An argument makes no sense.
  public static let EINVAL = SimulatedErrorNumber(22)
  /// The system has too many open files.
  public static let ENFILE = SimulatedErrorNumber(23)
  /// The process has too many open files.
  public static let EMFILE = SimulatedErrorNumber(24)
  /// The file would become too large.
  public static let EFBIG = SimulatedErrorNumber(27)
  /// The disk is full.
  public static let ENOSPC = SimulatedErrorNumber(28)
  /// The file system can only be read.
  public static let EROFS = SimulatedErrorNumber(30)
  /// The directory is not empty.
  public static let ENOTEMPTY = SimulatedErrorNumber(39, darwin: 66)
  /// The user's share of the disk is used up.
  public static let EDQUOT = SimulatedErrorNumber(122, darwin: 69)
}
