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
  /// Whether a key that the image's current posting lists give matches without a look.
  private let trustsPostings: Bool
  private var predicate: LabelPredicate?
  private let table: LabelTable

  init(_ kind: Kind, _ table: LabelTable) {
    self.kind = kind
    self.table = table
    trustsPostings = false
  }

  init(_ predicate: LabelPredicate, trustsPostings: Bool, _ table: LabelTable) {
    kind = .labels
    self.predicate = predicate
    self.trustsPostings = trustsPostings
    self.table = table
  }

  /// Whether a slot found by a posting list of the image, or by a walk over all, is wanted.
  @inline(__always)
  mutating func passesImage(_ slot: Slot) throws(IndexError) -> Bool {
    if trustsPostings { return true }
    return try passes(slot)
  }

  @inline(__always)
  mutating func passes(_ slot: Slot) throws(IndexError) -> Bool {
    if kind == .everything { return true }
    if slot.isDeleted { return false }
    guard kind == .labels else { return true }
    return try predicate?.matches(slot.labelSet, table) ?? true
  }
}
