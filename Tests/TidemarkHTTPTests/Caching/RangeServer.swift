import TidemarkEngine
import TidemarkHTTP
import TidemarkSyncProtocol

/// A server of one content that answers ranges, as a transport.
final class RangeServer: HTTPTransport {
  struct State {
    var content: [UInt8]
    var tag = "\"0\""
    var control = "max-age=600"
    /// Bytes of a body after which the connection breaks.
    var breaksAfter = Int.max
    /// Whether it can be reached.
    var isUp = true
    /// Bytes of bodies that it has sent.
    var sent = 0
    var requests: [HTTPTransportRequest] = []
  }

  let state: Lock<State>

  init(_ content: [UInt8]) { state = Lock(State(content: content)) }

  /// Says what became of the content.
  func change(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

  func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    let (answer, breaksAfter) = try state.withLock { state in
      state.requests.append(request)
      guard state.isUp else { throw PeerError(.unavailable, "it is down") }
      return (Self.answer(request, state), state.breaksAfter)
    }
    try head(HTTPTransportAnswer(status: answer.status, headers: answer.headers))
    let bytes = answer.body.prefix(breaksAfter)
    for start in stride(from: 0, to: bytes.count, by: 1_000) {
      let piece = Array(bytes[start...].prefix(1_000))
      state.withLock { $0.sent += piece.count }
      try body(piece)
      try Task.checkCancellation()
    }
    guard bytes.count == answer.body.count else { throw PeerError(.unavailable, "it broke") }
  }

  private static func answer(_ request: HTTPTransportRequest, _ state: State) -> HTTPTransportAnswer
  {
    let total = state.content.count
    var answer = HTTPTransportAnswer(
      status: 200,
      headers: ["cache-control": state.control, "etag": state.tag, "accept-ranges": "bytes"])
    if request.headers["if-none-match"] == state.tag {
      answer.status = 304
      return answer
    }
    var range = 0..<total
    let asked = request.headers["range"]?.dropFirst(6).split(
      separator: "-", omittingEmptySubsequences: false)
    if let asked, request.headers["if-range"] ?? state.tag == state.tag {
      if let first = Int(asked[0]) {
        range = min(first, total)..<max(min(first, total), min(total, (Int(asked[1]) ?? total) + 1))
      } else {
        range = max(0, total - (Int(asked[1]) ?? 0))..<total
      }
      guard !range.isEmpty else {
        return HTTPTransportAnswer(status: 416, headers: ["content-range": "bytes */\(total)"])
      }
      answer.status = 206
      answer.headers["content-range"] =
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
    }
    answer.body = Array(state.content[range])
    answer.headers["content-length"] = "\(range.count)"
    return answer
  }

  func close() async {}
}
