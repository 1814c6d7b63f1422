// SAFETY: a frozen delta's keys and slots never change again; what of it does change lazily,
// its order and its labels' candidates, is copied here while the owner's lock is held. An
// image is immutable.

/// The frozen delta and the image beneath, as a merge wants them.
///
/// May be used on any thread, without the lock of the index that it was taken from.
package struct MergeInput: @unchecked Sendable {
  let image: Image?
  let frozen: Delta
  let frozenOrder: SortedSlots
  let frozenLabels: DeltaLabels
  private let overridden: Int
  let labels: StringInterner
  let sets: StringInterner
  let seed: UInt64

  init(image: Image?, frozen: Delta, table: LabelTable, seed: UInt64) {
    self.image = image
    self.frozen = frozen
    frozenOrder = frozen.order
    frozenLabels = frozen.labels
    overridden = frozen.overriddenOrdinals.count
    labels = table.labels.copy()
    sets = table.sets.copy()
    self.seed = seed
  }

  /// Per label id how many keys of the result carry the label.
  func labelCounts() throws(IndexError) -> [Int] {
    var old = image.map(OldPostings.init)
    var counts: [Int] = []
    counts.reserveCapacity(Int(labels.nextID))
    for label in 0..<Int(labels.nextID) {
      let before = try old?.currentCount(label) ?? 0
      counts.append(before + frozenLabels.change(of: UInt32(truncatingIfNeeded: label)))
    }
    return counts
  }

  /// How many keys the result has at most, and exactly if no tombstone is dropped.
  var keys: Int { (image?.count ?? 0) + frozen.count - overridden }
}
