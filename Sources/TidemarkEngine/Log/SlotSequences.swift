/// The sequence of every slot of a compacted segment, the other way round than its locator has
/// them: a scan by key goes from slot to slot, and asks of each only whether it is the right one.
package final class SlotSequences: Sendable {
  private let first: UInt64
  private let offsets: [UInt32]

  /// Reads all sequences of a segment.
  /// - Throws: an error where they lie further apart than in one segment.
  init(_ locator: SealedLocator) throws(LogReadError) {
    first = locator.footer.firstSequence
    var offsets = [UInt32](repeating: .max, count: locator.footer.slotCount)
    for row in 0..<locator.footer.sequenceCount {
      let (sequence, slot) = try locator.sequence(row)
      guard sequence >= first, sequence - first < UInt64(UInt32.max) else {
        throw SealedLocator.outOfBounds
      }
      offsets[slot] = UInt32(sequence - first)
    }
    self.offsets = offsets
  }

  /// Bytes of memory of such a list.
  /// - Parameter slots: how many slots the segment has.
  static func memoryBytes(slots: Int) -> Int { slots * 4 + 64 }

  /// Whether an entry is the one at a slot.
  @inline(__always)
  func holds(_ sequence: UInt64, at slot: Int) -> Bool {
    slot >= 0 && slot < offsets.count && first &+ UInt64(offsets[slot]) == sequence
  }
}
