/// Limits the requests of each caller, or their cost, by a token bucket: a rate in a second, and a
/// burst.
final class RateLimiter: Sendable {
  private struct Bucket {
    var tokens: Double
    var filled: ContinuousClock.Instant
  }

  private let rate: Double
  private let most: Double
  private let callers: Int
  private let buckets = PosixMutex<[String: Bucket]>([:])

  /// - Parameters:
  ///   - rate: requests in a second, or their cost; 0 for any number.
  ///   - burst: the size of a bucket: how many requests may come at once.
  ///   - callers: how many buckets are kept.
  init(rate: Double, burst: Double, callers: Int) {
    self.rate = rate
    most = burst
    self.callers = max(callers, 1)
  }

  /// Counts a request of a caller.
  /// - Returns: nil if it is allowed, else for how many seconds to wait.
  func count(_ caller: String, at now: ContinuousClock.Instant = .now) -> UInt32? {
    change(caller, now) { left in
      guard left >= 1 else { return seconds(for: 1 - left) }
      left -= 1
      return nil
    }
  }

  /// For how many seconds a caller has to wait whose charges have emptied its bucket; nil for none.
  func debt(of caller: String, at now: ContinuousClock.Instant = .now) -> UInt32? {
    guard rate > 0 else { return nil }
    return buckets.withLock { buckets in
      guard let bucket = buckets[caller] else { return nil }
      let left = tokens(of: bucket, now)
      return left > 0 ? nil : seconds(for: -left)
    }
  }

  /// Charges a caller with the cost of a request, which is known only after it.
  func charge(_ caller: String, _ cost: Double, at now: ContinuousClock.Instant = .now) {
    _ = change(caller, now) { left in
      left -= cost
      return nil
    }
  }

  private func change(
    _ caller: String, _ now: ContinuousClock.Instant, _ body: (inout Double) -> UInt32?
  ) -> UInt32? {
    guard rate > 0 else { return nil }
    return buckets.withLock { buckets in
      if buckets[caller] == nil, buckets.count >= callers { prune(&buckets, now) }
      var left = buckets[caller].map { tokens(of: $0, now) } ?? most
      defer { buckets[caller] = Bucket(tokens: left, filled: now) }
      return body(&left)
    }
  }

  /// The seconds until a bucket has gained so much: at least 1.
  private func seconds(for missing: Double) -> UInt32 {
    UInt32(min(max(1, (missing / rate).rounded(.up)), Double(UInt32.max)))
  }

  private func tokens(of bucket: Bucket, _ now: ContinuousClock.Instant) -> Double {
    min(most, bucket.tokens + rate * ((now - bucket.filled) / .seconds(1)))
  }

  /// Drops full buckets, which say nothing; or all, if more than half of the bound would be left,
  /// as each search takes time.
  private func prune(_ buckets: inout [String: Bucket], _ now: ContinuousClock.Instant) {
    buckets = buckets.filter { tokens(of: $0.value, now) < most }
    if buckets.count > callers / 2 { buckets = [:] }
  }
}
