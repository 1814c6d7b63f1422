/// Which slots a walk over the index returns: live ones, with the labels that a query wants.
struct SlotFilter {
  /// Whether every slot passes, also that of a deleted key or of one with other labels.
  let takesAll: Bool
  /// The label query that keys must match; nil if their labels do not matter.
  var predicate: LabelPredicate?
  let table: LabelTable

  @inline(__always)
  mutating func passes(_ slot: Slot) throws(IndexError) -> Bool {
    if takesAll { return true }
    if slot.isDeleted { return false }
    return try predicate?.matches(slot.labelSet, table) ?? true
  }
}
