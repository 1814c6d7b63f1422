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
  /// What the peer supports, such as long polls and digests, and the limits of its batches.
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
  /// Reads a page of the feed after a position. Waits for an entry if the request says so and the
  /// peer can wait.
  func pull(_ request: PullRequest) async throws -> PullAnswer
  /// Reads the current contents of keys.
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
  /// Closes the peer's connections.
  func close() async
}

extension Peer {
  /// Does nothing: the default for a peer that needs no time to encode a batch.
  public func prepare(_ request: PushRequest) {}
  /// The default for a peer that accepts no attachments.
  /// - Throws: ``PeerError`` of kind `malformed`, always.
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    throw PeerError(.malformed, "the peer takes no attachments")
  }

  /// The default for a peer that accepts no attachments.
  /// - Throws: ``PeerError`` of kind `malformed`, always.
  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    throw PeerError(.malformed, "the peer takes no attachments")
  }
}

/// What a peer supports: long polls, numbered batches, digests, and the limits of its batches.
public struct PeerCapabilities: Sendable, Hashable {
  /// The most changes of a batch, and the most bytes of a batch or page.
  public var limits: SyncLimits
  /// Whether a pull can wait at the peer for new entries (long poll). Without it the replicator
  /// polls.
  public var canWait: Bool
  /// Whether the peer numbers batches, so that a batch that is sent again counts once.
  public var isNumbered: Bool
  /// Whether the peer answers ``Peer/digest(_:)``, so that a replicator can compare with it.
  public var hasDigest: Bool
  /// Whether a batch gets consecutive offsets in the feed: one for each change that applied, and
  /// the next for its mark. Then its sender can move its cursor past it without a pull.
  public var hasMarkBehindBatch: Bool

  /// Creates the capabilities of a peer; by default it supports all but `hasMarkBehindBatch`.
  /// - Parameters:
  ///   - limits: the limits of a batch or page.
  ///   - canWait: whether a pull can wait for new entries.
  ///   - isNumbered: whether a batch that is sent again counts once.
  ///   - hasDigest: whether the peer answers digests.
  ///   - hasMarkBehindBatch: whether a batch gets consecutive offsets, followed by its mark.
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

/// Why a call to a peer has failed. Its ``kind`` decides what the replicator does next.
public struct PeerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of a peer's failure; it decides what the replicator does next.
  @nonexhaustive
  public enum Kind: String, Sendable, Hashable {
    /// The peer cannot be reached: no connection, a timeout, or a server that is starting. The
    /// replicator tries again later. The kind never means a permanent failure.
    case unavailable
    /// The peer cannot answer now. The replicator tries again, after ``PeerError/retryAfter`` if
    /// the peer gave that.
    case busy
    /// The authorization is missing or has expired, so that the caller needs a new one.
    case unauthorized
    /// The authorization is valid but does not allow the call.
    case forbidden
    /// The feed does not have the cursor, or has dropped tombstones after it. The caller must
    /// compare by digest.
    case cursorGone
    /// The replica's lease has expired. The replica must compare by digest before it pushes.
    case leaseExpired
    /// A message does not follow the protocol, through a bug or an attack.
    case malformed
    /// The peer failed for a reason that no other kind describes.
    case failed
  }

  /// The kind of the failure; it decides what the replicator does next.
  public var kind: Kind
  /// The reason of the failure, as a text for people.
  public var message: String
  /// After how long the caller may try again; nil if the peer did not say. The wire has whole
  /// seconds, rounded up.
  public var retryAfter: Duration?
  /// The cause as the failing side knows it, possibly with file paths, for its own log. It is never
  /// sent to the other side.
  public var detail: String?

  /// Creates a failure, for a ``Peer`` or a closure of your own to throw.
  /// - Parameters:
  ///   - kind: the kind of the failure.
  ///   - message: what went wrong, as a text for people.
  ///   - retryAfter: after how long to try again; nil if unknown.
  public init(_ kind: Kind, _ message: String, retryAfter: Duration? = nil) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
  }

  /// The kind and the message as text, with the detail if there is one.
  public var description: String {
    "\(kind.rawValue): \(message)" + (detail.map { " (\($0))" } ?? "")
  }
}

extension PeerError {
  /// ``retryAfter`` as it is sent.
  var secondsToWait: UInt32? { retryAfter.map { UInt32(clamping: $0.wholeSeconds) } }
}
