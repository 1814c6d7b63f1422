/// Walks slots of a memtable in key order: all of them, or the union of
/// some labels' candidates. Making a cursor sorts what the memtable has not sorted yet, so the
/// caller holds the lock of the index's owner, and gives up the cursor with it: later puts are not
/// met.
struct MemtableCursor {
  let memtable: Memtable
  private let descending: Bool
  private var lists: [SortedSlots.Cursor] = []
  /// The number of the slot that the cursor stands at; nil at the end.
  private(set) var number: Int?

  /// A cursor over all keys of a range.
  init(all memtable: Memtable, _ range: KeyRange) {
    memtable.sortOrder()
    self.init(memtable, [SortedSlots.Cursor(memtable.order, memtable.store, range)], range)
  }

  /// A cursor over the keys of a range that carry one of some labels, or have lost it here.
  init(_ memtable: Memtable, labels: [UInt32], _ range: KeyRange) {
    var lists: [SortedSlots.Cursor] = []
    for label in labels {
      guard let index = memtable.labels.index(of: label) else { continue }
      memtable.labels.sortCandidates(index, memtable.store)
      lists.append(SortedSlots.Cursor(memtable.labels.candidates[index], memtable.store, range))
    }
    self.init(memtable, lists, range)
  }

  private init(_ memtable: Memtable, _ lists: [SortedSlots.Cursor], _ range: KeyRange) {
    self.memtable = memtable
    descending = range.descending
    self.lists = lists.filter { $0.head != nil }
    chooseNumber()
  }

  @inline(__always)
  mutating func advance() {
    guard let number else { return }
    if lists.count == 1 {
      lists[0].advance()
      self.number = lists[0].head
      return
    }
    for i in lists.indices where lists[i].head == number { lists[i].advance() }
    chooseNumber()
  }

  /// Goes to the first key, in walk order, that any list stands at. Lists may share keys.
  private mutating func chooseNumber() {
    number = nil
    let store = memtable.store
    for list in lists {
      guard let head = list.head, head != number else { continue }
      if let best = number {
        let order = store.key(head).compare(to: store.key(best))
        if descending ? order <= 0 : order >= 0 { continue }
      }
      number = head
    }
  }
}
