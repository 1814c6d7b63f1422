package import TidemarkEngine
package import TidemarkSyncProtocol

/// The records of a feed's owner.
extension RecordType {
  /// How far a feed has come with a replica's batches; the key is the replica.
  package static let feedMark = RecordType(rawValue: 16)
  /// For how long a feed waits for a replica; the key is the replica.
  package static let feedLease = RecordType(rawValue: 17)
  /// How conflicts are decided; the key is the prefix of the keys for which it counts.
  package static let feedPolicy = RecordType(rawValue: 18)
  // 19 was for parts of large values, and stays free.
  /// A change that lost by policy; the key is the key that it was for.
  package static let loser = RecordType(rawValue: 256)
}

/// How far a feed has come with a replica's batches: the last record of every batch. Its bytes, and
/// those of a lease, are in `HowReplicationWorks.md`.
struct MarkRecord: StoredRecord {
  /// The epoch of entries of the same batch; 0 is that of what stands before all that are listed.
  static let plannedEpoch = UInt64.max

  private var entries: UInt64 = 0
  private var mark = ReplicaMark()

  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(2)
    try record.varint(&entries)
    try mark.code(&record)
  }

  /// Stands for an entry that is only about to be appended, and has no position yet.
  /// - Parameter index: among the entries of its batch.
  static func planned(_ index: Int) -> Position {
    Position(epoch: plannedEpoch, offset: UInt64(index) + 1)
  }

  /// The record of a batch that is about to be appended with so many entries before it.
  static func encode(
    number: UInt64, batchID: BatchID, verdicts: [Verdict], entries: Int
  ) -> [UInt8] {
    let mark = ReplicaMark(number: number, batchID: batchID, verdicts: verdicts)
    return MarkRecord(entries: UInt64(entries), mark: mark).encoded
  }

  /// - Parameter own: where the record stands.
  static func decode(_ bytes: RawSpan, at own: Position) throws(FormatError) -> ReplicaMark {
    let record = try MarkRecord(decoding: bytes)
    var (entries, mark) = (record.entries, record.mark)
    guard entries < own.offset else {
      throw FormatError("a batch that begins before the feed")
    }
    mark.verdicts = try mark.verdicts.map { (verdict) throws(FormatError) in
      guard let place = verdict.position, place.epoch == plannedEpoch else { return verdict }
      guard place.offset > 0, place.offset <= entries else {
        throw FormatError("a verdict on what is not in its batch")
      }
      return verdict.at(Position(epoch: own.epoch, offset: own.offset - entries + place.offset - 1))
    }
    return mark
  }
}

/// For how long a feed waits for a replica, and where that replica stood.
package struct FeedLease: Sendable, Hashable {
  /// When it ends, in milliseconds since 1970; the greatest number for never.
  package var expires: UInt64
  /// Until when deletes are kept: as long as it goes on for a replica that reads, not at all for
  /// one that has only pushed.
  package var readsUntil: UInt64
  package var cursor: Position
  /// A replica that held nothing then has not missed deletes up to here, wherever its cursor is.
  package var clearedThrough: UInt64

  /// Whether deletes behind the cursor are kept for the replica. None are for a lease without end:
  /// nobody may ever come back to take it further.
  package func isReading(at time: UInt64) -> Bool {
    let end = min(expires, readsUntil)
    return end > time && end < .max
  }
}

extension FeedLease: StoredRecord {
  package init() { self.init(expires: 0, readsUntil: 0, cursor: .beginning, clearedThrough: 0) }

  package mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(2)
    try record.varint(&expires)
    try cursor.code(&record)
    try record.varint(&clearedThrough)
    try record.varint(&readsUntil)
  }
}
