/// Whether a response may be kept (RFC 9111, 3).
enum Storability {
  /// Statuses of which the cache knows what they ask of it (RFC 9111, 3, and RFC 9110, 15).
  private static let understood: Set<Int> = Freshness.heuristicStatuses.union([302, 303, 307, 451])

  /// - Parameters:
  ///   - response: the response.
  ///   - request: what the request says of being cached.
  static func allows(_ response: StoredResponse, request: CacheControl) -> Bool {
    let control = response.control
    guard response.status >= 200, response.status != 206, response.status != 304,
      !control.isTooLong, !request.isTooLong, !request.has("no-store")
    else { return false }
    if control.has("must-understand") {
      // A status that is understood overrides the `no-store` beside it (RFC 9111, 5.2.2.3).
      guard understood.contains(response.status) else { return false }
    } else if control.has("no-store") {
      return false
    }
    guard response.headers["content-range"] == nil, Vary(response) != nil else { return false }
    return Freshness.isExplicit(response) || control.has("public") || control.has("private")
      || Freshness.heuristicStatuses.contains(response.status)
  }
}

/// The fields of a request on which a response depends (RFC 9111, 4.1).
struct Vary: Sendable, Hashable {
  /// Most fields that are looked at; who names more is not cached.
  static let mostFields = 32

  /// In lower case, sorted, each once.
  let names: [String]

  /// - Returns: nil where the response depends on what no request says, or on too much.
  init?(_ response: StoredResponse) {
    guard let field = response.headers["vary"] else {
      self.init(names: [])
      return
    }
    guard field.utf8.count <= 4_096 else { return nil }
    self.init(names: HTTPText.list(field))
  }

  init?(names: [String]) {
    let names = Set(names.map { $0.lowercased() })
    guard !names.contains("*"), names.count <= Self.mostFields else { return nil }
    self.names = names.sorted()
  }

  /// The values of these fields in a request, as one text; spaces in lists make no difference.
  func selecting(_ headers: [String: String]) -> String {
    names.map { name in
      "\(name)=" + (headers[name].map { "1" + HTTPText.list($0).joined(separator: ",") } ?? "0")
    }.joined(separator: "\n")
  }
}
