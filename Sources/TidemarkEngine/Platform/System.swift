// The C library is imported in this folder only; the rest of the engine knows no system.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

// SAFETY: callers of `compareBytes` pass buffers of at least `count` bytes, those of
// `releaseMemory` what `reserveMemory` gave them, and those of `discardPages` whole pages of that;
// `clock_gettime` fills the structure that it is given; the other calls take and return numbers.

/// The order of the first `count` bytes of each, as `memcmp` tells it.
@inline(__always)
func compareBytes(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, _ count: Int) -> Int {
  guard count > 0, let x = a.baseAddress, let y = b.baseAddress else { return 0 }
  return unsafe Int(memcmp(x, y, count))
}

/// Reserves address space, of which only pages that are touched take memory; all bytes are zero.
/// - Throws: the system's error number when there is none left.
@unsafe
func reserveMemory(_ byteCount: Int) throws(SystemError) -> UnsafeMutableRawPointer {
  let mapped = unsafe mapPages(nil, byteCount)
  guard let mapped = unsafe mapped, unsafe mapped != MAP_FAILED else {
    throw SystemError(number: errno)
  }
  return unsafe mapped
}

/// Gives whole pages of reserved memory back to the system. Their bytes are zero or as before then.
@unsafe
func discardPages(_ base: UnsafeMutableRawPointer, _ byteCount: Int) {
  #if canImport(Darwin)
    // Pages that `MADV_FREE` gives back still count as the process's until the system is short of
    // memory, and by that count iOS ends a process. Pages that are mapped anew do not count. Unlike
    // after `MADV_FREE_REUSABLE`, nobody has to tell the system before they are used again.
    _ = unsafe mapPages(base, byteCount, MAP_FIXED)
  #else
    _ = unsafe madvise(base, byteCount, Int32(MADV_DONTNEED))
  #endif
}

/// - Parameter flags: `MAP_FIXED` replaces what is mapped at `base`, in one step.
private func mapPages(
  _ base: UnsafeMutableRawPointer?, _ byteCount: Int, _ flags: Int32 = 0
) -> UnsafeMutableRawPointer? {
  let kind = Int32(MAP_PRIVATE | MAP_ANON | MAP_NORESERVE) | flags
  return unsafe mmap(base, byteCount, PROT_READ | PROT_WRITE, kind, -1, 0)
}

/// Unmaps what ``reserveMemory(_:)`` has mapped; `byteCount` must be the same.
@unsafe
func releaseMemory(_ base: UnsafeMutableRawPointer, _ byteCount: Int) {
  unsafe munmap(base, byteCount)
}

package struct SystemClock: WallClock {
  package init() {}

  package func now() -> Timestamp {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }

  package func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }
}

/// The system's source of unpredictable numbers.
package struct SystemRandom: RandomSource {
  package init() {}

  package func next() -> UInt64 {
    UInt64.random(in: .min ... .max)
  }
}

/// The id of this process, for the message to whoever finds the store locked.
package enum ProcessIdentity {
  package static var current: Int32 { getpid() }
}

/// The machine's processors.
package enum Processors {
  /// How many are online, at least one; the process itself may be confined to fewer.
  package static let count = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
}
