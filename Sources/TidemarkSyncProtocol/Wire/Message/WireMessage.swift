/// A message of the protocol: a request, an answer, or an error.
public enum WireMessage: Sendable, Hashable {
  case helloRequest(HelloRequest)
  case helloAnswer(HelloAnswer)
  case pushRequest(PushRequest)
  case pushAnswer(PushAnswer)
  case pullRequest(PullRequest)
  case pullAnswer(PullAnswer)
  case valuesRequest(ValuesRequest)
  case valuesAnswer(ValuesAnswer)
  case digestRequest(DigestRequest)
  case digestAnswer(DigestAnswer)
  case downloadRequest(DownloadRequest)
  case downloadAnswer(DownloadAnswer)
  case attachRequest(AttachRequest)
  case attachAnswer(AttachAnswer)
  case fetchRequest(ContentRequest)
  case fetchAnswer(ContentAnswer)
  /// Sent instead of an answer.
  case error(PeerError)

  /// The kind of a message, as in a frame: `WireProtocol.md`, section "Message types". 0x06 and
  /// 0x86 had another meaning once, and are not assigned again.
  public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
    case helloRequest = 0x01
    case pushRequest = 0x02
    case pullRequest = 0x03
    case valuesRequest = 0x04
    case digestRequest = 0x05
    case downloadRequest = 0x07
    case attachRequest = 0x08
    case fetchRequest = 0x09
    case helloAnswer = 0x81
    case pushAnswer = 0x82
    case pullAnswer = 0x83
    case valuesAnswer = 0x84
    case digestAnswer = 0x85
    case downloadAnswer = 0x87
    case attachAnswer = 0x88
    case fetchAnswer = 0x89
    case error = 0xff

    /// Whether it is a request, which must have no field that its reader does not know.
    public var isRequest: Bool { rawValue < 0x80 }
  }

  /// The kind of the message.
  public var kind: Kind {
    switch self {
    case .helloRequest: .helloRequest
    case .helloAnswer: .helloAnswer
    case .pushRequest: .pushRequest
    case .pushAnswer: .pushAnswer
    case .pullRequest: .pullRequest
    case .pullAnswer: .pullAnswer
    case .valuesRequest: .valuesRequest
    case .valuesAnswer: .valuesAnswer
    case .digestRequest: .digestRequest
    case .digestAnswer: .digestAnswer
    case .downloadRequest: .downloadRequest
    case .downloadAnswer: .downloadAnswer
    case .attachRequest: .attachRequest
    case .attachAnswer: .attachAnswer
    case .fetchRequest: .fetchRequest
    case .fetchAnswer: .fetchAnswer
    case .error: .error
    }
  }
}
