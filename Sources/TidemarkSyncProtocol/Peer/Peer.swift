internal import TidemarkEngine

/// A peer that a store replicates with: another store, a sync server, or a program's back end.
///
/// Every call may be cancelled; the outcome of a cancelled ``push(_:)`` is unknown until the next
/// answer with a mark tells it. Calls throw ``PeerError``.
///
/// Requests and answers, and the ``PushedChange`` and ``FeedEntry`` in them, are the messages of
/// the protocol and use its units: keys as bytes, commit times as readings of hybrid clocks (48
/// bits of milliseconds since 1970, 16 of count), waits as numbers of seconds or milliseconds. The
/// rest of the API has `Key`, `Timestamp` and `Duration`.
public protocol Peer: Sendable {
  /// The peer's capabilities.
  var capabilities: PeerCapabilities { get }
  /// Presents the replica and its cursor, and learns the feed's state; the first call after opening
  /// and after every failure.
  func hello(_ request: HelloRequest) async throws -> HelloAnswer
  /// Pushes a numbered batch. The peer answers only after a durable commit.
  func push(_ request: PushRequest) async throws -> PushAnswer
  /// Tells which batch is likely to be pushed next, while another one is in flight, so that it can
  /// be encoded meanwhile. That push may never come, and none must depend on this call; the default
  /// does nothing.
  func prepare(_ request: PushRequest)
  /// Reads the feed after a position.
  func pull(_ request: PullRequest) async throws -> PullAnswer
  /// Reads what keys hold now.
  func values(_ request: ValuesRequest) async throws -> ValuesAnswer
  /// Reads digests: sums of hashes over parts of the keys, to find keys that differ.
  func digest(_ request: DigestRequest) async throws -> DigestAnswer
  /// Uploads a part of an attachment's content, or asks how many bytes the peer has. Only called if
  /// the peer's hello says that it accepts attachments; see ``HelloAnswer/attachmentBytes``. It may
  /// store only the beginning of a part, whole multiples of ``AttachRequest/partBytes``.
  func attach(_ request: AttachRequest) async throws -> AttachAnswer
  /// Reads a part of an attachment's content, from a peer that accepts attachments. A part is a
  /// multiple of ``AttachRequest/partBytes``, unless it reaches the content's end.
  func fetch(_ request: ContentRequest) async throws -> ContentAnswer
  /// Closes connections.
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
  /// Whether a pull can wait for entries (long poll).
  public var canWait: Bool
  /// Whether batches are numbered, so that a retried one counts once.
  public var isNumbered: Bool
  /// Whether ``Peer/digest(_:)`` is supported.
  public var hasDigest: Bool
  /// Whether a batch gets consecutive offsets in the feed: one for each change that applied, and
  /// the next for its mark. Then its sender can move its cursor past it without a pull.
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
    /// The peer cannot answer now: try again, after ``PeerError/retryAfter`` where given.
    case busy
    /// The authorization is missing or has expired: get another.
    case unauthorized
    /// The authorization does not allow the call.
    case forbidden
    /// The cursor is not in the feed, or tombstones after it were dropped: compare by digest.
    case cursorGone
    /// The lease had expired: compare by digest before pushing.
    case leaseExpired
    /// The message is invalid: broken or hostile.
    case malformed
    /// The peer failed in a way that its other answers do not explain.
    case failed
  }

  /// The kind of failure.
  public var kind: Kind
  /// The reason, for people.
  public var message: String
  /// After which time to try again, if the peer said so. Sent as whole seconds, rounded up.
  public var retryAfter: Duration?
  /// The cause as the failing side knows it, perhaps with paths: for its own log. Not sent.
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
  /// ``retryAfter`` as it is sent.
  var secondsToWait: UInt32? { retryAfter.map { UInt32(clamping: $0.wholeSeconds) } }
}
