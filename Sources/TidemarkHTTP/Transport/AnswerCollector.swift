internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Assembles a response from its head and the pieces of its body, up to a number of bytes.
package final class AnswerCollector: Sendable {
  private let limit: Int
  private let received = Lock<HTTPTransportAnswer?>(nil)

  /// Whether the request was a `HEAD`.
  private let isHead: Bool

  package init(limit: Int, isHead: Bool = false) {
    self.limit = limit
    self.isHead = isHead
  }

  /// Takes the head of the final response.
  package func take(head: HTTPTransportAnswer) throws {
    guard head.hasNoBody(isHead: isHead) || head.contentLength ?? 0 <= limit else {
      throw HTTPTransportAnswer.tooLong(limit)
    }
    received.withLock { $0 = head }
  }

  /// Takes a piece of the body.
  package func take(_ bytes: [UInt8]) throws {
    try received.withLock { (answer: inout HTTPTransportAnswer?) throws in
      let count = answer?.body.count ?? 0
      guard bytes.count <= limit - count else { throw HTTPTransportAnswer.tooLong(limit) }
      answer?.body.append(contentsOf: bytes)
    }
  }

  /// The whole response.
  package func answer() throws -> HTTPTransportAnswer {
    guard let answer = received.withLock({ $0 }) else { throw HeadLines.noAnswer }
    // Not every library reports a connection that broke in the middle of a body.
    if !answer.hasNoBody(isHead: isHead), let length = answer.contentLength,
      length != answer.body.count
    {
      throw PeerError(.unavailable, "the connection broke in the middle of the answer")
    }
    return answer
  }
}
