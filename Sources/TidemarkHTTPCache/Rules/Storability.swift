internal import TidemarkSyncProtocol

/// Whether a response may be kept (RFC 9111, 3).
enum Storability {
  /// Statuses of which the cache knows what they ask of it (RFC 9111, 3, and RFC 9110, 15).
  private static let understood: Set<Int> = Freshness.heuristicStatuses.union([302, 303, 307, 451])

  /// Whether an answer that is not kept says all the same that the former one is none any more:
  /// the server has something else to say of the address, or nothing to this user.
  static func supersedes(_ status: Int) -> Bool {
    (200..<400).contains(status) || [401, 403, 404, 405, 410, 451].contains(status)
  }

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

/// An answer of which a cache may keep a part (RFC 9111, 3.3).
struct PartialAnswer: Sendable {
  /// The response as it is as a whole.
  let response: StoredResponse
  /// The bytes that the answer has.
  let range: Range<Int>
  let total: Int

  /// - Returns: nil for what cannot be put together with other parts: that takes a strong tag, and
  ///   a length of all (RFC 9111, 3.4).
  init?(_ answer: StoredResponse) {
    guard let tag = answer.headers["etag"], Preconditions.isStrong(tag) else { return nil }
    var response = answer
    if answer.status == 206, let content = ContentRange(answer.headers["content-range"]) {
      guard answer.length == nil || answer.length == content.range.count else { return nil }
      (range, total) = (content.range, content.total)
    } else if answer.status == 200, let length = answer.length, length > 0,
      answer.headers["accept-ranges"]?.lowercased() == "bytes"
    {
      (range, total) = (0..<length, length)
    } else {
      return nil
    }
    response.status = 200
    response.headers["content-range"] = nil
    response.headers["content-length"] = "\(total)"
    self.response = response
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
    self.init(names: HTTPHeaders.list(field))
  }

  init?(names: [String]) {
    let names = Set(names.map { $0.lowercased() })
    guard !names.contains("*"), names.count <= Self.mostFields else { return nil }
    self.names = names.sorted()
  }

  /// The values of these fields in a request, as one text; spaces in lists make no difference.
  func selecting(_ headers: [String: String]) -> String {
    names.map { name in
      "\(name)=" + (headers[name].map { "1" + HTTPHeaders.list($0).joined(separator: ",") } ?? "0")
    }.joined(separator: "\n")
  }
}
