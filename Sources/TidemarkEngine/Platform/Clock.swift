/// The engine's source of the time; tests put a simulated one in its place.
///
/// It is not Swift's `Clock`, which measures durations and knows no time of day.
package protocol WallClock: Sendable {
  /// The time of day.
  func now() -> Timestamp
  /// Nanoseconds on a clock that never goes back; only differences mean anything.
  func monotonicNanoseconds() -> UInt64
}

/// The engine's source of random numbers: for store ids, salts, epochs and hash seeds.
package protocol RandomSource: Sendable {
  /// Eight unpredictable bytes.
  func next() -> UInt64
}
