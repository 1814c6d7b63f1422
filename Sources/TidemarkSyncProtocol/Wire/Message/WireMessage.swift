/// A message of the protocol: a request, an answer, or an error.
@nonexhaustive
public enum WireMessage: Sendable, Hashable {
  /// A client opens a session and presents its cursor.
  case helloRequest(HelloRequest)
  /// The server answers a hello with the state of the feed.
  case helloAnswer(HelloAnswer)
  /// A client pushes a batch of changes.
  case pushRequest(PushRequest)
  /// The server answers a push with its verdicts.
  case pushAnswer(PushAnswer)
  /// A client asks for a page of the feed.
  case pullRequest(PullRequest)
  /// The server answers a pull with a page of the feed.
  case pullAnswer(PullAnswer)
  /// A client asks for the current contents of some keys.
  case valuesRequest(ValuesRequest)
  /// The server answers with the contents of the keys.
  case valuesAnswer(ValuesAnswer)
  /// A client asks for digests, to find keys that differ.
  case digestRequest(DigestRequest)
  /// The server answers with digests.
  case digestAnswer(DigestAnswer)
  /// A client uploads a part of an attachment or of a large value.
  case attachRequest(AttachRequest)
  /// The server answers an upload with the number of bytes that it has.
  case attachAnswer(AttachAnswer)
  /// A client asks for a part of an attachment or of a large value.
  case fetchRequest(ContentRequest)
  /// The server answers with a part of the content.
  case fetchAnswer(ContentAnswer)
  /// The server sends a failure instead of an answer.
  case error(PeerError)

  /// The kind of a message, as in a frame: `WireProtocol.md`, section "Message types". 0x06,
  /// 0x07, 0x86 and 0x87 had another meaning once, and are not assigned again.
  @nonexhaustive
  public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
    /// The kind byte of a ``WireMessage/helloRequest(_:)``.
    case helloRequest = 0x01
    /// The kind byte of a ``WireMessage/pushRequest(_:)``.
    case pushRequest = 0x02
    /// The kind byte of a ``WireMessage/pullRequest(_:)``.
    case pullRequest = 0x03
    /// The kind byte of a ``WireMessage/valuesRequest(_:)``.
    case valuesRequest = 0x04
    /// The kind byte of a ``WireMessage/digestRequest(_:)``.
    case digestRequest = 0x05
    /// The kind byte of a ``WireMessage/attachRequest(_:)``.
    case attachRequest = 0x08
    /// The kind byte of a ``WireMessage/fetchRequest(_:)``.
    case fetchRequest = 0x09
    /// The kind byte of a ``WireMessage/helloAnswer(_:)``.
    case helloAnswer = 0x81
    /// The kind byte of a ``WireMessage/pushAnswer(_:)``.
    case pushAnswer = 0x82
    /// The kind byte of a ``WireMessage/pullAnswer(_:)``.
    case pullAnswer = 0x83
    /// The kind byte of a ``WireMessage/valuesAnswer(_:)``.
    case valuesAnswer = 0x84
    /// The kind byte of a ``WireMessage/digestAnswer(_:)``.
    case digestAnswer = 0x85
    /// The kind byte of a ``WireMessage/attachAnswer(_:)``.
    case attachAnswer = 0x88
    /// The kind byte of a ``WireMessage/fetchAnswer(_:)``.
    case fetchAnswer = 0x89
    /// The kind byte of a ``WireMessage/error(_:)``.
    case error = 0xff

    /// Whether the message is a request. A reader rejects a request that has a field unknown to it.
    public var isRequest: Bool { rawValue < 0x80 }
  }

  /// The kind of the message without its contents, as the frame's header has it.
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
    case .attachRequest: .attachRequest
    case .attachAnswer: .attachAnswer
    case .fetchRequest: .fetchRequest
    case .fetchAnswer: .fetchAnswer
    case .error: .error
    }
  }
}
