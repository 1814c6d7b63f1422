/// The first call of a session: presents a replica and its cursor.
public struct HelloRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// Its pull cursor.
  public var cursor: Position
  /// Which entries it wants.
  public var scope: SyncScope
  /// Whether it has just compared everything by digest, which renews an expired lease.
  public var hasResynced: Bool
  /// Whether it pulls. For a replica that only pushes, no tombstones are kept.
  public var reads: Bool
  /// The ``PullAnswer/resumption`` of the last page that was stored, for peers in the same process.
  /// Not sent.
  public var resumption: [UInt8]
  /// The last batch whose verdicts the caller has, without these, for peers in the same process
  /// that store no marks. Not sent.
  public var mark = ReplicaMark()
  /// The latest position that the caller knows, for the same peers: their positions must be later.
  /// Not sent.
  package var furthest = Position.beginning

  /// A hello.
  public init(
    replica: ReplicaID, cursor: Position = .beginning, scope: SyncScope = .everything,
    hasResynced: Bool = false, resumption: [UInt8] = [], reads: Bool = true
  ) {
    self.reads = reads
    self.resumption = resumption
    self.replica = replica
    self.cursor = cursor
    self.scope = scope
    self.hasResynced = hasResynced
  }
}

/// The state of the feed, and of the caller at it.
public struct HelloAnswer: Sendable, Hashable {
  /// The feed's id: another one than before means that the database was made anew.
  public var feed: ReplicaID
  /// The range of the feed.
  public var range: FeedRange
  /// The caller's last batch, with verdicts.
  public var mark: ReplicaMark
  /// Milliseconds since 1970 by the peer's clock.
  public var time: UInt64
  /// In how many seconds the caller's lease expires; nil where the peer gives none. While it lives,
  /// the peer keeps tombstones that the caller has not pulled.
  public var leaseSeconds: UInt32?
  /// Whether the lease has expired: the caller must compare by digest before it may push.
  public var isLeaseExpired: Bool
  /// Most changes in one batch, and most bytes of a message.
  public var limits: SyncLimits
  /// A hash of what the caller's authorization reaches: another one than before means that other
  /// entries can be read. 0 is everything; nil where the peer does not tell.
  public var reach: UInt64?
  /// Most bytes of an attachment's content; nil where the peer takes no attachments.
  public var attachmentBytes: Int?
  /// The policies for conflicts on keys within the caller's reach. The caller resolves conflicts by
  /// them unless the program has given a resolver.
  public var policies: [CollectionPolicy]

  /// An answer.
  public init(
    feed: ReplicaID, range: FeedRange, mark: ReplicaMark, time: UInt64,
    leaseSeconds: UInt32? = nil, isLeaseExpired: Bool = false, limits: SyncLimits = SyncLimits(),
    reach: UInt64? = nil, attachmentBytes: Int? = nil, policies: [CollectionPolicy] = []
  ) {
    self.policies = policies
    self.attachmentBytes = attachmentBytes
    self.reach = reach
    self.feed = feed
    self.range = range
    self.mark = mark
    self.time = time
    self.leaseSeconds = leaseSeconds
    self.isLeaseExpired = isLeaseExpired
    self.limits = limits
  }
}

/// The limits of a message.
public struct SyncLimits: Sendable, Hashable {
  /// Most changes in one batch.
  public var changes: Int
  /// About how many bytes of keys and values a batch or page may have; one entry may have more.
  public var bytes: Int

  /// Most bytes of a store's batches, whatever a peer allows: on Linux, URLSession waits for a
  /// second before it sends more than 1 MiB.
  package static let mostBytes = 768 << 10

  /// Limits; the defaults are those of the protocol.
  public init(changes: Int = 4000, bytes: Int = 256 << 10) {
    self.changes = changes
    self.bytes = bytes
  }
}

/// Pushes a numbered batch of changes.
public struct PushRequest: Sendable, Hashable {
  /// The replica that has made the changes.
  public var replica: ReplicaID
  /// Counts the replica's batches at this peer from 1, without gaps.
  public var number: UInt64
  /// Random: distinguishes a batch that is sent again from another one with its number.
  public var batchID: BatchID
  /// The id of the previous batch as the caller knows it; `.none` for the first. A feed whose mark
  /// has another id does not append this batch. Nil when the caller does not say.
  public var previousBatchID: BatchID?
  /// The feed's end as the caller knows it. A feed without that position was restored from an older
  /// copy since: a late batch from before must not count there.
  public var knownHead: Position
  /// The ``HelloAnswer/reach`` of the last hello: if the authorization reaches other entries now,
  /// the batch is not appended. Nil when the hello did not tell.
  public var reach: UInt64?
  /// The changes, in the order in which they are judged.
  public var changes: [PushedChange]
  /// The aliases of the caller's keys, for peers in the same process. Not sent.
  public var aliases: KnownAliases?

  /// A batch.
  public init(
    replica: ReplicaID, number: UInt64, batchID: BatchID, previousBatchID: BatchID? = nil,
    knownHead: Position = .beginning, reach: UInt64? = nil, changes: [PushedChange]
  ) {
    self.previousBatchID = previousBatchID
    self.knownHead = knownHead
    self.reach = reach
    self.replica = replica
    self.number = number
    self.batchID = batchID
    self.changes = changes
  }
}

/// The outcome of a push.
///
/// The batch was appended, now or before, if the mark has its number and its id. With its number
/// and another id the peer has another batch instead; with a lower number, batches are missing.
public struct PushAnswer: Sendable, Hashable {
  /// The replica's last batch at the peer, with its verdicts.
  public var mark: ReplicaMark
  /// The range of the feed now.
  public var range: FeedRange
  /// The current entries of keys with the verdict conflict or lost, as in ``ValuesAnswer``. A peer
  /// may send them; a store asks for them in any case.
  public var current: [FeedEntry]
  /// By index, how long changes wait before they are sent again, while others are sent. Their
  /// verdict is ``Verdict/aborted``. For peers in the same process; not sent.
  public var later: [Int: Duration] = [:]
  /// The changes in `later` on which the back end has failed. Not sent.
  package var faulty: Set<Int> = []
  /// The last failure on one of them, for people. If all changes of the batch wait, the caller
  /// stores the verdicts and then backs off as after any failure. Not sent.
  package var failure: String?

  /// An answer.
  public init(mark: ReplicaMark, range: FeedRange, current: [FeedEntry] = []) {
    self.mark = mark
    self.range = range
    self.current = current
  }
}

/// Asks for a page of the feed after a position.
public struct PullRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// The cursor: the position through which it has pulled.
  public var after: Position
  /// Which entries it wants.
  public var scope: SyncScope
  /// Most entries and bytes of the answer.
  public var limits: SyncLimits
  /// How long to wait for an entry when there is none (long poll).
  public var waitMilliseconds: UInt32
  /// Whether large values are replaced by references, to be downloaded; see ``SyncContent/blob``.
  public var takesBlobs: Bool
  /// Whether the page includes entries that a later entry of their key supersedes, for a reader
  /// that searches a restored feed for its own changes.
  public var everyVersion: Bool
  /// Whether the page ends before the first entry of another replica, for a caller that only
  /// pushes: its cursor moves on only while the feed has nothing but its own changes.
  public var ownOnly: Bool
  /// The aliases of the caller's keys, for peers in the same process. Not sent.
  public var aliases: KnownAliases?

  /// A pull.
  public init(
    replica: ReplicaID, after: Position, scope: SyncScope = .everything,
    limits: SyncLimits = SyncLimits(), waitMilliseconds: UInt32 = 0, takesBlobs: Bool = false,
    everyVersion: Bool = false, ownOnly: Bool = false
  ) {
    self.everyVersion = everyVersion
    self.ownOnly = ownOnly
    self.takesBlobs = takesBlobs
    self.replica = replica
    self.after = after
    self.scope = scope
    self.limits = limits
    self.waitMilliseconds = waitMilliseconds
  }
}

/// A page of the feed.
public struct PullAnswer: Sendable, Hashable {
  /// In the feed's order.
  public var entries: [FeedEntry]
  /// The cursor of the next pull; later than the last entry where others were left out.
  public var cursor: Position
  /// The range of the feed now.
  public var range: FeedRange
  /// The caller's last batch, with verdicts.
  public var mark: ReplicaMark
  /// A back end's own cursor, for peers in the same process: stored with the cursor, and passed
  /// with the next hello. Not sent.
  public var resumption: [UInt8]
  /// As ``HelloAnswer/reach``: if it differs from the hello's, the caller must discard the answer.
  public var reach: UInt64?

  /// A page.
  public init(
    entries: [FeedEntry], cursor: Position, range: FeedRange, mark: ReplicaMark,
    resumption: [UInt8] = [], reach: UInt64? = nil
  ) {
    self.reach = reach
    self.resumption = resumption
    self.entries = entries
    self.cursor = cursor
    self.range = range
    self.mark = mark
  }
}
