package import TidemarkEngine

/// Computes the waits between retries: random times up to a ceiling that doubles with each failure
/// ("full jitter": Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015).
///
/// A peer's `Retry-After` is added in front, and the ceiling is at least as long as it: clients
/// that failed at the same instant then retry evenly spread over a time as long as their pause.
package struct Backoff: Sendable {
  /// The wait before a retry. A retry request, a hint of the program that the peer may answer, ends
  /// its last part.
  package struct Wait: Sendable, Hashable {
    /// The part of the wait that a retry request does not end.
    package var firm: Duration
    /// The whole wait, unless a retry request ends it.
    package var total: Duration
  }

  /// The longest `Retry-After` that is obeyed.
  package static let longestRequest = Duration.seconds(86_400)
  /// The longest ceiling that a `Retry-After` gives the random part.
  package static let longestSpread = Duration.seconds(3600)

  private let first: Duration
  private let longest: Duration
  private var failures = 0
  /// When the first call succeeded since the last failure, in monotonic nanoseconds; nil after a
  /// failure.
  private var worksSince: UInt64?

  package init(first: Duration, longest: Duration) {
    self.first = first
    self.longest = max(first, longest)
  }

  /// Records a success. It resets the ceiling once calls have succeeded for the first pause: a
  /// server that fails only long polls must not be called in a tight loop.
  /// - Parameter now: nanoseconds of the monotonic clock.
  package mutating func succeeded(at now: UInt64) { worksSince = worksSince ?? now }

  /// Computes how long to wait before the next attempt after a failed call.
  /// - Parameters:
  ///   - now: nanoseconds of the monotonic clock.
  ///   - retryAfter: the peer's `Retry-After`.
  package mutating func next(
    _ random: any RandomSource, at now: UInt64, retryAfter: Duration?
  ) -> Wait {
    if let worksSince, .nanoseconds(Int64(clamping: now &- worksSince)) >= first { failures = 0 }
    worksSince = nil
    let asked = min(Self.longestRequest, max(.zero, retryAfter ?? .zero))
    let grown = min(longest, first * (1 << min(failures, 20)))
    failures = min(failures + 1, 64)
    let part = Double(random.next() >> 11) / Double(1 << 53)
    let total = asked + max(grown, min(Self.longestSpread, asked)) * part
    return Wait(firm: max(asked, min(first / 4, total)), total: total)
  }
}
