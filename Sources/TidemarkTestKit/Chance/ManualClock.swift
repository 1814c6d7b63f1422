public import TidemarkEngine

/// A clock that stands still until the test moves it.
///
/// The time of day and the clock that never goes back are moved apart, as on a real machine
/// whose user sets the time: ``advance(by:)`` moves both, ``jump(by:)`` and ``set(to:)`` only the
/// time of day.
public final class ManualClock: WallClock, Sendable {
  private struct Hands: Sendable {
    var time: Timestamp
    var monotonic: UInt64
  }

  private let hands: Lock<Hands>

  /// Creates a clock that stands still.
  /// - Parameters:
  ///   - time: the time of day; by default 2026-01-01T00:00:00Z.
  ///   - monotonicNanoseconds: the reading of the monotonic clock; by default 0.
  public init(
    _ time: Timestamp = Timestamp(seconds: 1_767_225_600), monotonicNanoseconds: UInt64 = 0
  ) {
    hands = Lock(Hands(time: time, monotonic: monotonicNanoseconds))
  }

  /// Returns the time of day that the test has set.
  public func now() -> Timestamp { hands.withLock { $0.time } }

  /// Returns the reading of the monotonic clock in nanoseconds. Only ``advance(by:)`` changes it.
  public func monotonicNanoseconds() -> UInt64 { hands.withLock { $0.monotonic } }

  /// Lets time pass on both clocks. A negative duration counts as zero.
  public func advance(by duration: Duration) {
    guard duration > .zero else { return }
    let parts = duration.components
    let (nanoseconds, tooMany) = UInt64(parts.seconds).multipliedReportingOverflow(
      by: 1_000_000_000)
    let fraction = UInt64(parts.attoseconds / 1_000_000_000)
    hands.withLock { hands in
      hands.time = hands.time.moved(by: duration)
      let (sum, over) = hands.monotonic.addingReportingOverflow(
        tooMany ? .max : nanoseconds &+ fraction)
      hands.monotonic = over ? .max : sum
    }
  }

  /// Moves the time of day forward or back, as a user or a time server does. The monotonic clock
  /// does not change.
  public func jump(by duration: Duration) {
    hands.withLock { $0.time = $0.time.moved(by: duration) }
  }

  /// Sets the time of day. The monotonic clock does not change.
  public func set(to time: Timestamp) {
    hands.withLock { $0.time = time }
  }
}

extension Timestamp {
  /// The point that lies a duration later, or earlier if it is negative; saturating.
  func moved(by duration: Duration) -> Timestamp {
    let parts = duration.components
    var fraction = Int64(nanoseconds) + parts.attoseconds / 1_000_000_000
    var carry: Int64 = 0
    if fraction < 0 {
      fraction += 1_000_000_000
      carry = -1
    } else if fraction >= 1_000_000_000 {
      fraction -= 1_000_000_000
      carry = 1
    }
    let (moved, over) = seconds.addingReportingOverflow(parts.seconds)
    let (total, overCarry) = moved.addingReportingOverflow(carry)
    if over || overCarry {
      return parts.seconds < 0
        ? Timestamp(seconds: .min) : Timestamp(seconds: .max, nanoseconds: 999_999_999)
    }
    return Timestamp(seconds: total, nanoseconds: UInt32(fraction))
  }
}
