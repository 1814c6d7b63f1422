package import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// The log that a database's replicas share, as a ``SyncHandler`` needs it: a total order of
/// entries with what every key holds now, the marks and leases of replicas, and policies.
///
/// A handler keeps no state beside it, so any number of handlers, also in several processes, may
/// serve one feed. A feed may lose its last entries under a running handler (a restored backup): it
/// then begins a new epoch before it assigns an offset again. A batch is appended only if all that
/// it was judged by is unchanged since its view. Calls are batched; they block, and come from
/// several threads. An appended entry can be read at once, and is durable once
/// ``settle(through:)`` has returned.
package protocol Feed: Sendable {
  /// Random, drawn when the feed is made: a client that finds another id begins anew.
  var id: ReplicaID { get }
  /// The content that is stored beside the entries: attachments, and uploads whose changes are not
  /// pushed yet. Nil where none can be stored: then attachments and large values are refused.
  var contents: (any FeedContents)? { get }
  /// Whether a handler judges one batch at a time. Where appending takes one lock anyway, that
  /// saves judging a batch again because another one was appended meanwhile.
  var judgesInTurn: Bool { get }

  /// Reads range, policies, and what the question asks for. Everything in the view is within its
  /// range. Its epoch is read first, so that `append` notices if a new epoch has begun since.
  func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView
  /// Appends a batch and the mark of its replica, all or nothing.
  /// - Parameter view: the view that the batch was judged by.
  /// - Returns: the mark; nil, with nothing appended, where the mark, the policies, the epoch or
  ///   the revision of one of its keys differs from the view's.
  func append(_ batch: DecidedBatch, after view: FeedView) throws(TidemarkError) -> FeedMark?
  /// Returns once everything through a position is durable. Concurrent callers share a sync: one of
  /// them makes it, for all that was appended by then.
  /// - Throws: `unknownOutcome` when a sync has failed, also another caller's, or when the entry at
  ///   the position was lost meanwhile.
  func settle(through position: FeedPosition) throws(TidemarkError)
  /// Whether ``settle(through:)`` would return at once.
  func isSettled(through position: FeedPosition) -> Bool

  /// A page of puts and deletes, without their values.
  func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage
  /// The puts and deletes at offsets, without their values, as far as they are kept.
  func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead]
  /// The values of the puts at offsets, as far as they are kept.
  func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]]
  /// Adds to a digest's table the keys that it covers, that are wanted and hold a value, as of one
  /// offset.
  /// - Parameter wants: which keys are wanted, by key and labels.
  /// - Returns: the offset.
  func scan(
    into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
  ) throws(TidemarkError) -> UInt64

  /// Sets or removes (nil) a replica's lease; does nothing where the lease has changed since the
  /// view.
  /// - Parameters:
  ///   - most: how many leases are stored in the log. Any other is only in memory and may be
  ///     dropped at any time; its replica then has to compare by digest.
  ///   - writes: whether the change must be stored if the lease is. Otherwise it may be lost when
  ///     the feed is opened again.
  func setLease(
    _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
  ) throws(TidemarkError)
  /// Sets or removes (nil) the policy for keys with a prefix.
  /// - Returns: the position of its record.
  func setPolicy(
    _ policy: ConflictPolicy?, prefix: [UInt8]
  ) throws(TidemarkError) -> FeedPosition
}

extension Feed {
  package func isSettled(through position: FeedPosition) -> Bool {
    guard let view = try? look(FeedQuestion()) else { return false }
    return position.offset <= view.durable && view.range.contains(position)
  }
}

/// The content beside a feed: of attachments, and of values that are uploaded before their change.
package protocol FeedContents: Sendable {
  /// Stores a part of an upload (content that is sent before the change that refers to it), within
  /// the bounds for uploads that options set.
  /// - Returns: how many bytes are stored, from the beginning; the sender goes on from there.
  /// - Throws: ``PeerError``; what the disk throws.
  func take(
    _ bytes: [UInt8], at offset: Int, of upload: UploadName, within options: SyncHandler.Options
  ) throws -> Int
  /// An upload that is complete; nil for any other.
  /// - Parameter most: how many bytes stored before a restart may be read again, to hash them.
  /// - Throws: ``PeerError`` of kind `busy` while more than that is to be read again.
  func whole(_ upload: UploadName, reading most: inout Int) throws -> (any FeedUpload)?
  /// Protects content from deletion while the result lives; nil if absent.
  func hold(_ id: AttachmentID) throws(TidemarkError) -> (any Sendable)?
  /// A part of a content; nil if absent.
  func read(_ id: AttachmentID, from offset: Int, count: Int) throws -> [UInt8]?
}

/// A complete upload whose change is not in the feed yet.
package protocol FeedUpload: Sendable {
  /// The bytes; nil if it was deleted meanwhile.
  func content() throws(TidemarkError) -> [UInt8]?
  /// Makes an attachment of it.
  /// - Returns: protects the attachment from deletion until an entry refers to it.
  /// - Throws: `closed` where it was deleted to make room for another upload.
  func adopt() throws(TidemarkError) -> any Sendable
  func drop()
}

/// Maintenance of a feed, which only the process that owns its storage can do.
package protocol FeedUpkeep: Sendable {
  /// The errors of uploads that were stored before a restart and cannot be read.
  var unreadableUploads: [TidemarkError] { get }
  /// Calls `body` whenever there is something new to pull; needless calls do no harm.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  func observe(_ body: @escaping @Sendable () -> Void) -> Int
  func stopObserving(_ token: Int)
  /// An estimate of what a compaction would free; see ``SyncHandler/space(from:)``.
  func space(from minimum: Int) throws(TidemarkError) -> LogSpace
  /// Deletes superseded entries, expired leases and abandoned uploads, until it is told to stop.
  /// Keeps tombstones that a replica with a lease has not pulled yet.
  /// - Parameter leaseSeconds: the longest that a lease may last from now on; nil if leases do not
  ///   expire.
  func compact(
    leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary
  func close() throws(TidemarkError)
  /// Whether all calls fail from now on, as another process has deleted what it serves.
  var isClosed: Bool { get }
}

extension FeedUpkeep {
  /// What only this process owns nobody else deletes.
  package var isClosed: Bool { false }
}
