/// Where a value stands: in one block, beside others, or in several blocks of its own.
package struct ValueLocation: Sendable, Hashable {
  package var segmentID: UInt64
  package var first: BlockRecord
  /// The blocks after the first, for a value longer than a block.
  package var more: [BlockRecord]
  /// Where the value begins in the first raw block.
  package var position: Int
  package var length: Int
}

extension ValueLocation {
  /// Works out a value's length and blocks from where it and the next value begin; nil where these
  /// contradict each other, as those of a damaged locator may.
  package init?(
    segmentID: UInt64, place: ValuePlace, next: ValuePlace, block: (Int) -> BlockRecord
  ) {
    self.segmentID = segmentID
    position = Int(place.position)
    more = []
    guard next.block >= place.block else { return nil }
    if next.block == place.block {
      length = Int(next.position) - position
      guard length >= 0 else { return nil }
      first = BlockRecord.none
      if length > 0 {
        first = block(Int(place.block))
        guard position + length <= Int(first.rawLength) else { return nil }
      }
      return
    }
    first = block(Int(place.block))
    length = Int(first.rawLength) - position
    guard length >= 0, next.block - place.block <= Limits.frameBlocks else { return nil }
    for i in (place.block + 1)..<max(next.block, place.block + 1) {
      let record = block(Int(i))
      length += Int(record.rawLength)
      more.append(record)
    }
    guard length <= Limits.recordBytes else { return nil }
  }
}

extension BlockRecord {
  /// Stands for the block of an empty value, which has none.
  package static let none = BlockRecord(
    offset: 0, entry: BlockEntry(storedLength: 0, rawLength: 0, codec: .raw))
}
