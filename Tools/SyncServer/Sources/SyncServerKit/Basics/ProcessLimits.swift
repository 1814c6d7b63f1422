internal import CAllocator

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

/// Settings of the process: how many files it may have open, and how it allocates memory.
///
/// SAFETY: the C calls get a structure that lives until they return.
public enum ProcessLimits {
  /// More than any server here needs; systems may have no bound.
  private static let most: rlim_t = 1 << 16

  /// Raises the limit of open files to what the system allows.
  /// - Returns: the limit.
  public static func raiseOpenFiles() -> Int {
    var limit = rlimit()
    guard unsafe getrlimit(files, &limit) == 0 else { return 1024 }
    let wanted = min(limit.rlim_max, most)
    if limit.rlim_cur < wanted {
      var raised = limit
      raised.rlim_cur = wanted
      if unsafe setrlimit(files, &raised) == 0 { limit = raised }
    }
    return Int(min(limit.rlim_cur, most))
  }

  /// Makes the allocator map blocks of a mebibyte and more one by one, so that the memory of a
  /// large answer is returned to the system when it is freed. By default the allocator raises that
  /// threshold up to 32 MiB, and keeps freed blocks between others: a third more than the bounds of
  /// bodies and answers.
  public static func giveBackLargeBlocks() { callocator_map_blocks(1 << 20) }

  /// Lowers the priority of the calling thread, where the system has one for each thread.
  static func giveWay() {
    #if !canImport(Darwin) && canImport(Glibc)
      _ = setpriority(.init(PRIO_PROCESS.rawValue), 0, 10)
    #endif
  }

  #if !canImport(Darwin) && canImport(Glibc)
    private static var files: __rlimit_resource_t { .init(RLIMIT_NOFILE.rawValue) }
  #else
    private static var files: Int32 { RLIMIT_NOFILE }
  #endif
}
