/// Where the engine takes the time from.
///
/// Named after what it gives, since Swift's own `Clock` measures durations only.
package protocol WallClock: Sendable {
  /// The time of day.
  func now() -> Timestamp
  /// Nanoseconds on a clock that never goes back; only differences mean anything.
  func monotonicNanoseconds() -> UInt64
}

/// Where the engine takes chance from: store ids, salts, epochs, hash seeds.
package protocol RandomSource: Sendable {
  /// Eight unpredictable bytes.
  func next() -> UInt64
}
