package import Tidemark
package import TidemarkEngine

/// The log that a database's replicas share, as a ``SyncHandler`` needs it: a total order of
/// entries with what every key holds now, and the handler's own records.
///
/// Calls may come from several threads; appends come one at a time, from the handler's lock. What
/// was appended can be read at once, and is on the disk once ``settle(through:)`` has returned.
package protocol Feed: Sendable {
  /// Tells one feed from another.
  var id: ReplicaID { get }
  /// The time of day.
  var now: Timestamp { get }

  /// The range of the feed as far as it can be seen, on the disk or not.
  func range() throws(TidemarkError) -> FeedRange
  /// The range of the feed through an offset, or as far as it is on the disk if that is further.
  func range(through offset: UInt64) throws(TidemarkError) -> FeedRange
  /// Whether everything through a position is on the disk.
  func isSettled(through position: Position) throws(TidemarkError) -> Bool
  /// Returns once everything through a position is on the disk. Callers share a sync: one of them
  /// makes it, for all that was appended by then.
  /// - Throws: `unknownOutcome` when a sync has failed, whoever made it, or when what stood there
  ///   was lost meanwhile.
  func settle(through position: Position) throws(TidemarkError)
  /// Below this offset it may be unknown what a key held before an entry; 0 where everything is
  /// kept.
  func historyFrom() throws(TidemarkError) -> UInt64

  /// The state of a key now; nil when nothing is known of it.
  func state(of key: [UInt8]) throws(TidemarkError) -> FeedState?
  /// The state of an entry's key, if a later entry gave it that; nil when the entry is the
  /// key's last, or the last one lies behind an offset.
  func laterState(
    than head: FeedHead, through last: UInt64
  ) throws(TidemarkError) -> FeedState?
  /// Whether an entry is a delete of a key; nil when it is not kept.
  func isDelete(at position: Position, of key: [UInt8]) throws(TidemarkError) -> Bool?
  /// The value of the put at an offset; nil when it is not kept.
  func value(at offset: UInt64) throws(TidemarkError) -> [UInt8]?
  /// The put or delete at an offset; nil when it is not kept.
  func head(at offset: UInt64) throws(TidemarkError) -> FeedHead?
  /// The key of the entry at an offset; nil when it is not kept.
  func key(at offset: UInt64) throws(TidemarkError) -> [UInt8]?

  /// The puts and deletes behind an offset, without their values.
  /// - Parameters:
  ///   - offset: where to begin, itself left out.
  ///   - last: where to end.
  ///   - limit: about how many to look at.
  func heads(
    after offset: UInt64, through last: UInt64, limit: Int
  ) throws(TidemarkError) -> FeedHeads
  /// The state of an entry's key before it.
  func former(of head: FeedHead) throws(TidemarkError) -> FormerState
  /// Calls `body` with all keys that have a value, as they were at one offset.
  /// - Parameter wants: which keys are wanted; the values of others are not read.
  /// - Returns: the offset.
  func scan(
    wants: ([UInt8]) -> Bool, _ body: (FeedKey, RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> UInt64

  /// The newest record of a name; nil when there is none.
  func record(_ type: RecordType, key: [UInt8]) throws(TidemarkError) -> FeedRecord?
  /// When the newest record of a name was written; nil when there is none.
  func recordTime(_ type: RecordType, key: [UInt8]) throws(TidemarkError) -> Timestamp?
  /// The keys of all records of a type.
  func recordKeys(of type: RecordType) -> [[UInt8]]
  /// Appends a record; an empty value takes the name away.
  /// - Returns: its position.
  @discardableResult
  func append(_ type: RecordType, key: [UInt8], value: [UInt8]) throws(TidemarkError) -> Position
  /// Appends records, in one step.
  func append(
    _ type: RecordType, _ records: [(key: [UInt8], value: [UInt8])]
  ) throws(TidemarkError)
  /// Appends a batch and the mark of its replica, all or nothing.
  /// - Returns: the position of the mark.
  /// - Throws: `conflict` when a key is not in the state any more that the batch was judged upon.
  func append(_ batch: JudgedBatch) throws(TidemarkError) -> Position

  /// Keeps deletes behind an offset until another offset is given; nil lets them go.
  func keepDeletes(behind offset: UInt64?) throws(TidemarkError)
  /// The worth of a compaction; see ``SyncHandler/space(from:)``.
  func space(from minimum: Int) throws(TidemarkError) -> SyncSpace
  /// Gives back what is not needed any more, until it is told to stop.
  func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary
  /// Takes records away, in one step.
  func remove(_ type: RecordType, keys: [[UInt8]]) throws(TidemarkError)
  /// Calls `body` whenever something was appended.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  func observe(_ body: @escaping @Sendable () -> Void) -> Int
  func stopObserving(_ token: Int)
  func close() throws(TidemarkError)
}

extension Feed {
  /// Makes durable whatever can be seen, and says what the feed holds.
  package func settledRange() throws(TidemarkError) -> FeedRange {
    let range = try range()
    try settle(through: range.headPosition)
    return range
  }
}

/// The state of a key in a feed.
package struct FeedState: Sendable, Hashable {
  /// The position of the entry that gave it.
  package var position: Position
  /// Changes with everything that happens to the key.
  package var revision: UInt64
  package var isDeleted: Bool
  package var operation: OperationID
  /// The writer's commit time, but not later than the feed's.
  package var commitTime: UInt64
  /// In byte order.
  package var labels: [[UInt8]]
  package var valueLength: Int
  package var attributes: EntryAttributes

  /// The writer's commit time as it is: by it a change is known again, wherever it has been.
  var writtenTime: UInt64 { attributes.writerTime != 0 ? attributes.writerTime : commitTime }
}

/// A put or a delete of a feed, without its value.
package struct FeedHead: Sendable, Hashable {
  package var offset: UInt64
  package var kind: ChangeKind
  package var key: [UInt8]
  /// In byte order.
  package var labels: [[UInt8]]
  package var valueLength: Int
  package var operation: OperationID
  /// The writer's.
  package var commitTime: UInt64
  package var attributes: EntryAttributes
  /// The key's entry before this one; 0 for none.
  package var previous: UInt64

  /// About how many bytes it takes in an answer. Labels count: an entry may have 16 KiB of them.
  var answerBytes: Int { labels.reduce(key.count + valueLength) { $0 + $1.count } }
}

/// A page of heads.
package struct FeedHeads: Sendable {
  package var heads: [FeedHead]
  /// Everything up to here was looked at.
  package var through: UInt64
}

/// The state of a key before an entry.
package enum FormerState: Sendable, Hashable {
  case absent
  /// A value with these labels.
  case present(labels: [[UInt8]])
  /// The state is not kept.
  case unknown
}

/// A key in a scan.
package struct FeedKey: Sendable {
  package var key: [UInt8]
  package var labels: [[UInt8]]
  package var offset: UInt64
}

/// A record of the handler's.
package struct FeedRecord: Sendable, Hashable {
  package var value: [UInt8]
  package var position: Position
}

/// A batch with its verdicts, ready to be appended.
package struct JudgedBatch: Sendable {
  /// One entry to append.
  package struct Entry: Sendable {
    package enum Kind: Sendable, Hashable {
      /// The change applies, provided that the key still is at a revision; nil where an earlier
      /// entry of the batch has changed it.
      case applies(upon: Revision?)
      /// The change is kept beside what it lost to.
      case loses
    }

    /// Which of the batch's changes.
    package var change: Int
    package var kind: Kind
  }

  /// The state that a key must be in.
  package enum Revision: Sendable, Hashable {
    case absent
    case present(UInt64)
  }

  package var request: PushRequest
  package var entries: [Entry]
  package var rulings: [Ruling]
  /// Names of the parts of large values that the batch has, and that need not be kept any more.
  package var uploads: [[UInt8]] = []
}
