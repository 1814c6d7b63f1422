package import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// The log that a database's replicas share, as a ``SyncHandler`` needs it: a total order of
/// entries with what every key holds now, the marks and leases of replicas, and policies.
///
/// A handler keeps nothing beside it, so any number of handlers, also of several processes, may
/// stand over one feed, and a feed may lose its end beneath a living handler: then it begins a new
/// epoch before it gives an offset out again. A batch is appended only if everything still is as it
/// was in the view that it was judged by. Calls take and give many things at a time; they block,
/// and come from several threads. What was appended can be read at once, and is on the disk once
/// ``settle(through:)`` has returned.
package protocol Feed: Sendable {
  /// Tells one feed from another.
  var id: ReplicaID { get }
  /// The content beside the feed: attachments, and what comes ahead of its change. Nil where none
  /// can be kept: neither attachments nor parts of large values are taken.
  var contents: (any FeedContents)? { get }
  /// Whether a handler judges one batch after the other: where appending has one lock in any case,
  /// fewer batches are judged twice that way.
  var judgesInTurn: Bool { get }

  /// Everything that a call has to know at its beginning, and again at its end. What a view tells
  /// of lies in its range; its epoch is not later than that of anything else in it.
  func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView
  /// Appends a batch and the mark of its replica, all or nothing.
  /// - Parameter view: what the batch was judged by.
  /// - Returns: the mark; nil, and nothing is appended, where the mark, the policies, the epoch or
  ///   a revision that the batch names differ from the view's.
  func append(_ batch: JudgedBatch, after view: FeedView) throws(TidemarkError) -> FeedMark?
  /// Returns once everything through a position is on the disk. Callers share a sync: one of them
  /// makes it, for all that was appended by then.
  /// - Throws: `unknownOutcome` when a sync has failed, whoever made it, or when what stood there
  ///   was lost meanwhile.
  func settle(through position: Position) throws(TidemarkError)

  /// A page of puts and deletes, without their values.
  func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage
  /// The puts and deletes at offsets, without their values, as far as they are kept.
  func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead]
  /// The values of the puts at offsets, as far as they are kept.
  func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]]
  /// Adds all keys that a table covers, that are wanted and have a value, as they were at one
  /// offset.
  /// - Parameter wants: which keys are wanted, by their labels.
  /// - Returns: the offset.
  func scan(
    into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
  ) throws(TidemarkError) -> UInt64

  /// Gives a replica a lease, or takes it away; does nothing where its lease is another one than in
  /// a view.
  /// - Parameters:
  ///   - most: how many leases are written down. Any other may be forgotten at any time, and its
  ///     replica compares.
  ///   - writes: whether the change has to be written down, if the lease is. Else a feed that is
  ///     opened anew may have the lease as it was before.
  func setLease(
    _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
  ) throws(TidemarkError)
  /// Sets the policy for a prefix, or takes it away.
  /// - Returns: where that stands.
  func setPolicy(
    _ policy: ConflictPolicy?, prefix: [UInt8]
  ) throws(TidemarkError) -> Position
}

/// The content beside a feed, of attachments and of values too large to travel with their change.
package protocol FeedContents: Sendable {
  /// Takes a part of a content that comes ahead of the change that names it, within the bounds for
  /// uploads that options set.
  /// - Returns: how much of it is there; its sender goes on from there.
  /// - Throws: ``PeerError``; what the disk throws.
  func take(
    _ bytes: [UInt8], at offset: Int, of upload: UploadName, within options: SyncHandler.Options
  ) throws -> Int
  /// An upload of which all has come.
  /// - Parameter most: bytes of what an earlier opening has left that may be read again.
  /// - Throws: ``PeerError`` of kind `busy` while more than that is to be read again.
  func whole(_ upload: UploadName, reading most: inout Int) throws -> (any FeedUpload)?
  /// Keeps content from going as long as the result lives; nil where it is not here.
  func hold(_ id: AttachmentID) throws(TidemarkError) -> (any Sendable)?
  /// A part of a content; nil where it is not here.
  func read(_ id: AttachmentID, from offset: Int, count: Int) throws -> [UInt8]?
}

/// A content that has come ahead of its change.
package protocol FeedUpload: Sendable {
  /// Nil where it cannot be read any more.
  func content() throws(TidemarkError) -> [UInt8]?
  /// Makes an attachment of it.
  /// - Returns: what keeps that until an entry names it.
  /// - Throws: `closed` where somebody else needed the room.
  func adopt() throws(TidemarkError) -> any Sendable
  func drop()
}

/// The part of a feed that its owner looks after.
package protocol FeedUpkeep: Sendable {
  /// The errors of uploads that an earlier opening has left and that cannot be read.
  var unreadableUploads: [TidemarkError] { get }
  /// Calls `body` whenever there is something new to pull; needless calls do no harm.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  func observe(_ body: @escaping @Sendable () -> Void) -> Int
  func stopObserving(_ token: Int)
  /// The worth of a compaction; see ``SyncHandler/space(from:)``.
  func space(from minimum: Int) throws(TidemarkError) -> LogSpace
  /// Gives back what is not needed any more, until it is told to stop: entries, leases that have
  /// run out, uploads whose changes never came. Keeps deletes that a replica with a lease has yet
  /// to hear of.
  /// - Parameter leaseSeconds: no lease lasts longer from now on; nil for those without end.
  func compact(
    leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary
  func close() throws(TidemarkError)
}
