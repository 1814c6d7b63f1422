internal import Tidemark
internal import TidemarkEngine
internal import TidemarkHTTP

extension HTTPCache {
  /// The next step for a request.
  enum Plan {
    /// Answers with what is stored, and may ask the server behind the reader's back.
    case serve(ResponseStore.Found, detail: String, refreshes: Bool = false)
    /// Asks the server; of what is stored, whether it is still right.
    case ask(ResponseStore.Found?)
    /// Has nothing, and must not ask.
    case refuse(String)
  }

  /// RFC 9111, 4, for one request.
  /// - Parameter lesson: what became of the same question of somebody else, for which this request
  ///   has waited.
  func plan(
    _ request: HTTPCacheRequest, _ lesson: Question.Lesson? = nil
  ) throws(TidemarkError) -> Plan {
    guard let address = request.address,
      let found = try shelf.find(address, request.message.headers)
    else {
      if request.control.has("only-if-cached") { return .refuse("only-if-cached") }
      return isOnline ? .ask(nil) : .refuse("offline")
    }
    let freshness = Freshness(found.response, now: shelf.now)
    let detail = freshness.isFresh ? "" : "stale"
    if request.isHeld(by: found) {
      if isUsable(found, freshness, request) { return .serve(found, detail: detail) }
      if serves(found, freshness, request), isOnline,
        let bound = found.response.control.seconds("stale-while-revalidate"),
        freshness.staleness <= bound, !request.control.has("max-stale")
      {
        return .serve(found, detail: "stale-while-revalidate", refreshes: true)
      }
      // A response that came while the request waited is new enough for it (RFC 9111, 4).
      if case .kept = lesson, !found.response.control.has("no-cache") {
        return .serve(found, detail: detail)
      }
    }
    if request.control.has("only-if-cached") { return .refuse("only-if-cached") }
    guard !isOnline else {
      if case .failed(let status) = lesson, servesInstead(of: status, found, request) {
        return .serve(found, detail: Self.detail(ofFailure: status))
      }
      return .ask(found)
    }
    // Nobody can be asked: RFC 9111, 4.2.4.
    let serves = policy.servesEverythingOffline || !forbidsStale(found, request)
    return serves && request.isBegun(by: found)
      ? .serve(found, detail: detail) : .refuse("offline")
  }

  static func detail(ofFailure status: Int) -> String {
    status == 0 ? "unreachable" : "stale-if-error"
  }

  /// Whether a stored response answers a request as it is.
  private func isUsable(
    _ found: ResponseStore.Found, _ freshness: Freshness, _ request: HTTPCacheRequest
  ) -> Bool {
    let (control, asked) = (found.response.control, request.control)
    guard !control.has("no-cache"), !asked.has("no-cache"), !asked.isTooLong else { return false }
    let isFresh = freshness.isFresh && found.isValid
    if let most = asked.seconds("max-age"), freshness.age > most {
      // RFC 8246: what never changes is not asked about while it is fresh.
      guard isFresh, control.has("immutable") else { return false }
    }
    if let least = asked.seconds("min-fresh"), freshness.lifetime - freshness.age < least {
      return false
    }
    if isFresh { return true }
    guard asked.has("max-stale"), !control.has("must-revalidate") else { return false }
    return asked.isBare("max-stale") || freshness.staleness <= asked.seconds("max-stale") ?? 0
  }

  /// Whether a response that is fresh no more may serve at all for a request that has no wish
  /// which it does not meet.
  private func serves(
    _ found: ResponseStore.Found, _ freshness: Freshness, _ request: HTTPCacheRequest
  ) -> Bool {
    guard !forbidsStale(found, request), request.control.seconds("min-fresh") == nil else {
      return false
    }
    return request.control.seconds("max-age").map { freshness.age <= $0 } ?? true
  }

  /// Whether a stored response must not serve without asking (RFC 9111, 4.2.4).
  func forbidsStale(_ found: ResponseStore.Found, _ request: HTTPCacheRequest) -> Bool {
    let control = found.response.control
    return control.has("must-revalidate") || control.has("no-cache") || control.isTooLong
      || request.control.has("no-cache")
  }

  /// Whether a stored response serves in place of an error (RFC 5861, 4).
  /// - Parameter status: what the server has answered; 0 where it cannot be reached.
  func servesInstead(
    of status: Int, _ found: ResponseStore.Found, _ request: HTTPCacheRequest
  ) -> Bool {
    guard !forbidsStale(found, request), request.isBegun(by: found),
      [0, 500, 502, 503, 504].contains(status)
    else { return false }
    let staleness = Freshness(found.response, now: shelf.now).staleness
    let said = [request.control, found.response.control].compactMap {
      $0.seconds("stale-if-error")
    }
    if let bound = said.max() { return staleness <= bound }
    let bound = status == 0 ? policy.staleIfUnreachable : policy.staleIfError
    guard let bound else { return true }
    return bound > .zero && staleness <= bound.components.seconds
  }
}
