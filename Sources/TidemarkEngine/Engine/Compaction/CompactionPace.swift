/// Slows a compaction down that nobody waits for.
struct CompactionPace: Sendable {
  /// Raw bytes.
  let bytesPerSecond: Int
  let clock: any WallClock
  /// The sequence of the last entry, where writers are to have the processor; nil where not.
  var lastSequence: (@Sendable () -> UInt64)?
  let pause: @Sendable (_ nanoseconds: UInt64) -> Void
  /// When it has waited last, and the last entry then.
  private var lastPause: UInt64 = 0
  private var lastSeen: UInt64?

  /// While writers commit, a pause is so many times longer.
  static let slownessBesideWriters: UInt64 = 8

  init(
    bytesPerSecond: Int, clock: any WallClock,
    pause: @escaping @Sendable (_ nanoseconds: UInt64) -> Void
  ) {
    self.bytesPerSecond = bytesPerSecond
    self.clock = clock
    self.pause = pause
  }

  /// Waits as long as so many bytes are to take, less the time since it has waited last.
  mutating func wait(after bytes: Int) {
    let sequence = lastSequence?()
    var due = UInt64(bytes) * 1_000_000_000 / UInt64(max(1, bytesPerSecond))
    if sequence != lastSeen { due *= Self.slownessBesideWriters }
    let taken = clock.monotonicNanoseconds() &- lastPause
    if taken < due { pause(due - taken) }
    (lastPause, lastSeen) = (clock.monotonicNanoseconds(), sequence)
  }
}
