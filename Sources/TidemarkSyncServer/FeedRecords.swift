package import TidemarkEngine
package import TidemarkSyncProtocol

/// The records in which a store keeps the state of its feed: the newest of each key counts.
extension RecordType {
  /// The mark of a replica: its last batch, with verdicts; the key is the replica.
  package static let feedMark = RecordType(rawValue: 16)
  /// The lease of a replica; the key is the replica.
  package static let feedLease = RecordType(rawValue: 17)
  /// A policy for conflicts; the key is the prefix of the keys for which it counts.
  package static let feedPolicy = RecordType(rawValue: 18)
  // 19 meant parts of large values once, and is not assigned again.
  /// A change that lost by policy, kept as history; the key is the change's key.
  package static let loser = RecordType(rawValue: 256)
}

/// Codes a replica's mark (number, id and verdicts of its last batch), which is committed with the
/// batch, as its last entry. Its bytes, and those of a lease, are in `HowReplicationWorks.md`.
struct MarkRecord: StoredRecord {
  /// Marks a position as one within the record's batch. No other position can have this epoch.
  static let plannedEpoch = UInt64.max

  private var entries: UInt64 = 0
  private var mark = ReplicaMark()

  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(2)
    try record.varint(&entries)
    try mark.code(&record)
  }

  /// Stands for an entry that is about to be appended, so that its position is not known yet.
  /// - Parameter index: its index among the entries of its batch.
  static func planned(_ index: Int) -> FeedPosition {
    FeedPosition(epoch: plannedEpoch, offset: UInt64(index) + 1)
  }

  /// The record for a batch that is about to be appended after so many entries of that batch.
  static func encode(
    number: UInt64, batchID: BatchID, verdicts: [PushVerdict], entries: Int
  ) throws(TidemarkError) -> [UInt8] {
    let mark = ReplicaMark(number: number, batchID: batchID, verdicts: verdicts)
    return try MarkRecord(entries: UInt64(entries), mark: mark).encoded()
  }

  /// - Parameter own: the record's position, from which those of its batch's entries follow.
  static func decode(_ bytes: RawSpan, at own: FeedPosition) throws(FormatError) -> ReplicaMark {
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
      return verdict.at(
        FeedPosition(epoch: own.epoch, offset: own.offset - entries + place.offset - 1))
    }
    return mark
  }
}

/// A replica's lease: until when tombstones are kept for it, and how far it has read.
package struct FeedLease: Sendable, Hashable {
  /// When it ends, in milliseconds since 1970; the greatest number for never.
  package var expires: UInt64
  /// Until when tombstones are kept: to the end of the lease for a replica that reads, not at all
  /// for one that has only pushed.
  package var readsUntil: UInt64
  package var cursor: FeedPosition
  /// The replica missed no tombstone up to this offset, wherever its cursor is: it held nothing
  /// then, or had compared everything.
  package var clearedThrough: UInt64

  /// Whether tombstones after the cursor are kept for the replica. Not for a lease that does not
  /// expire: a replica that never comes back would keep them for ever.
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
