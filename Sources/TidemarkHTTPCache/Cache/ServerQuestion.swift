internal import TidemarkHTTP
internal import TidemarkSyncProtocol

/// A request as it is sent to the server, with what it asks of what is stored.
struct ServerQuestion: Sendable {
  let request: HTTPCacheRequest
  let address: HTTPAddress
  /// The state before.
  let stamp: ResponseStore.Stamp
  private(set) var message: HTTPTransportRequest
  /// The response that it is about, that its answer is to complete, or that is of no use.
  let stored: ResponseStore.Found?
  /// Whether an answer may speak of what is stored.
  let isConditional: Bool
  /// The bytes for the reader, where the first of them are here and the server is asked for the
  /// others; and where these begin.
  private(set) var completed: (bytes: Range<Int>, missing: Int)?
  /// When it is sent, in milliseconds since 1970.
  let sent: Int64

  init(
    _ request: HTTPCacheRequest, _ address: HTTPAddress, _ found: ResponseStore.Found?,
    _ stamp: ResponseStore.Stamp, now: Int64, isConditional: Bool = true
  ) {
    self.request = request
    self.address = address
    self.stamp = stamp
    self.isConditional = isConditional
    sent = now
    message = request.message
    stored = found
    guard let found, isConditional else { return }
    guard !request.isHeld(by: found), let bytes = request.bytes(of: found) else {
      // A `HEAD` is sent without conditions: its answer is compared (RFC 9111, 4.3.5).
      guard !request.isHead else { return }
      message.headers = Preconditions.adding(of: found.response, to: message.headers)
      return
    }
    // Its own condition asks about all of it; and nothing is to complete where nothing is here.
    let missing = found.content.end(from: bytes.lowerBound)
    guard !request.hasCondition, missing > bytes.lowerBound,
      let tag = found.response.headers["etag"]
    else { return }
    // RFC 9111, 3.4: what is missing, or all of another content.
    completed = (bytes, missing)
    message.headers["range"] = ByteRange.field(
      missing..<bytes.upperBound, of: found.content.total)
    message.headers["if-range"] = tag
  }
}

/// The turn that the head of a server's answer gives the exchange.
enum ServerTurn: Sendable {
  case waiting
  /// The answer is handed on.
  case passed(Passed)
  /// The stored response is still right.
  case notModified(HTTPTransportAnswer, ResponseStore.Found)
  /// The stored response serves in place of an error.
  case failed(Int, ResponseStore.Found)
  /// The server speaks of another response than the one that it was asked about.
  case confused

  /// An answer for the reader.
  struct Passed: Sendable {
    var head: HTTPTransportAnswer
    /// The bytes of the body that are stored already and come first.
    var before: (StoredContent, Range<Int>)?
    /// The status of the server's answer.
    var status: Int
    /// The response that is kept: the whole, also where a part of it comes.
    var response: StoredResponse
    /// The bytes of it that come; nil where a part of them is of no use.
    var range: Range<Int>?
    var isToBeKept: Bool
  }
}

extension HTTPCache {
  /// The meaning of the head of an answer.
  func turn(_ answer: HTTPTransportAnswer, _ asked: ServerQuestion) -> ServerTurn {
    let request = asked.request
    if answer.status >= 500, let stored = asked.stored,
      servesInstead(of: answer.status, stored, request)
    {
      return .failed(answer.status, stored)
    }
    if let stored = asked.stored, let completed = asked.completed {
      switch answer.status {
      case 206: return completion(answer, asked, stored, completed.bytes, completed.missing)
      // The server has answered another question.
      case 304, 416: return .confused
      default: break
      }
    } else if answer.status == 304, asked.isConditional, let stored = asked.stored,
      !request.isHead, request.isHeld(by: stored)
    {
      if Preconditions.selects(answer.headers, stored.response) {
        return .notModified(answer, stored)
      }
      // The reader's own condition may be what was met.
      if !request.hasCondition { return .confused }
    }
    let response = response(answer, asked)
    let partial = PartialAnswer(response)
    let whole = response.status == 206 ? partial?.response : response
    let forwarded = asked.stored.map { request.isHeld(by: $0) ? "fwd=stale" : "fwd=partial" }
    return passed(
      ServerTurn.Passed(
        head: answer, status: answer.status, response: whole ?? response, range: partial?.range,
        isToBeKept: whole != nil),
      forwarded ?? "fwd=uri-miss", request)
  }

  /// A part that completes what is here (RFC 9111, 3.4).
  private func completion(
    _ answer: HTTPTransportAnswer, _ asked: ServerQuestion, _ stored: ResponseStore.Found,
    _ bytes: Range<Int>, _ missing: Int
  ) -> ServerTurn {
    let isRange = asked.request.range(of: stored.response) != nil
    guard let partial = PartialAnswer(response(answer, asked)),
      partial.response.headers["etag"] == stored.response.headers["etag"],
      partial.total == stored.content.total, partial.range.lowerBound == missing,
      partial.range.upperBound == bytes.upperBound
        || isRange && partial.range.upperBound < bytes.upperBound
    else { return .confused }
    var response = stored.response
    response.freshen(
      answer.headers, requestTime: partial.response.requestTime, responseTime: shelf.now)
    var head = HTTPTransportAnswer(status: 200, headers: response.headers)
    head.setCookies = answer.setCookies
    if isRange { head.tellRange(bytes.lowerBound..<partial.range.upperBound, of: partial.total) }
    return passed(
      ServerTurn.Passed(
        head: head, before: (stored.content, bytes.lowerBound..<missing), status: 206,
        response: response, range: partial.range, isToBeKept: true),
      "fwd=partial", asked.request)
  }

  private func response(
    _ answer: HTTPTransportAnswer, _ asked: ServerQuestion
  ) -> StoredResponse {
    StoredResponse(
      status: answer.status, headers: StoredResponse.storable(answer.headers),
      requestTime: min(asked.sent, shelf.now), responseTime: shelf.now)
  }

  /// Says what becomes of an answer that may be kept as far as its range goes.
  private func passed(
    _ answer: ServerTurn.Passed, _ forwarded: String, _ request: HTTPCacheRequest
  ) -> ServerTurn {
    var passed = answer
    passed.isToBeKept =
      passed.isToBeKept && !request.isHead && passed.response.encoded() != nil
      && Storability.allows(passed.response, request: request.control)
    // A body that breaks off, or is too long without having said so, is not kept all the same.
    let length = passed.head.contentLength ?? 0
    let stored = passed.isToBeKept && length <= policy.longestBody ? "; stored" : ""
    passed.head.note("\(forwarded); fwd-status=\(passed.status)\(stored)")
    return .passed(passed)
  }
}
