/// Walks slots of a delta by key: all of them, or the union of some labels' candidates.
struct DeltaCursor {
  private struct List {
    var slots: SortedSlots
    var position: SortedSlots.Position
    var end: SortedSlots.Position
    /// The slot number at `position`; nil at the end.
    var head: Int?
  }

  let delta: Delta
  private let descending: Bool
  private var lists: [List] = []
  /// The number of the slot that the cursor stands at; nil at the end.
  private(set) var number: Int?

  /// A cursor over all keys of a range.
  init(all delta: Delta, _ range: KeyRange) {
    delta.settleOrder()
    self.init(delta, [delta.order], range)
  }

  /// A cursor over the keys of a range that carried one of some labels since the delta began.
  init(_ delta: Delta, labels: [UInt32], _ range: KeyRange) {
    var lists: [SortedSlots] = []
    for label in labels {
      guard let index = delta.labels.index(of: label) else { continue }
      delta.labels.settle(index, delta.store)
      lists.append(delta.labels.candidates[index])
    }
    self.init(delta, lists, range)
  }

  private init(_ delta: Delta, _ lists: [SortedSlots], _ range: KeyRange) {
    self.delta = delta
    descending = range.descending
    for slots in lists {
      let first = slots.firstPosition(after: range.lower, delta.store)
      let last = slots.firstPosition(after: range.upper, delta.store)
      // An upper bound below the lower one makes an empty range.
      guard (first.chunk, first.index) < (last.chunk, last.index) else { continue }
      let position = descending ? slots.previous(last) : first
      self.lists.append(
        List(
          slots: slots, position: position,
          end: descending ? slots.previous(first) : last,
          head: slots.number(at: position)))
    }
    choose()
  }

  /// Goes to the next key.
  mutating func advance() {
    guard let number else { return }
    for i in lists.indices where lists[i].head == number {
      let slots = lists[i].slots
      lists[i].position =
        descending ? slots.previous(lists[i].position) : slots.next(lists[i].position)
      lists[i].head =
        lists[i].position == lists[i].end ? nil : slots.number(at: lists[i].position)
    }
    choose()
  }

  private mutating func choose() {
    if lists.count == 1 {
      number = lists[0].head
      return
    }
    number = nil
    let store = delta.store
    for list in lists {
      guard let head = list.head, head != number else { continue }
      guard let best = number else {
        number = head
        continue
      }
      let order = store.key(head).compare(to: store.key(best))
      if descending ? order > 0 : order < 0 { number = head }
    }
  }
}
