#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

// SAFETY: the calls keep no pointer that they are given.

extension SystemFiles {
  static func sync(_ descriptor: Int32) throws(SystemError) {
    #if canImport(Darwin)
      try syncAll(descriptor)
    #else
      // Unlike fsync it leaves out times, but never the length, which reading the bytes needs.
      _ = try retry { fdatasync(descriptor) }
    #endif
  }

  /// Writes a file's dirty pages to the drive, with no promise that they survive a power cut: on
  /// Apple's systems `fsync` leaves them in the drive's volatile cache.
  static func writeBack(_ descriptor: Int32) throws(SystemError) {
    #if canImport(Darwin)
      _ = try retry { fsync(descriptor) }
    #else
      try sync(descriptor)
    #endif
  }

  /// Makes a file or directory durable with all of its metadata.
  static func syncAll(_ descriptor: Int32) throws(SystemError) {
    #if canImport(Darwin)
      // On Apple's systems fsync leaves the bytes in the drive's cache. F_BARRIERFSYNC, which
      // only orders them, would be faster but may lose acknowledged writes in a power cut.
      do throws(SystemError) {
        _ = try retry { fcntl(descriptor, F_FULLFSYNC) }
        return
      } catch {
        // Network file systems lack F_FULLFSYNC, and fsync below is the best there is.
        guard [ENOTSUP, ENOTTY, EINVAL].contains(error.number) else { throw error }
      }
    #endif
    _ = try retry { fsync(descriptor) }
  }

  /// Makes a file at least `length` bytes long, with disk space for every byte; never shorter.
  ///
  /// Where the file system cannot allocate, zeros are written behind the file's end; holes before
  /// its end stay.
  static func allocate(_ descriptor: Int32, to length: Int) throws(SystemError) {
    let current = try status(descriptor).length
    #if canImport(Darwin)
      guard length > current else { return }
      var request = fstore_t(
        fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0,
        fst_length: off_t(length - current), fst_bytesalloc: 0)
      do throws(SystemError) {
        _ = try retry { unsafe fcntl(descriptor, F_PREALLOCATE, &request) }
        return try truncate(descriptor, to: length)
      } catch {
        guard [ENOTSUP, ENOTTY, EINVAL].contains(error.number) else { throw error }
      }
    #else
      // From 0 on, not from the end: that fills holes, too. Existing bytes stay.
      guard length > 0 else { return }
      do throws(SystemError) {
        return try succeed { posix_fallocate(descriptor, 0, off_t(length)) }
      } catch {
        guard [EOPNOTSUPP, ENOSYS, EINVAL].contains(error.number) else { throw error }
      }
    #endif
    try writeZeros(descriptor, from: current, to: length)
  }

  /// Writes zeros over a part of a file that holds none of its content yet.
  static func writeZeros(_ descriptor: Int32, from start: Int, to end: Int) throws(SystemError) {
    let zeros = [UInt8](repeating: 0, count: 64 << 10)
    var offset = start
    while offset < end {
      let piece = zeros.rawSpan.extracting(first: Swift.min(zeros.count, end - offset))
      let written = try write(descriptor, piece, at: offset)
      guard written > 0 else { throw SystemError(number: EIO) }
      offset += written
    }
  }

  /// Bytes that a user without privileges may still write to the file system of a path.
  static func freeBytes(_ path: String) throws(SystemError) -> Int {
    #if canImport(Darwin)
      // statvfs counts blocks in 32 bits there, which is too few from 16 TiB on.
      var info = statfs()
      _ = try retry { unsafe statfs(path, &info) }
      let unit = info.f_bsize
    #else
      var info = statvfs()
      _ = try retry { unsafe statvfs(path, &info) }
      let unit = info.f_frsize > 0 ? info.f_frsize : info.f_bsize
    #endif
    let (bytes, isMore) = UInt64(info.f_bavail).multipliedReportingOverflow(by: UInt64(unit))
    return isMore ? .max : Int(clamping: bytes)
  }

  /// A UUID as text that the system draws anew each time that the machine starts.
  static func bootIdentifierText() throws(SystemError) -> [UInt8] {
    #if canImport(Darwin)
      var text = [UInt8](repeating: 0, count: 64)
      var count = text.count
      _ = try retry { unsafe sysctlbyname("kern.bootsessionuuid", &text, &count, nil, 0) }
      return Array(text.prefix(count))
    #else
      let descriptor = try open("/proc/sys/kernel/random/boot_id", .read)
      defer { close(descriptor) }
      return try head(descriptor, 64)
    #endif
  }
}
