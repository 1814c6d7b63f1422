internal import TidemarkHTTP
internal import TidemarkSyncProtocol

/// Validators, and what is asked of them (RFC 9110, 8.8 and 13; RFC 9111, 4.3).
enum Preconditions {
  /// The fields with which a server is asked whether a stored response is still right.
  /// - Parameter headers: those of the request, which keep what they ask for themselves.
  static func adding(
    of stored: StoredResponse, to headers: [String: String]
  ) -> [String: String] {
    var headers = headers
    if let tag = stored.headers["etag"], isTag(tag) {
      // The reader's own tags are asked about in the same breath (RFC 9111, 4.3.1).
      let asked = headers["if-none-match"]
      if asked != "*", asked.map({ !tags($0).contains(tag) }) ?? true {
        headers["if-none-match"] = asked.map { "\($0), \(tag)" } ?? tag
      }
    }
    if let modified = stored.headers["last-modified"], HTTPDate.seconds(modified) != nil,
      headers["if-modified-since"] == nil
    {
      headers["if-modified-since"] = modified
    }
    return headers
  }

  /// Whether a 304 says that a stored response is right (RFC 9111, 4.3.4).
  static func selects(_ headers: [String: String], _ stored: StoredResponse) -> Bool {
    if let tag = headers["etag"] {
      guard let ours = stored.headers["etag"] else { return false }
      // A server that compresses makes a strong tag weak, or longer, and may forget that when it
      // has nothing to compress.
      let coding = stored.headers["content-encoding"].map { "-\($0.lowercased())\"" }
      let plain = coding.flatMap { opaque(ours).hasSuffix($0) ? $0 : nil }
        .map { opaque(ours).dropLast($0.count) + "\"" }
      return opaque(tag) == opaque(ours) || opaque(tag) == plain.map { String($0) }
    }
    if let modified = headers["last-modified"], let ours = stored.headers["last-modified"] {
      return modified == ours
    }
    // One that names nothing answers what was asked.
    return true
  }

  /// Whether the answer to a `HEAD` describes the stored response (RFC 9111, 4.3.5).
  static func describes(_ headers: [String: String], _ stored: StoredResponse) -> Bool {
    for name in ["etag", "last-modified"] {
      if let value = headers[name], value != stored.headers[name] { return false }
    }
    if let text = headers["content-length"], let ours = stored.headers["content-length"] {
      return HTTPHeaders.contentLength(text) == HTTPHeaders.contentLength(ours)
    }
    return true
  }

  /// Whether the reader has what is stored already, so that a 304 is the answer
  /// (RFC 9111, 4.3.2).
  static func isMet(by stored: StoredResponse, _ request: [String: String]) -> Bool {
    guard stored.status == 200 else { return false }
    if let asked = request["if-none-match"] {
      if HTTPHeaders.trimmed(asked) == "*" { return true }
      guard let tag = stored.headers["etag"] else { return false }
      return tags(asked).contains { opaque($0) == opaque(tag) }
    }
    guard let since = request["if-modified-since"].flatMap({ HTTPDate.seconds($0) }) else {
      return false
    }
    let changed = stored.headers["last-modified"] ?? stored.headers["date"]
    let time = changed.flatMap { HTTPDate.seconds($0) } ?? stored.responseTime / 1000
    return time <= since
  }

  /// Whether a range of what is stored is the answer, or all of it (RFC 9110, 13.1.5).
  static func allowsRange(of stored: StoredResponse, _ request: [String: String]) -> Bool {
    guard let asked = request["if-range"] else { return true }
    guard !asked.hasPrefix("\""), !asked.hasPrefix("W/") else {
      return isStrong(asked) && asked == stored.headers["etag"]
    }
    return asked == stored.headers["last-modified"]
  }

  // MARK: Tags

  /// Whether a tag says that contents are equal byte by byte.
  static func isStrong(_ tag: String) -> Bool { tag.hasPrefix("\"") && isTag(tag) }

  private static func isTag(_ tag: String) -> Bool {
    let tag = opaque(tag)
    return tag.count >= 2 && tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.utf8.count <= 1_024
  }

  private static func opaque(_ tag: String) -> String {
    tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag
  }

  /// The tags of a list; commas stand within them, too.
  private static func tags(_ text: String) -> [String] {
    // Within a tag a backslash is one (RFC 9110, 8.8.3).
    CacheControl.split(Array(text.utf8.prefix(CacheControl.longest)), escapes: false)
      .map { HTTPHeaders.trimmed(String(decoding: $0, as: UTF8.self)) }.filter { !$0.isEmpty }
  }
}
