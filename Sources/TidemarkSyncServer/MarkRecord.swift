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
/// u8      version, 1
/// varint  number
/// u64     id of the batch
/// varint  count of runs; per run:
///   u8      1 applied, 2 duplicate, 3 conflict, 4 lost, 5 rejected, 6 aborted
///   varint  how many changes in a row; those that applied stand one behind the other
///   place   (1 to 4) varint how far before this record; after a 0: u64 epoch, varint offset
///   text    (5) varint length, code; varint length, message
/// ```
struct MarkRecord: Equatable {
  private static let version: UInt8 = 1
  /// Most changes that a mark tells of.
  static let changes = 1 << 20

  var mark: ReplicaMark

  init(mark: ReplicaMark) { self.mark = mark }

  // MARK: Encoding

  /// The record of a batch that is about to be appended with so many entries before it.
  static func encode(
    number: UInt64, batchID: BatchID, rulings: [Ruling], entries: Int
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(version)
    writer.varint(number)
    writer.u64(batchID.bits)
    var runs: [(ruling: Ruling, count: Int)] = []
    for ruling in rulings {
      if let last = runs.last, continues(last.ruling, by: last.count) == ruling {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((ruling, 1))
      }
    }
    writer.varint(runs.count)
    for run in runs {
      writer.u8(code(of: run.ruling))
      writer.varint(run.count)
      switch run.ruling {
      case .applied(let place), .duplicate(let place), .conflict(let place), .lost(let place):
        encode(place, entries, into: &writer)
      case .rejected(let rejection):
        encode(rejection.code, into: &writer)
        encode(rejection.message, into: &writer)
      case .aborted: break
      }
    }
    return writer.bytes
  }

  /// The ruling that has to stand behind a run to belong to it; nil when none does.
  private static func continues(_ ruling: Ruling, by count: Int) -> Ruling? {
    switch ruling {
    case .applied(.planned(let index)): .applied(.planned(index + count))
    case .applied: nil
    default: ruling
    }
  }

  private static func code(of ruling: Ruling) -> UInt8 {
    switch ruling {
    case .applied: 1
    case .duplicate: 2
    case .conflict: 3
    case .lost: 4
    case .rejected: 5
    case .aborted: 6
    }
  }

  private static func encode(
    _ place: Ruling.Place, _ entries: Int, into writer: inout ByteWriter
  ) {
    switch place {
    case .planned(let index): writer.varint(entries - index)
    case .at(let position):
      writer.varint(0)
      writer.u64(position.epoch)
      writer.varint(position.offset)
    }
  }

  private static func encode(_ text: String, into writer: inout ByteWriter) {
    writer.varint(text.utf8.count)
    writer.raw(Array(text.utf8))
  }

  // MARK: Decoding

  /// - Parameter own: where the record stands.
  init(decoding bytes: RawSpan, at own: Position) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("unknown version of a replica's mark", isNewer: true)
    }
    let number = try reader.varint()
    let id = BatchID(try reader.u64())
    var verdicts: [Verdict] = []
    for _ in 0..<(try reader.varint(atMost: reader.remaining)) {
      let code = try reader.u8()
      let count = try reader.varint(atMost: Self.changes - verdicts.count)
      guard count > 0 else { throw FormatError("an empty run in a replica's mark") }
      try Self.decode(code, count, own, &reader, into: &verdicts)
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind a replica's mark") }
    mark = ReplicaMark(number: number, batchID: id, verdicts: verdicts)
  }

  private static func decode(
    _ code: UInt8, _ count: Int, _ own: Position, _ reader: inout ByteReader,
    into verdicts: inout [Verdict]
  ) throws(FormatError) {
    switch code {
    case 1:
      let (first, isRelative) = try decodePlace(own, &reader)
      guard isRelative || count == 1, first.offset <= UInt64.max - UInt64(count) else {
        throw FormatError("a run of changes that cannot stand in a row")
      }
      for i in 0..<UInt64(count) {
        verdicts.append(.applied(Position(epoch: first.epoch, offset: first.offset + i)))
      }
    case 2, 3, 4:
      let place = try decodePlace(own, &reader).position
      let verdict: Verdict =
        code == 2 ? .duplicate(place) : code == 3 ? .conflict(place) : .lost(place)
      verdicts.append(contentsOf: repeatElement(verdict, count: count))
    case 5:
      let rejection = Rejection(
        code: try decodeText(Rejection.codeBytes, &reader),
        message: try decodeText(Rejection.messageBytes, &reader))
      verdicts.append(contentsOf: repeatElement(.rejected(rejection), count: count))
    case 6: verdicts.append(contentsOf: repeatElement(.aborted, count: count))
    default: throw FormatError("unknown verdict in a replica's mark", isNewer: true)
    }
  }

  private static func decodePlace(
    _ own: Position, _ reader: inout ByteReader
  ) throws(FormatError) -> (position: Position, isRelative: Bool) {
    let distance = try reader.varint()
    if distance == 0 {
      return (Position(epoch: try reader.u64(), offset: try reader.varint()), false)
    }
    guard distance < own.offset else {
      throw FormatError("a verdict on what stands before the beginning")
    }
    return (Position(epoch: own.epoch, offset: own.offset - distance), true)
  }

  private static func decodeText(
    _ limit: Int, _ reader: inout ByteReader
  ) throws(FormatError) -> String {
    let bytes = try reader.array(try reader.varint(atMost: limit))
    return String(decoding: bytes, as: UTF8.self)
  }
}
