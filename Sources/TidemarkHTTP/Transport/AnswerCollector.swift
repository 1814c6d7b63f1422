internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Puts an answer together from its parts, up to a number of bytes.
package final class AnswerCollector: Sendable {
  private let limit: Int
  private let received = Lock<HTTPTransportAnswer?>(nil)

  /// Whether the request was a `HEAD`.
  private let isHead: Bool

  package init(limit: Int, isHead: Bool = false) {
    self.limit = limit
    self.isHead = isHead
  }

  /// Takes the beginning.
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

  /// All that came.
  package func answer() throws -> HTTPTransportAnswer {
    guard let answer = received.withLock({ $0 }) else { throw HeadLines.noAnswer }
    // A connection that breaks is not always told apart from one that ends.
    if !answer.hasNoBody(isHead: isHead), let length = answer.contentLength,
      length != answer.body.count
    {
      throw PeerError(.unavailable, "the connection broke in the middle of the answer")
    }
    return answer
  }
}
