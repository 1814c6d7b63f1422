import TidemarkHTTP

/// The responses that a private cache may have by RFC 9111, and for what it may use each of them.
///
/// It is as lax as the standard: a cache that stores less is right, too. It forgets a response
/// where keeping it would be wrong.
struct RuleModel {
  /// A response that may be stored.
  struct Response {
    let status: Int
    var headers: [String: String]
    let body: [UInt8]
    /// When its head came, or was last validated: seconds since 1970.
    var time: Int64
    /// The requests that were answered with it by the origin, their fields.
    var requests: [[String: String]]

    init(
      _ answer: HTTPTransportAnswer, _ content: [UInt8], to request: [String: String],
      at time: Int64
    ) {
      status = answer.status
      headers = answer.headers
      body = content
      self.time = time
      requests = [request]
    }

    /// The directives, each with its argument.
    var control: [String: Int64] { RuleModel.directives(headers["cache-control"]) }

    /// RFC 9111, 4.1.
    func isSelected(by request: [String: String]) -> Bool {
      guard let vary = headers["vary"]?.lowercased() else { return true }
      let names = vary.split { $0 == "," || $0 == " " }.map(String.init)
      guard !names.contains("*") else { return false }
      return requests.contains { former in
        names.allSatisfy { former[$0] == request[$0] }
      }
    }

    /// The same for all requests but those which select what this one does; nil for none of them.
    func without(_ request: [String: String]) -> Response? {
      var rest = self
      rest.requests = requests.filter { former in
        var single = self
        single.requests = [former]
        return !single.isSelected(by: request)
      }
      return rest.requests.isEmpty ? nil : rest
    }

    /// Seconds since the origin made the response (RFC 9111, 4.2.3), where an answer takes no time.
    func age(at now: Int64) -> Int64 {
      let date = headers["date"].flatMap { HTTPDates.seconds($0) } ?? time
      let told = headers["age"].flatMap { Int64($0) } ?? 0
      return max(0, time - date, told) + now - time
    }

    /// Seconds for which the response is fresh (RFC 9111, 4.2.1 and 4.2.2).
    var lifetime: Int64 {
      if let seconds = control["max-age"] { return seconds }
      let date = headers["date"].flatMap { HTTPDates.seconds($0) } ?? time
      if let expires = headers["expires"] { return (HTTPDates.seconds(expires) ?? 0) - date }
      guard let modified = headers["last-modified"].flatMap({ HTTPDates.seconds($0) }) else {
        return 0
      }
      return min(86_400, max(0, date - modified) / 10)
    }

    func isFresh(at now: Int64) -> Bool { lifetime > age(at: now) }
  }

  /// Why what is stale may serve.
  enum Need { case none, unreachable, failing }

  private(set) var responses: [String: [Response]] = [:]
  /// The fields of the last request of each address, where its answer was stored.
  private var plain: [String: [String: String]] = [:]

  static func directives(_ field: String?) -> [String: Int64] {
    var all: [String: Int64] = [:]
    for part in (field ?? "").split(separator: ",") {
      let words = part.split(separator: "=").map { $0.filter { $0 != " " } }
      all[words[0].lowercased()] = words.count > 1 ? Int64(words[1]) ?? 0 : -1
    }
    return all
  }

  // MARK: Serving

  /// Why a response may not answer a request without the origin; nil where it may.
  static func objection(
    to response: Response, for request: [String: String], at now: Int64, _ need: Need
  ) -> String? {
    let (control, asked) = (response.control, directives(request["cache-control"]))
    if !response.isSelected(by: request) { return "it varies by what this request has otherwise" }
    if control["no-store"] != nil { return "it must not be stored" }
    if control["no-cache"] != nil { return "it must be asked about each time" }
    if asked["no-cache"] != nil { return "the request wants an answer of the origin" }
    let staleness = response.age(at: now) - response.lifetime
    let isTooOld = asked["max-age"].map { response.age(at: now) > $0 } ?? false
    if isTooOld, need == .none { return "it is older than the request allows" }
    guard staleness >= 0 || isTooOld else { return nil }
    if control["must-revalidate"] != nil { return "it is stale and must be asked about" }
    if let most = asked["max-stale"], most < 0 || staleness <= most { return nil }
    switch need {
    case .none: return "it is stale"
    case .unreachable: return nil
    case .failing:
      let allowed = [control["stale-if-error"], asked["stale-if-error"]].compactMap { $0 }.max()
      return (allowed ?? -1) >= staleness ? nil : "it is stale, and nothing allows that upon errors"
    }
  }

  /// Whether a cache must not ask the server: the last answer to an equal request is fresh by its
  /// `max-age`, and no other directive or field allows a cache to ask.
  func isPlainlyFresh(_ path: String, _ request: [String: String], at now: Int64) -> Bool {
    guard plain[path] == request, let last = responses[path]?.last, last.status == 200,
      request["range"] == nil, last.requests.last == request,
      request["cache-control"] == nil, let most = last.control["max-age"],
      last.control.keys.allSatisfy({ ["max-age", "private", "public"].contains($0) }),
      last.headers["vary"]?.contains("*") != true
    else { return false }
    return most > last.age(at: now)
  }

  // MARK: What answers change

  /// An answer to a `GET` came whole.
  /// - Parameters:
  ///   - content: all of what the answer gives, of which 206 gives a part.
  ///   - isPart: whether no more than a part has come.
  mutating func stored(
    _ answer: HTTPTransportAnswer, _ content: [UInt8], _ path: String, _ request: [String: String],
    at now: Int64, isPart: Bool
  ) {
    // An error of the server says nothing about what is stored, and a part need not.
    if answer.status < 500, !isPart, answer.status != 416 {
      responses[path] = responses[path]?.compactMap { $0.without(request) }
    }
    let response = Response(answer, content, to: request, at: now)
    let isForbidden =
      response.control["no-store"] != nil
      || Self.directives(request["cache-control"])["no-store"] != nil
      || response.headers["vary"]?.contains("*") == true
    plain[path] = isForbidden || isPart ? nil : request
    if isPart {
      // With what is there of the same content it has the fields of both (RFC 9111, 3.4).
      for var joined in responses[path] ?? [] where joined.body == content {
        freshen(&joined, answer, at: now)
        joined.requests.append(request)
        if !isForbidden { responses[path]?.append(joined) }
      }
    }
    if !isForbidden { responses[path, default: []].append(response) }
  }

  /// The origin says that the content which it answers with is the one that is stored.
  mutating func validated(
    _ answer: HTTPTransportAnswer, _ body: [UInt8], _ path: String, _ request: [String: String],
    at now: Int64
  ) {
    // A request that must not be stored renews nothing, but may learn that nothing may be kept.
    let isUnstored = Self.directives(request["cache-control"])["no-store"] != nil
    let isForbidden = Self.directives(answer.headers["cache-control"])["no-store"] != nil
    if isUnstored, !isForbidden { return }
    // After a response with `no-store` a cache is free to drop the other variants of the URL, too.
    if isForbidden { plain[path] = nil }
    if responses[path]?.contains(where: { $0.body == body }) != true {
      // The cache has kept what it could have given up.
      responses[path, default: []].append(Response(answer, body, to: request, at: now))
    }
    renew(path, answer, request, at: now) { $0.body == body ? .renewed : .other }
  }

  /// The answer to a `HEAD` describes what a `GET` would get now (RFC 9111, 4.3.5).
  mutating func described(
    _ answer: HTTPTransportAnswer, _ path: String, _ request: [String: String], at now: Int64
  ) {
    plain[path] = nil
    let isUnstored = Self.directives(request["cache-control"])["no-store"] != nil
    // A cache may heed what a request has learnt of which nothing must be stored, and need not.
    let former = isUnstored ? responses[path] ?? [] : []
    defer { responses[path, default: []] += former }
    renew(path, answer, request, at: now) { response in
      guard response.isSelected(by: request) else { return .other }
      guard response.status == 200 || response.status == 206 else { return .void }
      let differs = ["etag", "last-modified", "content-length"].contains { name in
        guard let said = answer.headers[name] else { return false }
        // The length of a stored body is known even where no field has told it.
        if name == "content-length" { return Int(said) != response.body.count }
        return said != response.headers[name]
      }
      return differs ? .void : .renewed
    }
  }

  private enum Fate { case other, renewed, void }

  /// Gives fresh fields to the response that an answer speaks of. Where several may be meant, a
  /// cache may have any one of them, so that each stays as it was besides.
  private mutating func renew(
    _ path: String, _ answer: HTTPTransportAnswer, _ request: [String: String], at now: Int64,
    _ fate: (Response) -> Fate
  ) {
    let former = responses[path] ?? []
    let isAmbiguous = former.count { fate($0) == .renewed } > 1
    var all = former.filter { fate($0) == .other || fate($0) == .renewed && isAmbiguous }
    // An answer is about what its request selects; others may have it still as it was.
    all += former.filter { fate($0) != .other }.compactMap { $0.without(request) }
    for var response in former where fate(response) == .renewed {
      freshen(&response, answer, at: now)
      response.requests.append(request)
      if response.control["no-store"] == nil { all.append(response) }
    }
    responses[path] = all
  }

  private func freshen(_ response: inout Response, _ answer: HTTPTransportAnswer, at now: Int64) {
    // An answer that does not say when it was made was made now (RFC 9110, 6.6.1).
    response.headers["age"] = nil
    response.headers["date"] = nil
    for (name, value) in answer.headers where !["content-length", "content-range"].contains(name) {
      response.headers[name] = value
    }
    response.time = now
  }

  /// A `HEAD` has met an error, upon which a cache may give up what is stored.
  mutating func refused(_ path: String) { plain[path] = nil }

  /// Nothing of an address may serve any more.
  mutating func void(_ path: String) {
    responses[path] = nil
    plain[path] = nil
  }
}
