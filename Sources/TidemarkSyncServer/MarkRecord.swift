internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A verdict that may speak of what has no position yet, since it is only about to be appended.
package enum Ruling: Sendable, Hashable {
  package enum Place: Sendable, Hashable {
    /// An entry of the same batch.
    case planned(Int)
    case at(Position)
  }

  case applied(Place)
  case duplicate(Place)
  case conflict(Place)
  case lost(Place)
  case rejected(Rejection)
  case aborted
}

/// How far a feed has come with a replica's batches: the last record of every batch.
///
/// ```
/// u8      version, 2
/// varint  how many entries of the batch stand before this record
/// mark    as in an answer; entries of the batch have the epoch 2^64 - 1 and count from 1
/// ```
struct MarkRecord: Equatable {
  private static let version: UInt8 = 2
  /// The epoch of entries of the same batch; 0 is that of what stands before all that are listed.
  fileprivate static let planned = UInt64.max

  var mark: ReplicaMark

  /// The record of a batch that is about to be appended with so many entries before it.
  static func encode(
    number: UInt64, batchID: BatchID, rulings: [Ruling], entries: Int
  ) -> [UInt8] {
    let mark = ReplicaMark(number: number, batchID: batchID, verdicts: rulings.map(\.verdict))
    var writer = ByteWriter()
    writer.u8(version)
    writer.varint(entries)
    writer.raw(mark.encoded)
    return writer.bytes
  }

  /// - Parameter own: where the record stands.
  init(decoding bytes: RawSpan, at own: Position) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("unknown version of a replica's mark", isNewer: true)
    }
    let entries = try reader.varint()
    guard entries < own.offset else {
      throw FormatError("a batch that begins before the feed")
    }
    let start = try reader.skip(reader.remaining)
    mark = try ReplicaMark(decoding: try bytes.slice(start, bytes.byteCount - start))
    mark.verdicts = try mark.verdicts.map { (verdict) throws(FormatError) in
      guard let place = verdict.position, place.epoch == Self.planned else { return verdict }
      guard place.offset > 0, place.offset <= entries else {
        throw FormatError("a verdict on what is not in its batch")
      }
      return verdict.at(
        Position(epoch: own.epoch, offset: own.offset - entries + place.offset - 1))
    }
  }
}

extension Ruling {
  /// The verdict that the record has.
  fileprivate var verdict: Verdict {
    switch self {
    case .applied(let place): .applied(place.position)
    case .duplicate(let place): .duplicate(place.position)
    case .conflict(let place): .conflict(place.position)
    case .lost(let place): .lost(place.position)
    case .rejected(let rejection): .rejected(rejection)
    case .aborted: .aborted
    }
  }
}

extension Ruling.Place {
  fileprivate var position: Position {
    switch self {
    case .planned(let index): Position(epoch: MarkRecord.planned, offset: UInt64(index) + 1)
    case .at(let position): position
    }
  }
}
