/// Which slots a walk returns.
struct SlotFilter {
  /// Whether every key passes, deleted ones and those with other labels, too.
  let takesAll: Bool
  /// The label query that keys must match; nil where their labels do not matter.
  var predicate: LabelPredicate?
  let table: LabelTable

  @inline(__always)
  mutating func passes(_ slot: Slot) throws(IndexError) -> Bool {
    if takesAll { return true }
    if slot.isDeleted { return false }
    return try predicate?.matches(slot.labelSet, table) ?? true
  }
}
