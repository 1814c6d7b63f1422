/// The first call of a session: who asks, and where it stands.
public struct HelloRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// Its pull cursor.
  public var cursor: Position
  /// Which entries it wants.
  public var scope: SyncScope
  /// Whether it has just compared everything by digest, which renews an expired lease.
  public var hasResynced: Bool
  /// Whether it takes what others append. For one that only pushes no deletes are kept.
  public var reads: Bool
  /// The bytes that the last page that was taken gave to go on with (``PullAnswer/resumption``). It
  /// does not travel.
  public var resumption: [UInt8]
  /// The last batch of which the caller has the verdicts, for peers in the same process that keep
  /// no marks of their own: without its verdicts. It does not travel.
  public var mark = ReplicaMark()
  /// The furthest position that the caller has heard of, for the same peers: what they tell lies
  /// behind it. It does not travel.
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

/// The peer's description of itself and of the caller.
public struct HelloAnswer: Sendable, Hashable {
  /// The feed's id: another one means that the remote was made anew.
  public var feed: ReplicaID
  /// The range of the feed.
  public var range: FeedRange
  /// How far the caller's batches have come.
  public var mark: ReplicaMark
  /// Milliseconds since 1970 by the peer's clock.
  public var time: UInt64
  /// For how many seconds the caller's lease goes on; nil where the peer gives none.
  public var leaseSeconds: UInt32?
  /// Whether the lease had expired: the caller must resynchronise before it may push.
  public var isLeaseExpired: Bool
  /// Most changes in one batch, and most bytes of a message.
  public var limits: SyncLimits
  /// Stands for how far the caller's authorization reaches: another one than before means that
  /// other entries can be read. 0 is everything; nil where the peer does not tell.
  public var reach: UInt64?
  /// Most bytes of an attachment's content; nil where the peer takes no attachments.
  public var attachmentBytes: Int?
  /// The policies for conflicts, as far as they concern keys within the caller's reach: what its
  /// resolver follows unless the program has given another one.
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

  /// The limit that a store never goes beyond, whatever a peer allows: on Linux, URLSession waits
  /// for a second before it sends more than 1 MiB.
  package static let mostBytes = 768 << 10

  /// Limits; the defaults are those of the protocol.
  public init(changes: Int = 4000, bytes: Int = 256 << 10) {
    self.changes = changes
    self.bytes = bytes
  }
}

/// A numbered batch.
public struct PushRequest: Sendable, Hashable {
  /// Whose batch it is.
  public var replica: ReplicaID
  /// Counts that replica's batches at this peer from 1, without holes.
  public var number: UInt64
  /// Tells a batch that is sent again from another one.
  public var batchID: BatchID
  /// The id of the batch before, as the caller knows it: none before the first. A feed that holds
  /// another one there does not take this batch. Nil when the caller does not say.
  public var previousBatchID: BatchID?
  /// The feed's end as the caller has heard of it. A feed that does not have it was restored from
  /// an older copy since: what arrives late from before must not count there.
  public var knownHead: Position
  /// How far the last hello's answer said that the authorization reaches, as
  /// ``HelloAnswer/reach``: with another one the batch is not taken. Nil when it did not say.
  public var reach: UInt64?
  /// The changes, in the order in which they are to be judged.
  public var changes: [PushedChange]
  /// The remote end's names for the caller's keys, for peers in the same process. It does not
  /// travel.
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

/// The verdicts on a batch: the mark says how far the replica's batches have come now.
///
/// The batch was taken if the mark has its number and its id. With its number and another id the
/// peer holds another batch in its place; with a lower number there is a hole.
public struct PushAnswer: Sendable, Hashable {
  /// How far the replica's batches have come, with the verdicts of the last.
  public var mark: ReplicaMark
  /// The range of the feed now.
  public var range: FeedRange
  /// The entries that stand at keys on whose changes the verdict is a conflict, or a loss, so that
  /// they need not be asked for: as ``ValuesAnswer`` would have them, as far as they are small and
  /// the peer tells them.
  public var current: [FeedEntry]
  /// How long changes rest before they are sent again, by their indices: others go meanwhile. Their
  /// verdict is ``Verdict/aborted``. For peers in the same process: it does not travel.
  public var later: [Int: Duration] = [:]
  /// The changes among these on which the remote end has failed. It does not travel.
  package var faulty: Set<Int> = []
  /// The last failure on one of them, for people. Where all of the batch rests, the caller takes
  /// the answer, and then waits as after any failure. It does not travel.
  package var failure: String?

  /// An answer.
  public init(mark: ReplicaMark, range: FeedRange, current: [FeedEntry] = []) {
    self.mark = mark
    self.range = range
    self.current = current
  }
}

/// Asks for what stands in the feed after a position.
public struct PullRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// The position of the last entry that it has.
  public var after: Position
  /// Which entries it wants.
  public var scope: SyncScope
  /// Most entries and bytes of the answer.
  public var limits: SyncLimits
  /// How long to wait for an entry when there is none.
  public var waitMilliseconds: UInt32
  /// Whether large values come apart, by name only; see ``SyncContent/blob``.
  public var takesBlobs: Bool
  /// Whether entries are to come, too, that a later entry of their key supersedes: for a reader
  /// that looks for its own changes in a feed that was restored or made anew.
  public var everyVersion: Bool
  /// Whether the page ends before the first entry of somebody else, for who takes nothing of others
  /// and wants to know how far the feed holds nothing else than its own.
  public var ownOnly: Bool
  /// The remote end's names for the caller's keys, for peers in the same process. It does not
  /// travel.
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
  /// Where to go on; further than the last entry where others were left out.
  public var cursor: Position
  /// The range of the feed now.
  public var range: FeedRange
  /// How far the caller's batches have come.
  public var mark: ReplicaMark
  /// For peers in the same process whose remote end has cursors of its own kind: kept with the
  /// cursor, and given back with the next hello. It does not travel.
  public var resumption: [UInt8]
  /// As ``HelloAnswer/reach``: with another one than the hello's the answer is not to be taken.
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
