/// The first call of a session: presents a replica and its cursor.
public struct HelloRequest: Sendable, Hashable {
  /// The id of the replica that opens the session.
  public var replica: ReplicaID
  /// The position in the feed through which the replica has pulled.
  public var cursor: FeedPosition
  /// The entries of the feed that the replica wants.
  public var scope: SyncScope
  /// Whether the replica has just compared everything by digest, which renews an expired lease.
  public var hasResynced: Bool
  /// Whether the replica pulls. The peer keeps no tombstones for a replica that only pushes.
  public var reads: Bool
  /// The ``PullAnswer/resumption`` of the last stored page: a back end's own cursor. Only peers in
  /// the same process use it; it is never sent over the network.
  public var resumption: [UInt8]
  /// The last batch whose verdicts the caller has, without the verdicts. Only peers in the same
  /// process that store no marks use it; it is never sent over the network.
  public var mark = ReplicaMark()
  /// The latest position that the caller knows, for the same peers: their positions must be later.
  /// Not sent.
  package var furthest = FeedPosition.beginning

  /// Creates the first request of a session.
  /// - Parameters:
  ///   - replica: the replica that opens the session.
  ///   - cursor: the position through which it has pulled.
  ///   - scope: which entries it wants.
  ///   - hasResynced: whether it has just compared everything by digest.
  ///   - resumption: the back end's own cursor, for peers in the same process.
  ///   - reads: whether it pulls.
  public init(
    replica: ReplicaID, cursor: FeedPosition = .beginning, scope: SyncScope = .everything,
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

/// The answer to a ``HelloRequest``: the state of the feed, the caller's last batch and lease, and
/// the peer's limits and policies.
public struct HelloAnswer: Sendable, Hashable {
  /// The random id of the feed. A new id means that the database was created anew, so that the
  /// caller begins anew.
  public var feed: ReplicaID
  /// The epochs and the end of the feed, and through which offset tombstones may be dropped.
  public var range: FeedRange
  /// The last batch that the peer has of the caller, with its verdicts.
  public var mark: ReplicaMark
  /// The time by the peer's clock, in milliseconds since 1970.
  public var time: UInt64
  /// In how many seconds the caller's lease expires; nil if the peer gives none. Until then the
  /// peer keeps tombstones that the caller has not pulled.
  public var leaseSeconds: UInt32?
  /// Whether the caller's lease has expired. If so, the caller must compare by digest before it may
  /// push.
  public var isLeaseExpired: Bool
  /// The most changes of a batch and the most bytes of a batch or page at this peer.
  public var limits: SyncLimits
  /// A hash of the entries that the caller's authorization reaches; 0 for everything. A different
  /// value than before means that the caller can read other entries. Nil if the peer does not tell.
  public var reach: UInt64?
  /// The most bytes of an attachment's content; nil if the peer accepts no attachments.
  public var attachmentBytes: Int?
  /// The conflict policies for keys within the caller's reach. ``ConflictPolicy`` says how the
  /// caller resolves conflicts by them, unless the program has given a resolver.
  public var policies: [CollectionPolicy]

  /// Creates the answer to a hello.
  /// - Parameters:
  ///   - feed: the id of the feed.
  ///   - range: the range of the feed.
  ///   - mark: the caller's last batch, with its verdicts.
  ///   - time: milliseconds since 1970 by the peer's clock.
  ///   - leaseSeconds: in how many seconds the lease expires; nil for no lease.
  ///   - isLeaseExpired: whether the caller must compare by digest before it pushes.
  ///   - limits: the limits of a batch or page.
  ///   - reach: a hash of what the authorization reaches; nil if the peer does not tell.
  ///   - attachmentBytes: the most bytes of an attachment; nil for no attachments.
  ///   - policies: the conflict policies within the caller's reach.
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

/// The limits of one batch or page: the number of changes, and the bytes of keys and values.
public struct SyncLimits: Sendable, Hashable {
  /// The most changes of one batch, or entries of one page.
  public var changes: Int
  /// About how many bytes of keys and values a batch or page may have. A single entry may exceed
  /// it.
  public var bytes: Int

  /// Most bytes of a store's batches, whatever a peer allows: on Linux, URLSession waits for a
  /// second before it sends more than 1 MiB.
  package static let mostBytes = 768 << 10

  /// Creates limits; the defaults are those of the protocol: 4,000 changes and 256 KiB.
  /// - Parameters:
  ///   - changes: the most changes of one batch.
  ///   - bytes: about how many bytes of keys and values a batch or page may have.
  public init(changes: Int = 4000, bytes: Int = 256 << 10) {
    self.changes = changes
    self.bytes = bytes
  }
}

/// Pushes a numbered batch of changes.
public struct PushRequest: Sendable, Hashable {
  /// The replica that made the changes and pushes them.
  public var replica: ReplicaID
  /// The number of the batch: the replica counts its batches at this peer from 1, without gaps.
  public var number: UInt64
  /// The random id of the batch. It distinguishes a batch that is sent again from another batch
  /// with the same number.
  public var batchID: BatchID
  /// The id of the previous batch as the caller knows it: `.none` for the first batch, nil if the
  /// caller does not say. The peer does not append the batch if its last batch of the replica has
  /// another id.
  public var previousBatchID: BatchID?
  /// The feed's end as the caller knows it. A feed without that position was restored from an older
  /// copy, and does not append a batch that was sent before the restore.
  public var knownHead: FeedPosition
  /// The ``HelloAnswer/reach`` of the last hello; nil if the hello had none. The peer does not
  /// append the batch if the authorization reaches other entries now.
  public var reach: UInt64?
  /// The changes of the batch, in the order in which the peer judges them.
  public var changes: [PushedChange]
  /// The back end's ids for the caller's keys. Only peers in the same process use them; they are
  /// never sent over the network.
  public var aliases: KnownAliases?

  /// Creates a request that pushes a batch.
  /// - Parameters:
  ///   - replica: the replica that made the changes.
  ///   - number: the number of the batch, counted from 1.
  ///   - batchID: the random id of the batch.
  ///   - previousBatchID: the id of the previous batch; nil if the caller does not say.
  ///   - knownHead: the feed's end as the caller knows it.
  ///   - reach: the reach from the last hello; nil if it had none.
  ///   - changes: the changes, in the order in which they are judged.
  public init(
    replica: ReplicaID, number: UInt64, batchID: BatchID, previousBatchID: BatchID? = nil,
    knownHead: FeedPosition = .beginning, reach: UInt64? = nil, changes: [PushedChange]
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
  /// The range of the feed after the push.
  public var range: FeedRange
  /// The current entries of the keys whose changes got the verdict conflict or lost, as in a
  /// ``ValuesAnswer``. A peer may leave them out; a store asks for them in any case.
  public var current: [FeedEntry]
  /// For changes by their index in the batch, how long they wait before they are sent again, while
  /// others are sent. Their verdict is ``PushVerdict/aborted``. Only peers in the same process use
  /// it; it is never sent over the network.
  public var later: [Int: Duration] = [:]
  /// The changes in `later` on which the back end has failed. Not sent.
  package var faulty: Set<Int> = []
  /// The last failure on one of them, for people. If all changes of the batch wait, the caller
  /// stores the verdicts and then backs off as after any failure. Not sent.
  package var failure: String?

  /// Creates the answer to a push.
  /// - Parameters:
  ///   - mark: the replica's last batch at the peer, with its verdicts.
  ///   - range: the range of the feed now.
  ///   - current: the current entries of keys with a conflict; may be empty.
  public init(mark: ReplicaMark, range: FeedRange, current: [FeedEntry] = []) {
    self.mark = mark
    self.range = range
    self.current = current
  }
}

/// Asks for a page of the feed after a position.
public struct PullRequest: Sendable, Hashable {
  /// The id of the replica that pulls the page.
  public var replica: ReplicaID
  /// The caller's cursor: the page begins after this position.
  public var after: FeedPosition
  /// The entries of the feed that the replica wants.
  public var scope: SyncScope
  /// The most entries and bytes of the page.
  public var limits: SyncLimits
  /// How many milliseconds the peer waits for an entry if it has none now (long poll); 0 for no
  /// wait.
  public var waitMilliseconds: UInt32
  /// Whether the page has references in place of large values, which the caller downloads
  /// separately; see ``SyncContent/blob``.
  public var takesBlobs: Bool
  /// Whether the page includes entries that a later entry of their key supersedes, for a reader
  /// that searches a restored feed for its own changes.
  public var everyVersion: Bool
  /// Whether the page ends before the first entry of another replica. A caller that only pushes
  /// uses it, so that its cursor passes only its own changes.
  public var ownOnly: Bool
  /// The back end's ids for the caller's keys. Only peers in the same process use them; they are
  /// never sent over the network.
  public var aliases: KnownAliases?

  /// Creates a request for a page of the feed.
  /// - Parameters:
  ///   - replica: the replica that pulls.
  ///   - after: the position after which the page begins.
  ///   - scope: which entries it wants.
  ///   - limits: the most entries and bytes of the page.
  ///   - waitMilliseconds: how long to wait for an entry if there is none.
  ///   - takesBlobs: whether large values become references.
  ///   - everyVersion: whether the page includes superseded entries.
  ///   - ownOnly: whether the page ends before the first entry of another replica.
  public init(
    replica: ReplicaID, after: FeedPosition, scope: SyncScope = .everything,
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

/// The answer to a ``PullRequest``: one page of the feed, and the cursor of the next.
public struct PullAnswer: Sendable, Hashable {
  /// The entries of the page, in the order of the feed.
  public var entries: [FeedEntry]
  /// The position after which the next pull begins. It may be later than the last entry, if entries
  /// outside of the scope follow that.
  public var cursor: FeedPosition
  /// The range of the feed at the time of the answer.
  public var range: FeedRange
  /// The last batch that the peer has of the caller, with its verdicts.
  public var mark: ReplicaMark
  /// A back end's own cursor. The store saves it with the cursor and passes it with the next hello.
  /// Only peers in the same process use it; it is never sent over the network.
  public var resumption: [UInt8]
  /// A hash of the entries that the caller's authorization reaches, as in ``HelloAnswer/reach``. If
  /// it differs from the hello's, the caller must discard this answer.
  public var reach: UInt64?

  /// Creates the answer to a pull.
  /// - Parameters:
  ///   - entries: the entries of the page, in the order of the feed.
  ///   - cursor: the position after which the next pull begins.
  ///   - range: the range of the feed now.
  ///   - mark: the caller's last batch, with its verdicts.
  ///   - resumption: the back end's own cursor, for peers in the same process.
  ///   - reach: a hash of what the authorization reaches; nil if the peer does not tell.
  public init(
    entries: [FeedEntry], cursor: FeedPosition, range: FeedRange, mark: ReplicaMark,
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
