#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif
internal import CTidemark

// SAFETY: strings and buffers are passed to calls that do not keep them; a transfer's length is
// never more than its buffer's; error numbers are read right after the call that set them.

struct SystemError: Error {
  /// `errno`.
  var number: Int32
}

/// What the system says of a file.
typealias FileStatus = (kind: FileKind, identity: FileIdentity, length: Int)

/// Tells files apart whatever their paths: two paths with equal values lead to one file.
struct FileIdentity: Hashable, Sendable {
  var device: UInt64
  var node: UInt64
}

// Inside `SystemFiles` its own members hide the C functions of the same names.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { unsafe open(path, flags, 0o600) }
private func closeFile(_ descriptor: Int32) -> Int32 { close(descriptor) }
private func renameFile(_ path: String, _ newPath: String) -> Int32 { unsafe rename(path, newPath) }

/// The system calls on files that the engine needs, each repeated while signals interrupt it. Paths
/// must have passed ``check(_:)``.
enum SystemFiles {
  /// Most bytes of one transfer: macOS refuses 2 GiB and more, Linux moves less than was asked for.
  static let transferBytes = 1 << 30

  static func open(_ path: String, _ mode: FileMode) throws(SystemError) -> Int32 {
    switch mode {
    case .read: try open(path, flags: O_RDONLY)
    case .readWrite: try open(path, flags: O_RDWR)
    case .create: try open(path, flags: O_RDWR | O_CREAT | O_EXCL)
    }
  }

  static func openOrCreate(_ path: String) throws(SystemError) -> Int32 {
    try open(path, flags: O_RDWR | O_CREAT)
  }

  /// Opens a regular file. `O_NONBLOCK` keeps a named pipe from blocking until it is refused.
  private static func open(_ path: String, flags: Int32) throws(SystemError) -> Int32 {
    let descriptor = try retry { openFile(path, flags | O_CLOEXEC | O_NONBLOCK) }
    do throws(SystemError) {
      switch try status(descriptor).kind {
      case .file: return descriptor
      case .directory: throw SystemError(number: EISDIR)
      case .other: throw SystemError(number: EINVAL)
      }
    } catch {
      close(descriptor)
      throw error
    }
  }

  static func close(_ descriptor: Int32) {
    // Not repeated after EINTR: Linux has closed it by then, and may have reused its number.
    _ = closeFile(descriptor)
  }

  static func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
    var info = stat()
    _ = try retry { unsafe fstat(descriptor, &info) }
    return describe(info)
  }

  /// The status of the file that a path leads to through symbolic links; nil where there is none.
  static func status(at path: String) throws(SystemError) -> FileStatus? {
    var info = stat()
    do throws(SystemError) {
      _ = try retry { unsafe stat(path, &info) }
    } catch {
      if error.number == ENOENT || error.number == ENOTDIR { return nil }
      throw error
    }
    return describe(info)
  }

  static func read(
    _ descriptor: Int32, into buffer: inout MutableRawSpan, at offset: Int
  ) throws(SystemError) -> Int {
    try unsafe buffer.withUnsafeMutableBytes { (target) throws(SystemError) in
      let count = Swift.min(target.count, transferBytes)
      return try retry { unsafe pread(descriptor, target.baseAddress, count, off_t(offset)) }
    }
  }

  /// The first bytes of a file, by one call; fewer where it is shorter.
  static func head(_ descriptor: Int32, _ count: Int) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let length = try bytes.withMutableRawSpan { (span) throws(SystemError) in
      try read(descriptor, into: &span, at: 0)
    }
    return Array(bytes.prefix(length))
  }

  static func write(
    _ descriptor: Int32, _ bytes: RawSpan, at offset: Int
  ) throws(SystemError) -> Int {
    try unsafe bytes.withUnsafeBytes { (source) throws(SystemError) in
      let count = Swift.min(source.count, transferBytes)
      return try retry { unsafe pwrite(descriptor, source.baseAddress, count, off_t(offset)) }
    }
  }

  static func truncate(_ descriptor: Int32, to length: Int) throws(SystemError) {
    _ = try retry { ftruncate(descriptor, off_t(length)) }
  }

  static func createDirectory(_ path: String) throws(SystemError) {
    _ = try retry { unsafe mkdir(path, 0o700) }
  }

  static func syncDirectory(_ path: String) throws(SystemError) {
    let descriptor = try retry { openFile(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    defer { close(descriptor) }
    try syncAll(descriptor)
  }

  static func remove(_ path: String) throws(SystemError) {
    do throws(SystemError) {
      _ = try retry { unsafe unlink(path) }
    } catch {
      // For a directory POSIX has EPERM and Linux EISDIR. EPERM may also mean a file that must not
      // be removed: then rmdir fails with ENOTDIR, and the first error is the reason.
      guard error.number == EISDIR || error.number == EPERM else { throw error }
      do throws(SystemError) {
        _ = try retry { unsafe rmdir(path) }
      } catch let second { throw second.number == ENOTDIR ? error : second }
    }
  }

  static func rename(_ path: String, to newPath: String) throws(SystemError) {
    try check(newPath)
    _ = try retry { renameFile(path, newPath) }
  }

  /// The names in a directory, without `.` and `..`, in the system's order.
  static func list(_ path: String) throws(SystemError) -> [String] {
    var directory: OpaquePointer?
    try succeed { unsafe ctidemark_directory_open(path, &directory) }
    defer { unsafe ctidemark_directory_close(directory) }
    var names: [String] = []
    while true {
      var name: UnsafePointer<CChar>?
      try succeed { unsafe ctidemark_directory_next(directory, &name) }
      guard let name = unsafe name else { return names }
      let text = unsafe String(cString: name)
      if text != ".", text != ".." { names.append(text) }
    }
  }

  /// Takes the exclusive lock of an open file.
  /// - Returns: false when somebody else has it.
  static func lock(_ descriptor: Int32) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try retry { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.number == EWOULDBLOCK { return false }
      throw error
    }
  }

  static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }

  /// Makes a system call, and makes it again as long as signals interrupt it.
  @inline(__always)
  static func retry<N: SignedInteger>(_ call: () -> N) throws(SystemError) -> N {
    while true {
      let result = call()
      if result >= 0 { return result }
      let number = errno
      if number != EINTR { throw SystemError(number: number) }
    }
  }

  /// Like ``retry(_:)``, for calls that return an error number.
  static func succeed(_ call: () -> Int32) throws(SystemError) {
    while true {
      let number = call()
      if number == 0 { return }
      if number != EINTR { throw SystemError(number: number) }
    }
  }

  /// Refuses a path that the system would cut at a zero byte.
  static func check(_ path: String) throws(SystemError) {
    if path.utf8.contains(0) { throw SystemError(number: EINVAL) }
  }

  private static func describe(_ info: stat) -> FileStatus {
    let identity = FileIdentity(
      device: UInt64(truncatingIfNeeded: info.st_dev),
      node: UInt64(truncatingIfNeeded: info.st_ino))
    let kind: FileKind =
      switch info.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      default: .other
      }
    return (kind, identity, Int(info.st_size))
  }
}
