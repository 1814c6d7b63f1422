/// A hybrid logical clock's reading: 48 bits of milliseconds since 1970, 16 bits of counter.
/// After S. Kulkarni et al., "Logical Physical Clocks and Consistent Snapshots in Globally
/// Distributed Databases", 2014. Commit times never go back, whatever the wall clock does.
package struct HybridTime: Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// The milliseconds, without the counter.
  package var timestamp: Timestamp { Timestamp(milliseconds: Int64(rawValue >> 16)) }

  /// `timestamp` with the counter added as nanoseconds, so that these are in the order of the
  /// readings: the counter, at most 65,535, is less than the nanoseconds of a millisecond.
  package var orderedTimestamp: Timestamp {
    var time = timestamp
    time.nanoseconds += UInt32(rawValue & 0xffff)
    return time
  }

  /// The wall clock's time, or one more than `self` where the clock has not gone on. A counter that
  /// overflows runs over into the milliseconds.
  package func next(wallClock: Timestamp) -> HybridTime {
    let milliseconds = UInt64(clamping: max(0, wallClock.milliseconds))
    let now = min(milliseconds, (1 << 48) - 1) << 16
    return HybridTime(max(now, rawValue &+ 1))
  }

  package static func < (a: HybridTime, b: HybridTime) -> Bool { a.rawValue < b.rawValue }
}
