import Foundation

/// Nanoseconds that only go forward.
@inline(__always)
func nanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Wall and processor time of a piece of work, by all threads of the process.
struct Cost {
  /// Seconds.
  var wall: Double
  /// Seconds, in user mode and in the kernel.
  var processor: Double

  static func processorSeconds() -> Double {
    var usage = rusage()
    #if !canImport(Darwin) && canImport(Glibc)
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    #else
      getrusage(RUSAGE_SELF, &usage)
    #endif
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) * 1e-6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  init(_ work: () throws -> Void) rethrows {
    let processorBefore = Self.processorSeconds()
    let before = nanoseconds()
    try work()
    wall = Double(nanoseconds() - before) * 1e-9
    processor = Self.processorSeconds() - processorBefore
  }

  init(wall: Double, processor: Double) {
    self.wall = wall
    self.processor = processor
  }

  static func + (a: Cost, b: Cost) -> Cost {
    Cost(wall: a.wall + b.wall, processor: a.processor + b.processor)
  }

  /// Thousands of operations a second.
  func thousands(_ operations: Int) -> Double { Double(operations) / wall / 1000 }

  /// Microseconds of processor time an operation.
  func microseconds(_ operations: Int) -> Double { processor / Double(max(1, operations)) * 1e6 }
}
