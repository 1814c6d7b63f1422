/// Merges the walks over the layers of an index; the topmost layer that has a key decides.
struct IndexWalk {
  private var active: DeltaCursor
  private var frozen: DeltaCursor?
  private let descending: Bool

  init(active: DeltaCursor, frozen: DeltaCursor?, descending: Bool) {
    self.active = active
    self.frozen = frozen
    self.descending = descending
  }

  /// Looks at one key and appends it if it qualifies.
  /// - Returns: false at the end.
  mutating func next(
    includeDeleted: Bool, into page: inout KeyPage
  ) throws(IndexError) -> Bool {
    // Slots that the active delta replaces are met there.
    while let number = frozen?.number, active.delta.overriddenSlots.contains(number) {
      frozen?.advance()
    }
    let top = active.number
    let middle = frozen?.number
    if let frozen, let middle, top.map({ isFirst(frozen, middle, $0) }) ?? true {
      take(frozen.delta, middle, includeDeleted, &page)
      self.frozen?.advance()
      return true
    }
    guard let top else { return false }
    take(active.delta, top, includeDeleted, &page)
    active.advance()
    return true
  }

  private func isFirst(_ frozen: DeltaCursor, _ middle: Int, _ top: Int) -> Bool {
    let lower = frozen.delta.store
    let upper = active.delta.store
    let order = lower.key(middle).compare(to: upper.key(top))
    return descending ? order > 0 : order < 0
  }

  private func take(
    _ delta: Delta, _ number: Int, _ includeDeleted: Bool, _ page: inout KeyPage
  ) {
    let store = delta.store
    let slot = store.slot(number)
    let key = store.key(number)
    if includeDeleted || !slot.isDeleted { page.append(key, slot) }
    page.markSeen(key)
  }
}
