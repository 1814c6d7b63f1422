/// A hash table from the sequences of entries to their places in an array, with open addressing and
/// linear probing. Sequences are given by the log, and nobody chooses them, so the hash needs no
/// seed.
///
/// A row has the upper half of the hash, by which it also knows where it belongs; the sequence
/// itself stands in the array.
struct PlaceTable: Sendable {
  private struct Row: Sendable {
    var hash: UInt32 = 0
    /// The entry's index in the array; a negative one marks a free slot of the hash table.
    var place: Int32 = -1
  }

  private var rows: [Row] = []
  private(set) var count = 0

  /// The place of a sequence; nil for one that is not here.
  /// - Parameter isIt: whether the sequence stands at a place.
  @inline(__always)
  func find(_ sequence: UInt64, _ isIt: (Int32) -> Bool) -> Int32? {
    index(of: sequence, isIt).map { rows[$0].place }
  }

  /// What stands where a sequence belongs; to ask brings it closer.
  @inline(__always)
  func home(of sequence: UInt64) -> Int32 {
    rows.isEmpty ? -1 : rows[Int(Self.hash(sequence)) & (rows.count - 1)].place
  }

  /// The place that a sequence is likely to have; -1 for none. Does not look at it.
  @inline(__always)
  func likelyPlace(of sequence: UInt64) -> Int {
    Int(find(sequence) { _ in true } ?? -1)
  }

  /// Adds a sequence that is not here.
  mutating func insert(_ sequence: UInt64, _ place: Int32) {
    if (count + 1) * 8 > rows.count * 7 {
      let old = rows
      rows = Array(repeating: Row(), count: max(8, old.count * 2))
      for row in old where row.place >= 0 { put(row) }
    }
    put(Row(hash: Self.hash(sequence), place: place))
    count += 1
  }

  /// Takes a sequence out. The rows behind it move up, so that none is cut off from its home.
  /// - Parameter isIt: whether the sequence stands at a place.
  /// - Returns: its place; nil for one that was not here.
  mutating func remove(_ sequence: UInt64, _ isIt: (Int32) -> Bool) -> Int32? {
    guard var gap = index(of: sequence, isIt) else { return nil }
    let (mask, place) = (rows.count - 1, rows[gap].place)
    var index = (gap + 1) & mask
    while rows[index].place >= 0 {
      // The row may fill the gap unless its home lies behind that.
      if (index - Int(rows[index].hash)) & mask >= (index - gap) & mask {
        rows[gap] = rows[index]
        gap = index
      }
      index = (index + 1) & mask
    }
    rows[gap] = Row()
    count -= 1
    return place
  }

  @inline(__always)
  private func index(of sequence: UInt64, _ isIt: (Int32) -> Bool) -> Int? {
    guard count > 0 else { return nil }
    let (hash, mask) = (Self.hash(sequence), rows.count - 1)
    var index = Int(hash) & mask
    while rows[index].place >= 0 {
      if rows[index].hash == hash, isIt(rows[index].place) { return index }
      index = (index + 1) & mask
    }
    return nil
  }

  private mutating func put(_ row: Row) {
    var index = Int(row.hash) & (rows.count - 1)
    while rows[index].place >= 0 { index = (index + 1) & (rows.count - 1) }
    rows[index] = row
  }

  private static func hash(_ sequence: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: (sequence &* 0x9E37_79B9_7F4A_7C15) >> 32)
  }
}
