internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A batch that has its number: written to the log before it is sent, so that what is sent again
/// after a crash is the same.
package struct FormedBatch: Sendable, Hashable {
  package struct Item: Sendable, Hashable {
    package var sequence: UInt64
    /// The version it was made upon, as far as this peer knows.
    package var base: ChangeBase
  }

  package var number: UInt64
  package var batchID: BatchID
  package var items: [Item]

  /// The bytes as in `HowReplicationWorks.md`.
  func encoded(_ progress: PeerProgress, _ epoch: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.zigzag(Int64(bitPattern: number &- progress.number))
    let isUsual = batchID == progress.usualID(number)
    writer.varint(UInt64(items.count) << 1 | (isUsual ? 0 : 1))
    if !isUsual { writer.u64(batchID.bits) }
    var last = progress.frontier
    for item in items {
      writer.zigzag(Int64(bitPattern: item.sequence &- last))
      last = item.sequence
      item.base.encode(into: &writer, Position(epoch: epoch, offset: progress.cursor.offset))
    }
    return writer.bytes
  }

  var sequences: SequenceSet {
    items.reduce(into: SequenceSet()) { $0.insert($1.sequence) }
  }
}

extension FormedBatch {
  init(decoding bytes: RawSpan, _ progress: PeerProgress, _ epoch: UInt64) throws(FormatError) {
    var reader = ByteReader(bytes)
    number = progress.number &+ UInt64(bitPattern: try reader.zigzag())
    let bits = try reader.varint()
    batchID = bits & 1 == 0 ? progress.usualID(number) : BatchID(try reader.u64())
    let count = Int(clamping: bits >> 1)
    guard count <= reader.remaining / 2 else { throw FormatError("more changes than bytes") }
    items = []
    items.reserveCapacity(count)
    var last = progress.frontier
    let place = Position(epoch: epoch, offset: progress.cursor.offset)
    for _ in 0..<count {
      last = last &+ UInt64(bitPattern: try reader.zigzag())
      items.append(Item(sequence: last, base: try ChangeBase(from: &reader, place)))
    }
    guard reader.remaining == 0 else { throw FormatError("bytes after a formed batch") }
  }
}

extension ChangeBase {
  /// - Parameter place: its epoch need not be told, and offsets are counted from it.
  func encode(into writer: inout ByteWriter, _ place: Position) {
    switch self {
    case .absent: writer.u8(0)
    case .position(let position) where position.epoch == place.epoch:
      writer.u8(3)
      writer.zigzag(Int64(bitPattern: position.offset &- place.offset))
    case .position(let position):
      writer.u8(1)
      position.encode(into: &writer)
    case .operation(let sequence):
      writer.u8(2)
      writer.varint(sequence)
    }
  }

  init(from reader: inout ByteReader, _ place: Position) throws(FormatError) {
    switch try reader.u8() {
    case 0: self = .absent
    case 1: self = .position(try Position(from: &reader))
    case 2: self = .operation(sequence: try reader.varint())
    case 3:
      let distance = UInt64(bitPattern: try reader.zigzag())
      self = .position(Position(epoch: place.epoch, offset: place.offset &+ distance))
    default: throw FormatError("unknown kind of base")
    }
  }
}

/// Draws the ids of batches: of a random seed and the batch's number. Every session draws a seed,
/// and draws another one before it gives a number a second time: what has the same number and id is
/// the same batch.
struct BatchNaming {
  private(set) var seed: UInt64 = 0
  private var last: UInt64 = .max

  /// The id of a batch that is being formed; another one each time.
  /// - Parameter random: draws a seed.
  mutating func next(_ number: UInt64, _ random: () -> UInt64) -> BatchID {
    if number <= last { seed = random() }
    last = number
    return BatchID(seed, number)
  }
}

extension BatchID {
  /// The id that a seed gives a number.
  init(_ seed: UInt64, _ number: UInt64) {
    var bits = seed ^ number &* 0x9e37_79b9_7f4a_7c15
    bits = (bits ^ bits >> 30) &* 0xbf58_476d_1ce4_e5b9
    bits = (bits ^ bits >> 27) &* 0x94d0_49bb_1331_11eb
    // The id of the empty batch in its place, the opposite, is nobody else's then.
    self.init((bits ^ bits >> 31) | 1)
  }

  /// The id of the empty batch that takes this one's place.
  var ofEmpty: BatchID { BatchID(~bits) }
}
