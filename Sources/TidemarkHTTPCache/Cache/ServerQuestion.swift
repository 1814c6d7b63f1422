internal import TidemarkHTTP
internal import TidemarkSyncProtocol

/// A request as it is sent to the server, with what it asks of what is stored.
struct ServerQuestion: Sendable {
  let request: HTTPCacheRequest
  let address: HTTPAddress
  /// The state before.
  let stamp: ResponseShelf.Stamp
  private(set) var message: HTTPTransportRequest
  /// The response that it is about, that its answer is to complete, or that is of no use.
  let stored: ResponseShelf.Found?
  /// Whether an answer may speak of what is stored.
  let isConditional: Bool
  /// The bytes for the reader, where the first of them are here and the server is asked for the
  /// others; and where these begin.
  let completed: (bytes: Range<Int>, missing: Int)?
  /// When it is sent, in milliseconds since 1970.
  let sent: Int64

  init(
    _ request: HTTPCacheRequest, _ address: HTTPAddress, _ found: ResponseShelf.Found?,
    _ stamp: ResponseShelf.Stamp, now: Int64, isConditional: Bool = true
  ) {
    self.request = request
    self.address = address
    self.stamp = stamp
    self.isConditional = isConditional
    sent = now
    message = request.message
    guard let found, isConditional else { (stored, completed) = (found, nil); return }
    guard !request.isHeld(by: found), let bytes = request.bytes(of: found) else {
      (stored, completed) = (found, nil)
      // A `HEAD` is sent without conditions: its answer is compared (RFC 9111, 4.3.5).
      guard !request.isHead else { return }
      message.headers = Preconditions.adding(of: found.response, to: message.headers)
      return
    }
    // Its own condition asks about all of it; and nothing is to complete where nothing is here.
    let missing = found.content.end(from: bytes.lowerBound)
    guard !request.hasCondition, missing > bytes.lowerBound,
      let tag = found.response.headers["etag"]
    else {
      (stored, completed) = (found, nil)
      return
    }
    // RFC 9111, 3.4: what is missing, or all of another content.
    stored = found
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
  /// It has been, as a whole.
  case done(isKept: Bool)
  /// The stored response is still right.
  case notModified(HTTPTransportAnswer)
  /// The stored response serves in place of an error; 0 where the server cannot be reached.
  case failed(Int)
  /// The server speaks of another response than the one that it was asked about.
  case confused

  /// An answer for the reader.
  struct Passed: Sendable {
    var head: AnswerPipe.Part
    var status: Int
    /// The response that is kept.
    var response: StoredResponse
    /// The part of it that comes; nil for the whole.
    var range: Range<Int>?
    /// The same where it breaks off; nil for what is worth nothing then.
    var partial: PartialAnswer?
    var isToBeKept: Bool
  }
}

extension HTTPCache {
  /// The meaning of the head of an answer.
  func turn(_ answer: HTTPTransportAnswer, _ asked: ServerQuestion) -> ServerTurn {
    let request = asked.request
    if answer.status >= 500, servesInstead(of: answer.status, asked.stored, request) {
      return .failed(answer.status)
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
        return .notModified(answer)
      }
      // The reader's own condition may be what was met.
      if !request.hasCondition { return .confused }
    }
    let response = response(answer, asked)
    let partial = PartialAnswer(response)
    // A part is kept as one of the whole.
    let whole = response.status == 206 ? partial?.response : response
    let isToBeKept = isToBeKept(whole, request)
    let forwarded = asked.stored.map { request.isHeld(by: $0) ? "fwd=stale" : "fwd=partial" }
    return .passed(
      ServerTurn.Passed(
        head: head(answer, forwarded ?? "fwd=uri-miss", isToBeKept), status: answer.status,
        response: whole ?? response, range: response.status == 206 ? partial?.range : nil,
        partial: partial, isToBeKept: isToBeKept))
  }

  /// A part that completes what is here (RFC 9111, 3.4).
  private func completion(
    _ answer: HTTPTransportAnswer, _ asked: ServerQuestion, _ stored: ResponseShelf.Found,
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
    let isToBeKept = isToBeKept(response, asked.request)
    var head = HTTPTransportAnswer(status: 200, headers: response.headers)
    head.setCookies = answer.setCookies
    if isRange {
      let range = bytes.lowerBound..<partial.range.upperBound
      head.status = 206
      head.headers["content-range"] = ContentRange.field(range, of: partial.total)
      head.headers["content-length"] = "\(range.count)"
    }
    response.parts = nil
    let before = bytes.lowerBound..<missing
    return .passed(
      ServerTurn.Passed(
        head: self.head(head, "fwd=partial", isToBeKept, status: 206, stored.content, before),
        status: 206, response: response, range: partial.range, partial: partial,
        isToBeKept: isToBeKept))
  }

  private func response(
    _ answer: HTTPTransportAnswer, _ asked: ServerQuestion
  ) -> StoredResponse {
    StoredResponse(
      status: answer.status, headers: StoredResponse.storable(answer.headers),
      requestTime: min(asked.sent, shelf.now), responseTime: shelf.now)
  }

  private func isToBeKept(_ response: StoredResponse?, _ request: HTTPCacheRequest) -> Bool {
    guard let response, !request.isHead else { return false }
    return Storability.allows(response, request: request.control) && response.encoded() != nil
  }

  private func head(
    _ answer: HTTPTransportAnswer, _ forwarded: String, _ isToBeKept: Bool, status: Int? = nil,
    _ content: StoredContent? = nil, _ range: Range<Int> = 0..<0
  ) -> AnswerPipe.Part {
    var answer = answer
    // A body that breaks off, or is too long without having said so, is not kept all the same.
    let length = answer.headers["content-length"].flatMap { HTTPHeaders.contentLength($0) } ?? 0
    let stored = isToBeKept && length <= policy.longestBody ? "; stored" : ""
    answer.note("\(forwarded); fwd-status=\(status ?? answer.status)\(stored)")
    return .head(answer, content, range)
  }
}
