/// Parts that several kinds of messages have.
extension WireMessage {
  /// The range of the feed in an answer; nil where it has none.
  package var range: FeedRange? {
    switch self {
    case .helloAnswer(let answer): answer.range
    case .pushAnswer(let answer): answer.range
    case .pullAnswer(let answer): answer.range
    case .valuesAnswer(let answer): answer.range
    case .digestAnswer(let answer): answer.range
    case .attachAnswer(let answer): answer.range
    default: nil
    }
  }

  /// The entries of the feed in an answer.
  package var entries: [FeedEntry] {
    switch self {
    case .pullAnswer(let answer): answer.entries
    case .valuesAnswer(let answer): answer.entries
    case .pushAnswer(let answer): answer.current
    default: []
    }
  }
}

extension Peer {
  /// Makes the call that a request stands for.
  /// - Throws: what the peer throws; ``PeerError`` of kind `malformed` for any other message.
  package func answer(to call: WireMessage) async throws -> WireMessage {
    switch call {
    case .helloRequest(let request): .helloAnswer(try await hello(request))
    case .pushRequest(let request): .pushAnswer(try await push(request))
    case .pullRequest(let request): .pullAnswer(try await pull(request))
    case .valuesRequest(let request): .valuesAnswer(try await values(request))
    case .digestRequest(let request): .digestAnswer(try await digest(request))
    case .attachRequest(let request): .attachAnswer(try await attach(request))
    case .fetchRequest(let request): .fetchAnswer(try await fetch(request))
    default: throw PeerError(.malformed, "the message is no call of a client")
    }
  }
}
