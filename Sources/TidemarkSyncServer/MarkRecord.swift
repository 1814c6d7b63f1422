internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// How far a feed has come with a replica's batches: the last record of every batch.
///
/// ```
/// u8      version, 2
/// varint  how many entries of the batch stand before this record
/// mark    as in an answer; entries of the batch have the epoch 2^64 - 1 and count from 1
/// ```
enum MarkRecord {
  private static let version: UInt8 = 2
  /// The epoch of entries of the same batch; 0 is that of what stands before all that are listed.
  static let plannedEpoch = UInt64.max

  /// Stands for an entry that is only about to be appended, and has no position yet.
  /// - Parameter index: among the entries of its batch.
  static func planned(_ index: Int) -> Position {
    Position(epoch: plannedEpoch, offset: UInt64(index) + 1)
  }

  /// The record of a batch that is about to be appended with so many entries before it.
  static func encode(
    number: UInt64, batchID: BatchID, verdicts: [Verdict], entries: Int
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(version)
    writer.varint(entries)
    writer.raw(ReplicaMark(number: number, batchID: batchID, verdicts: verdicts).encoded)
    return writer.bytes
  }

  /// - Parameter own: where the record stands.
  static func decode(_ bytes: RawSpan, at own: Position) throws(FormatError) -> ReplicaMark {
    var reader = ByteReader(bytes)
    guard try reader.u8() == version else {
      throw FormatError("unknown version of a replica's mark", isNewer: true)
    }
    let entries = try reader.varint()
    guard entries < own.offset else {
      throw FormatError("a batch that begins before the feed")
    }
    let start = try reader.skip(reader.remaining)
    var mark = try ReplicaMark(decoding: try bytes.slice(start, bytes.byteCount - start))
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
