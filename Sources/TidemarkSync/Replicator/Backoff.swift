package import TidemarkEngine

/// How long to wait after failures: a random time up to a ceiling that doubles with each of them
/// ("full jitter": Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015).
///
/// The time that a peer asks for comes before that, and the ceiling is as long at least: clients
/// that failed at the same instant come back evenly over the length of their pause.
package struct Backoff: Sendable {
  /// How long to wait.
  package struct Wait: Sendable, Hashable {
    /// The part of the wait that not even a poke ends.
    package var firm: Duration
    /// All of it, unless a poke ends it.
    package var total: Duration
  }

  /// No peer can ask for more patience than this.
  package static let longestRequest = Duration.seconds(86_400)
  /// The time that a peer asks for lengthens the random part no further than this.
  package static let longestSpread = Duration.seconds(3600)

  private let first: Duration
  private let longest: Duration
  private var failures = 0
  /// Since when all has worked, in nanoseconds of the monotonic clock; nil after a failure.
  private var worksSince: UInt64?

  package init(first: Duration, longest: Duration) {
    self.first = first
    self.longest = max(first, longest)
  }

  /// Something has worked. It ends the growth once all has worked for as long as the first pause: a
  /// server that answers, but for calls that wait, is not to be asked without end.
  /// - Parameter now: nanoseconds of the monotonic clock.
  package mutating func succeeded(at now: UInt64) { worksSince = worksSince ?? now }

  /// Computes how long to wait before the next attempt after a failed call.
  /// - Parameters:
  ///   - now: nanoseconds of the monotonic clock.
  ///   - retryAfter: what the peer has asked for.
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
