internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Puts an answer together from its parts, up to a number of bytes.
final class AnswerCollector: Sendable {
  private let limit: Int
  private let received = Lock<HTTPTransportAnswer?>(nil)

  /// Whether the request was a `HEAD`, whose answer tells a length of what does not come.
  private let isHead: Bool

  init(limit: Int, isHead: Bool = false) {
    self.limit = limit
    self.isHead = isHead
  }

  /// Takes the beginning.
  func take(head: HTTPTransportAnswer) throws {
    if !hasNoBody(head) { try head.checkLength(limit: limit) }
    received.withLock { $0 = head }
  }

  /// Takes a piece of the body.
  func take(_ bytes: [UInt8]) throws {
    try received.withLock { (answer: inout HTTPTransportAnswer?) throws in
      let count = answer?.body.count ?? 0
      guard bytes.count <= limit - count else { throw HTTPTransportAnswer.tooLong(limit) }
      answer?.body.append(contentsOf: bytes)
    }
  }

  /// Whether an answer ends with its head (RFC 9110, 6.4.1).
  private func hasNoBody(_ answer: HTTPTransportAnswer) -> Bool {
    isHead || answer.status == 204 || answer.status == 304
  }

  /// All that came.
  func answer() throws -> HTTPTransportAnswer {
    guard let answer = received.withLock({ $0 }) else {
      throw PeerError(.unavailable, "the server closed the connection without an answer")
    }
    // A connection that breaks is not always told apart from one that ends.
    if !hasNoBody(answer), let text = answer.headers["content-length"],
      answer.headers["content-encoding"] == nil,
      let length = HTTPHeaders.contentLength(text), length != answer.body.count
    {
      throw PeerError(.unavailable, "the connection broke in the middle of the answer")
    }
    return answer
  }
}
