internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The ids of the batches that this store has formed for a peer, so that what a restored peer holds
/// of them is told from what a copy of this store has sent.
///
/// An id is made of a random seed and the batch's number. Every session draws a seed, and draws
/// another one before it gives a number a second time: what has the same number and id is the same
/// batch. A copy of the store knows the numbers that were given before it was made, and no others.
package struct BatchNames: Sendable, Hashable {
  /// The batches of one seed.
  struct Row: Sendable, Hashable {
    var seed: UInt64
    var first: UInt64
    var last: UInt64
  }

  private(set) var rows: [Row] = []
  private static let mostRows = 16

  static func id(_ seed: UInt64, _ number: UInt64) -> BatchID {
    var bits = seed ^ number &* 0x9e37_79b9_7f4a_7c15
    bits = (bits ^ bits >> 30) &* 0xbf58_476d_1ce4_e5b9
    bits = (bits ^ bits >> 27) &* 0x94d0_49bb_1331_11eb
    // The id of the empty batch in its place, the opposite, is nobody else's then.
    return BatchID((bits ^ bits >> 31) | 1)
  }

  mutating func note(_ number: UInt64, of seed: UInt64) {
    if let last = rows.last, last.seed == seed, last.last < number {
      rows[rows.count - 1].last = number
      return
    }
    rows.append(Row(seed: seed, first: number, last: number))
    if rows.count > Self.mostRows { rows.removeFirst() }
  }

  /// Whether a batch is one of these, or the empty one in its place.
  func contains(_ number: UInt64, _ id: BatchID) -> Bool {
    rows.contains { row in
      guard row.first <= number, number <= row.last else { return false }
      let own = Self.id(row.seed, number)
      return own == id || own.ofEmpty == id
    }
  }

  /// The id that the newest seed gives a number.
  func newest(_ number: UInt64) -> BatchID? { rows.last.map { Self.id($0.seed, number) } }

  /// The last number that was given.
  var last: UInt64 {
    get { rows.last?.last ?? 0 }
    set { if !rows.isEmpty { rows[rows.count - 1].last = newValue } }
  }

  // MARK: Coding

  /// u8 count; per row u64 seed, varint first and last: of the newest row without its last, which
  /// changes with every batch.
  func encode(into writer: inout ByteWriter) {
    writer.u8(UInt8(rows.count))
    for (index, row) in rows.enumerated() {
      writer.u64(row.seed)
      writer.varint(row.first)
      if index < rows.count - 1 { writer.varint(row.last) }
    }
  }
}

extension BatchNames {
  init(from reader: inout ByteReader) throws(FormatError) {
    let count = Int(try reader.u8())
    for index in 0..<count {
      let seed = try reader.u64()
      let first = try reader.varint()
      rows.append(
        Row(seed: seed, first: first, last: index < count - 1 ? try reader.varint() : first))
    }
  }
}

struct BatchNaming {
  private(set) var seed: UInt64 = 0
  private var last: UInt64 = .max

  /// The id of a batch that is being formed; another one each time.
  /// - Parameter random: draws a seed.
  mutating func next(_ number: UInt64, _ random: () -> UInt64) -> BatchID {
    if number <= last { seed = random() }
    last = number
    return BatchNames.id(seed, number)
  }
}

extension BatchID {
  /// The id of the empty batch that takes this one's place.
  var ofEmpty: BatchID { BatchID(~bits) }
}
