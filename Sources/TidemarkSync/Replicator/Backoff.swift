internal import TidemarkEngine

/// How long to wait after failures: a random time up to a ceiling that doubles with each of them
/// ("full jitter": Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015).
struct Backoff: Sendable {
  /// Which part of a wait news cannot end.
  struct Wait: Sendable, Hashable {
    /// Not to be ended by anybody.
    var firm: Duration
    /// From here on local writes end it; pokes do so before.
    var quiet: Duration
    /// When it ends by itself.
    var total: Duration
  }

  /// No peer can ask for more patience than this.
  static let longestRequest = Duration.seconds(3600)
  /// Local writes end a wait after this part of its ceiling: a busy program asks a server that is
  /// down so much more often at most.
  static let quietPart = 8

  let first: Duration
  let longest: Duration
  private(set) var failures = 0

  init(first: Duration, longest: Duration) {
    self.first = first
    self.longest = max(first, longest)
  }

  mutating func reset() { failures = 0 }

  /// Something has failed.
  /// - Parameter retryAfter: what the peer has asked for.
  mutating func next(_ random: any RandomSource, retryAfter: Duration?) -> Wait {
    let ceiling = min(longest, first * (1 << min(failures, 20)))
    failures = min(failures + 1, 64)
    let part = Double(random.next() >> 11) / Double(1 << 53)
    let asked = min(Self.longestRequest, retryAfter ?? .zero)
    let firm = max(first / 4, asked)
    let quiet = max(firm, ceiling / Self.quietPart)
    return Wait(firm: firm, quiet: quiet, total: max(quiet, ceiling * part))
  }
}
