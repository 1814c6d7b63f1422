/// Slows a compaction down that nobody waits for, to a rate of raw bytes.
struct CompactionPace: Sendable {
  /// Raw bytes.
  let bytesPerSecond: Int
  let clock: any WallClock
  /// Gives the sequence of the log's last entry: the compaction is slower while that rises. Nil for
  /// the same pace beside writers.
  var lastSequence: (@Sendable () -> UInt64)?
  /// Returns sooner where the compaction is to end.
  let pause: @Sendable (_ nanoseconds: UInt64) -> Void
  /// When `wait` returned last, in monotonic nanoseconds, and the log's last sequence then.
  private var lastPause: UInt64 = 0
  private var lastSeen: UInt64?

  /// While writers commit, work takes so many times as long.
  static let slownessBesideWriters: UInt64 = 8

  init(
    bytesPerSecond: Int, clock: any WallClock,
    pause: @escaping @Sendable (_ nanoseconds: UInt64) -> Void
  ) {
    (self.bytesPerSecond, self.clock, self.pause) = (bytesPerSecond, clock, pause)
  }

  /// Waits for the time that `bytes` are to take, less the time since the last call returned.
  mutating func wait(after bytes: Int) {
    let sequence = lastSequence?()
    var due = UInt64(bytes) * 1_000_000_000 / UInt64(max(1, bytesPerSecond))
    if sequence != lastSeen { due *= Self.slownessBesideWriters }
    let taken = clock.monotonicNanoseconds() &- lastPause
    if taken < due { pause(due - taken) }
    (lastPause, lastSeen) = (clock.monotonicNanoseconds(), sequence)
  }
}
