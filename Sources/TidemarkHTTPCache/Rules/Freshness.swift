internal import TidemarkSyncProtocol

/// How old a stored response is, and for how long it is fresh (RFC 9111, 4.2).
struct Freshness: Sendable, Hashable {
  /// Seconds for which the response is fresh; negative where it had expired before it was made.
  var lifetime: Int64
  /// Seconds since its origin has made or validated it.
  var age: Int64
  /// Whether it may be used without asking, as far as time goes.
  var isFresh: Bool { lifetime > age }
  /// Seconds for which it has been fresh no more.
  var staleness: Int64 { max(0, age - lifetime) }

  /// Most seconds that a response is taken as fresh that says nothing about it: a day.
  static let mostHeuristicSeconds: Int64 = 86_400

  /// Responses whose status allows to guess for how long they are fresh (RFC 9110, 15.1).
  static let heuristicStatuses: Set<Int> = [
    200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501,
  ]

  /// - Parameter now: milliseconds since 1970.
  init(_ response: StoredResponse, now: Int64) {
    lifetime = Self.lifetime(response)
    age = Self.age(response, now: now)
  }

  /// RFC 9111, 4.2.1, for a cache that is not shared.
  static func lifetime(_ response: StoredResponse) -> Int64 {
    let control = response.control
    if control.isTooLong { return 0 }
    if let seconds = control.seconds("max-age") { return seconds }
    let date = date(of: response)
    if let expires = response.headers["expires"] {
      // A date that is none lies in the past (RFC 9111, 5.3).
      guard let end = HTTPDate.seconds(expires) else { return 0 }
      let (seconds, overflow) = end.subtractingReportingOverflow(date)
      let most = CacheControl.mostSeconds * 1000
      return overflow ? 0 : max(-most, min(most, seconds))
    }
    guard heuristicStatuses.contains(response.status) || control.has("public"),
      let modified = response.headers["last-modified"].flatMap({ HTTPDate.seconds($0) })
    else { return 0 }
    // RFC 9111, 4.2.2: a tenth of the time since it has changed last.
    return min(mostHeuristicSeconds, clamped(date.subtractingReportingOverflow(modified)) / 10)
  }

  /// Whether a response says itself for how long it is fresh.
  static func isExplicit(_ response: StoredResponse) -> Bool {
    response.control.has("max-age") || response.headers["expires"] != nil
  }

  /// RFC 9111, 4.2.3.
  static func age(_ response: StoredResponse, now: Int64) -> Int64 {
    let received = response.responseTime / 1000
    let apparent = clamped(received.subtractingReportingOverflow(date(of: response)))
    let first = response.headers["age"].map { HTTPHeaders.list($0).first ?? "" }
    let told = first.flatMap { CacheControl.seconds(of: $0) } ?? 0
    let delay =
      clamped(
        response.responseTime.subtractingReportingOverflow(response.requestTime)) / 1000
    let resident = clamped(now.subtractingReportingOverflow(response.responseTime)) / 1000
    return max(apparent, told + delay) + resident
  }

  /// When the origin made it, or when it came where that is not told (RFC 9110, 6.6.1).
  private static func date(of response: StoredResponse) -> Int64 {
    response.headers["date"].flatMap { HTTPDate.seconds($0) } ?? response.responseTime / 1000
  }

  private static func clamped(_ difference: (partialValue: Int64, overflow: Bool)) -> Int64 {
    difference.overflow ? 0 : min(CacheControl.mostSeconds * 1000, max(0, difference.partialValue))
  }
}
