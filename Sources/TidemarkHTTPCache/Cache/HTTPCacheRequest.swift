internal import TidemarkHTTP
internal import TidemarkSyncProtocol

/// A request as the cache looks at it.
struct HTTPCacheRequest: Sendable {
  /// Longest address of which answers are kept.
  static let longestAddress = 65_536

  /// The message for the server, with the fields that go out.
  var message: HTTPTransportRequest
  /// The address; nil for what is none.
  let address: HTTPAddress?
  let control: CacheControl
  /// The part of the content that is asked for; nil for all of it.
  let range: ByteRange?

  init(_ request: HTTPTransportRequest) {
    message = request
    let headers = request.sentHeaders
    message.headers = headers
    address = HTTPAddress(request.url, longest: Self.longestAddress)
    // The older way to say the same (RFC 9111, 5.4).
    let asksAnew =
      headers["cache-control"] == nil
      && headers["pragma"]?.lowercased().contains("no-cache") == true
    control = CacheControl(asksAnew ? "no-cache" : headers["cache-control"])
    // Ranges are for `GET` alone (RFC 9110, 14.2).
    range = request.method == "GET" ? headers["range"].flatMap { ByteRange($0) } : nil
  }

  var isHead: Bool { message.method == "HEAD" }

  /// Whether the cache may answer it: several ranges, and what is only to be done upon a condition,
  /// are the server's.
  var isCacheable: Bool {
    guard isHead || message.method == "GET", address != nil else { return false }
    guard isHead || message.headers["range"] == nil || range != nil else { return false }
    return message.headers["if-match"] == nil && message.headers["if-unmodified-since"] == nil
  }

  /// Whether it has a condition of its own, which 304 answers.
  var hasCondition: Bool {
    message.headers["if-none-match"] != nil || message.headers["if-modified-since"] != nil
  }

  /// Whether it may change something at the server (RFC 9110, 9.2.1).
  var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(message.method) }

  /// The reason why it is handed on (RFC 9211, 2.2).
  var bypass: String {
    guard isSafe else { return "fwd=method" }
    return address == nil ? "fwd=bypass; detail=address" : "fwd=request"
  }

  /// Requests that the same response answers.
  var gate: String {
    let headers = message.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    return ([message.method, message.url] + headers).joined(separator: "\n")
  }

  // MARK: Ranges

  /// The part of a stored response that is asked for; nil for all of it.
  func range(of response: StoredResponse) -> ByteRange? {
    guard response.status == 200, Preconditions.allowsRange(of: response, message.headers) else {
      return nil
    }
    return range
  }

  /// The bytes of a stored response that are asked for.
  /// - Returns: nil where it has none of them.
  func bytes(of found: ResponseStore.Found) -> Range<Int>? {
    let total = found.content.total
    return range(of: found.response).map { $0.resolved(in: total) } ?? 0..<total
  }

  /// Whether a stored response has all that is asked for.
  func isHeld(by found: ResponseStore.Found) -> Bool {
    guard found.response.isPartial, !isHead, let bytes = bytes(of: found) else { return true }
    return found.content.end(from: bytes.lowerBound) >= bytes.upperBound
  }

  /// Whether a stored response has something of it that is an answer: the beginning of a range is.
  func isBegun(by found: ResponseStore.Found) -> Bool {
    if isHeld(by: found) { return true }
    guard range(of: found.response) != nil, let bytes = bytes(of: found) else { return false }
    return found.content.end(from: bytes.lowerBound) > bytes.lowerBound
  }
}
