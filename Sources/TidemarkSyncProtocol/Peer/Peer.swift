internal import TidemarkEngine

/// A remote end that a store replicates with.
///
/// Every call may be cancelled; what became of a cancelled ``push(_:)`` is unknown until the next
/// answer, whose mark says it. Calls throw ``PeerError``.
///
/// Requests and answers, and the ``PushedChange`` and ``FeedEntry`` in them, are the messages of
/// the protocol and say things as it does: keys as bytes, commit times as readings of hybrid
/// clocks (48 bits of milliseconds since 1970, 16 of count), times to wait as numbers of seconds
/// or milliseconds. Everything else that programs see has `Key`, `Timestamp` and `Duration`.
public protocol Peer: Sendable {
  /// The peer's capabilities.
  var capabilities: PeerCapabilities { get }
  /// Says who asks and where it stands; the first call after opening and after every failure.
  func hello(_ request: HelloRequest) async throws -> HelloAnswer
  /// Hands a numbered batch over. The peer answers after a durable commit only.
  func push(_ request: PushRequest) async throws -> PushAnswer
  /// Tells what batch is likely to be handed over next, while another one is under way, so that
  /// what it takes to send it can be done now. It may never come, and nothing must depend on this
  /// call; the default does nothing.
  func prepare(_ request: PushRequest)
  /// Reads the feed after a position.
  func pull(_ request: PullRequest) async throws -> PullAnswer
  /// Reads what keys hold now.
  func values(_ request: ValuesRequest) async throws -> ValuesAnswer
  /// Reads sums over what keys hold.
  func digest(_ request: DigestRequest) async throws -> DigestAnswer
  /// Hands over a part of an attachment's content, or asks how much of it is there. Only a peer
  /// whose hello says that it takes attachments is asked; see ``HelloAnswer/attachmentBytes``. It
  /// may take less than all of a part: whole multiples of ``AttachRequest/partBytes`` from its
  /// beginning.
  func attach(_ request: AttachRequest) async throws -> AttachAnswer
  /// Reads a part of an attachment's content, from a peer that takes attachments. A part is a
  /// multiple of ``AttachRequest/partBytes``, unless it reaches the content's end.
  func fetch(_ request: ContentRequest) async throws -> ContentAnswer
  /// Lets go of connections.
  func close() async
}

extension Peer {
  public func prepare(_ request: PushRequest) {}
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    throw PeerError(.malformed, "the peer takes no attachments")
  }

  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    throw PeerError(.malformed, "the peer takes no attachments")
  }
}

/// The capabilities of a peer.
public struct PeerCapabilities: Sendable, Hashable {
  /// The limits of a message.
  public var limits: SyncLimits
  /// Whether a pull can wait for what comes.
  public var canWait: Bool
  /// Whether batches are numbered, and so counted once.
  public var isNumbered: Bool
  /// Whether sums can be compared.
  public var hasDigest: Bool
  /// Whether a batch takes places in a row in the feed: one for each change that applied, and one
  /// behind them for its mark. Then who has sent it need not read it again.
  public var hasMarkBehindBatch: Bool

  /// Capabilities.
  public init(
    limits: SyncLimits = SyncLimits(), canWait: Bool = true, isNumbered: Bool = true,
    hasDigest: Bool = true, hasMarkBehindBatch: Bool = false
  ) {
    self.limits = limits
    self.canWait = canWait
    self.isNumbered = isNumbered
    self.hasDigest = hasDigest
    self.hasMarkBehindBatch = hasMarkBehindBatch
  }
}

/// Why a peer gave no answer.
public struct PeerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure; it decides what the replicator does.
  public enum Kind: String, Sendable, Hashable {
    /// No connection, a timeout, a server that is starting: try again later. Never permanent.
    case unavailable
    /// The peer asks for patience, perhaps until a time that it gives.
    case busy
    /// The authorization is missing or has run out: ask for another.
    case unauthorized
    /// The authorization does not reach so far.
    case forbidden
    /// The cursor lies outside what the feed still lists: resynchronise.
    case cursorGone
    /// The lease had expired: resynchronise before pushing.
    case leaseExpired
    /// The message makes no sense: a broken or hostile message.
    case malformed
    /// The peer failed in a way that its other answers do not explain.
    case failed
  }

  /// The kind of failure.
  public var kind: Kind
  /// The reason, for people.
  public var message: String
  /// After which time to try again, if the peer said so. It travels as whole seconds, rounded up.
  public var retryAfter: Duration?
  /// The cause as the failing side knows it, perhaps with paths: for its own log. It does not
  /// travel.
  public var detail: String?

  /// A failure.
  public init(_ kind: Kind, _ message: String, retryAfter: Duration? = nil) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
  }

  /// The kind and the message, with the detail where there is one.
  public var description: String {
    "\(kind.rawValue): \(message)" + (detail.map { " (\($0))" } ?? "")
  }
}

extension PeerError {
  /// ``retryAfter`` as it travels.
  var secondsToWait: UInt32? { retryAfter.map { UInt32(clamping: $0.wholeSeconds) } }
}
