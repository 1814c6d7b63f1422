package import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The log that a database's replicas share, as a ``SyncHandler`` needs it: a total order of
/// entries with what every key holds now, the marks and leases of replicas, and small records.
///
/// A handler keeps nothing beside it, so any number of handlers, also of several processes, may
/// stand over one feed: a batch is appended only after the mark, and upon the states and policies,
/// that it was judged by. Calls take and give many things at a time; they block, and come from
/// several threads. What was appended can be read at once, and is on the disk once
/// ``settle(through:)`` has returned.
package protocol Feed: Sendable {
  /// Tells one feed from another.
  var id: ReplicaID { get }
  /// The store that keeps content beside the feed: of attachments, and what comes ahead of its
  /// change. Nil where none can be kept: neither attachments nor parts of large values are taken.
  var contents: Engine? { get }
  /// The time of day.
  var now: Timestamp { get }

  /// Where the feed begins and ends.
  func bounds() throws(TidemarkError) -> FeedBounds
  /// Returns once everything through a position is on the disk. Callers share a sync: one of them
  /// makes it, for all that was appended by then.
  /// - Throws: `unknownOutcome` when a sync has failed, whoever made it, or when what stood there
  ///   was lost meanwhile.
  func settle(through position: Position) throws(TidemarkError)

  /// How far a replica's batches have come.
  func mark(of replica: ReplicaID) throws(TidemarkError) -> FeedMark
  /// The policies for what is pushed.
  func policies() throws(TidemarkError) -> PolicyTable
  /// The states of keys now, in their order; nil for those of which nothing is known, and for what
  /// is too short or too long for a key. A key may be asked for more than once.
  func states(of keys: [[UInt8]]) throws(TidemarkError) -> [FeedState?]
  /// The puts and deletes at offsets, without their values, as far as they are kept.
  func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead]
  /// The values of the puts at offsets, as far as they are kept.
  func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]]
  /// A page of puts and deletes, without their values.
  func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage
  /// Appends a batch and the mark of its replica, all or nothing, if everything still is as it was
  /// judged by.
  func append(_ batch: JudgedBatch) throws(TidemarkError) -> AppendOutcome

  /// Calls `body` with all keys that have a value, as they were at one offset.
  /// - Parameter wants: which keys are wanted; the values of others are not read.
  /// - Returns: the offset.
  func scan(
    wants: ([UInt8]) -> Bool, _ body: (FeedKey, RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> UInt64

  /// The newest record of a name; nil when there is none.
  func record(_ type: RecordType, key: [UInt8]) throws(TidemarkError) -> FeedRecord?
  /// The keys of all records of a type.
  func recordKeys(of type: RecordType) -> [[UInt8]]
  /// Appends records, in one step; an empty value takes the name away.
  /// - Returns: the position of the last.
  @discardableResult
  func append(
    _ type: RecordType, _ records: [(key: [UInt8], value: [UInt8])]
  ) throws(TidemarkError) -> Position

  /// Calls `body` whenever there is something new to pull; needless calls do no harm.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  func observe(_ body: @escaping @Sendable () -> Void) -> Int
  func stopObserving(_ token: Int)

  // MARK: The part that its owner looks after, of which every handler of the feed sees the same

  /// The leases.
  var leases: Lock<FeedLeases> { get }
  /// The content that comes, or has come, ahead of the changes that name it. Not held while content
  /// is read or written.
  var arriving: Lock<ArrivingAttachments> { get }
  /// Keeps deletes behind an offset until another offset is given; nil lets them go.
  func keepDeletes(behind offset: UInt64?) throws(TidemarkError)
  /// The worth of a compaction; see ``SyncHandler/space(from:)``.
  func space(from minimum: Int) throws(TidemarkError) -> LogSpace
  /// Gives back what is not needed any more, until it is told to stop.
  func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary
  func close() throws(TidemarkError)
}

extension Feed {
  /// The range of the feed as far as it can be seen, on the disk or not.
  package func range() throws(TidemarkError) -> FeedRange { try bounds().range }

  /// The time of day so long ago, in milliseconds since 1970.
  func time(before milliseconds: UInt64) -> UInt64 {
    let now = now.sinceEpoch
    return now - min(now, milliseconds)
  }

  /// Appends a record; an empty value takes the name away.
  /// - Returns: its position.
  @discardableResult
  package func append(
    _ type: RecordType, key: [UInt8], value: [UInt8]
  ) throws(TidemarkError) -> Position {
    try append(type, [(key: key, value: value)])
  }

  /// Takes records away, in one step.
  package func remove(_ type: RecordType, keys: [[UInt8]]) throws(TidemarkError) {
    guard !keys.isEmpty else { return }
    try append(type, keys.map { (key: $0, value: []) })
  }
}
