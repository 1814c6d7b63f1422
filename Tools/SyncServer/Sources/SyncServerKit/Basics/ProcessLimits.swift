internal import CAllocator

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// How many files and connections the process may have open, and how it takes memory.
///
/// SAFETY: the C calls get a structure of the caller's that lives as long as they run.
public enum ProcessLimits {
  /// More than any server here needs; systems may have no bound.
  private static let most: rlim_t = 1 << 16

  /// Raises the number to what the system allows.
  /// - Returns: the number.
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

  /// Has blocks of a mebibyte and more mapped one by one, so that the memory of an answer goes back
  /// to the system when it has left. The allocator would move that threshold up to 32 MiB, and what
  /// is freed between others would stay: a third more than the bounds of bodies and answers.
  public static func giveBackLargeBlocks() { callocator_map_blocks(1 << 20) }

  /// Lets other threads go before the calling one, where the system has that for threads.
  static func giveWay() {
    #if canImport(Glibc)
      _ = setpriority(.init(PRIO_PROCESS.rawValue), 0, 10)
    #endif
  }

  #if canImport(Glibc)
    private static var files: __rlimit_resource_t { .init(RLIMIT_NOFILE.rawValue) }
  #else
    private static var files: Int32 { RLIMIT_NOFILE }
  #endif
}
