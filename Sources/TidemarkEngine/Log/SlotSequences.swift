/// The sequence of every slot (an entry's place in file order) of a compacted segment. Its locator
/// leads the other way, by a search; a scan by key only asks whether the next slot is the one.
package final class SlotSequences: Sendable {
  private let first: UInt64
  /// By slot the sequence less `first`; `UInt32.max` for a slot that the locator leaves out.
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

  /// How many bytes of memory such a list takes.
  /// - Parameter slots: how many slots the segment has.
  static func memoryBytes(slots: Int) -> Int { slots * 4 + 64 }

  /// Whether the entry at a slot has this sequence.
  @inline(__always)
  func holds(_ sequence: UInt64, at slot: Int) -> Bool {
    slot >= 0 && slot < offsets.count && first &+ UInt64(offsets[slot]) == sequence
  }
}
