/// Which slots a walk returns.
struct SlotFilter {
  enum Kind {
    /// Every key.
    case everything
    /// Keys that are not deleted.
    case live
    /// Keys that are not deleted and match a label query.
    case labels
  }

  let kind: Kind
  private var predicate: LabelPredicate?
  private let table: LabelTable

  init(_ kind: Kind, _ table: LabelTable) {
    self.kind = kind
    self.table = table
  }

  init(_ predicate: LabelPredicate, _ table: LabelTable) {
    kind = .labels
    self.predicate = predicate
    self.table = table
  }

  /// Whether a slot is wanted.
  @inline(__always)
  mutating func passes(_ slot: Slot) throws(IndexError) -> Bool {
    if kind == .everything { return true }
    if slot.isDeleted { return false }
    guard kind == .labels else { return true }
    return try predicate?.matches(slot.labelSet, table) ?? true
  }
}
