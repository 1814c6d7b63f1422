/// The label changes of a memtable: which keys got or lost a label, and by
/// how much the number of its carriers changed. Changes, lazy sorting too, are under the lock of
/// the index's owner. A value type: a merge takes a copy.
struct MemtableLabels {
  /// By label: its index in `ids`, `changes` and `candidates`.
  private var byLabel = IDMap()
  /// The same indices by sets of one label, as far as ``remember(_:ofLabel:)`` was told of them.
  private var bySet = IDMap()
  /// The labels that some key of this memtable got, kept or lost, in the order in which they came.
  private(set) var ids: [UInt32] = []
  private var changes: [Int] = []
  /// By label: the slot numbers of keys that carried it at some time since the memtable began, or
  /// in the layers beneath. A walk reads from the slot whether the key carries it now.
  private(set) var candidates: [SortedSlots] = []
  /// New candidates that are not in their lists yet, in the order of writing: the label's index in
  /// the upper half, the slot number in the lower. The lists of many labels lie far from each
  /// other, and a writer would wait for the memory of one with each key.
  private var waiting: [UInt64] = []
  private static let mostWaiting = 32_768

  var memoryBytes: Int {
    let tables = byLabel.memoryBytes + bySet.memoryBytes + ids.count * 64 + waiting.capacity * 8
    return candidates.reduce(tables) { $0 + $1.memoryBytes }
  }

  /// By how much the number of live keys with this label changed.
  func change(of label: UInt32) -> Int { byLabel[label].map { changes[$0] } ?? 0 }

  /// The index of a label in `candidates`.
  func index(of label: UInt32) -> Int? { byLabel[label] }

  /// About how many candidates a label has: repetitions count, those in `waiting` do not.
  func candidateCount(_ label: UInt32) -> Int { byLabel[label].map { candidates[$0].count } ?? 0 }

  /// Records that a key which is new in this memtable carries a set of one label, the same set as
  /// before or, if `isGained`, none before: so no other label loses the key.
  /// - Returns: false for a set that was not remembered; then nothing has changed.
  @inline(__always)
  mutating func recordInsert(_ number: Int, ofSet set: UInt32, isGained: Bool) -> Bool {
    guard let index = bySet[set] else { return false }
    if isGained { changes[index] += 1 }
    waiting.append(UInt64(index) << 32 | UInt64(number))
    if waiting.count == Self.mostWaiting { distributeWaiting() }
    return true
  }

  /// Puts the candidates that wait into their lists; to be called before lists are read.
  mutating func distributeWaiting() {
    guard !waiting.isEmpty else { return }
    for entry in waiting { candidates[Int(entry >> 32)].append(Int(entry & 0xffff_ffff)) }
    waiting.removeAll(keepingCapacity: true)
  }

  /// Remembers the label of a set of one: ``recordInsert(_:ofSet:isGained:)`` then takes the set.
  mutating func remember(_ set: UInt32, ofLabel label: UInt32) {
    guard bySet[set] == nil else { return }
    bySet.insert(set, addedIndex(of: label))
  }

  /// Records that a key went over from one set of labels to another.
  /// - Parameters:
  ///   - number: the number of its slot.
  ///   - isNew: whether the slot is new in this memtable.
  mutating func recordChange(_ number: Int, isNew: Bool, from old: [UInt32], to new: [UInt32]) {
    for label in new {
      let gained = !old.contains(label)
      guard gained || isNew else { continue }
      let index = addedIndex(of: label)
      if gained { changes[index] += 1 }
      candidates[index].appendMaybeAgain(number)
    }
    for label in old where !new.contains(label) {
      let index = addedIndex(of: label)
      changes[index] -= 1
      // A layer beneath lists the key as a carrier, so a walk must meet its newer slot here, too. A
      // slot that is not new is listed since it came into this memtable or got the label.
      if isNew { candidates[index].appendMaybeAgain(number) }
    }
  }

  mutating func sortCandidates(_ index: Int, _ store: SlotStore) {
    distributeWaiting()
    if !candidates[index].isSorted { candidates[index].sortTail(store) }
  }

  /// The index of a label, which is added if it is not here yet.
  @inline(__always)
  private mutating func addedIndex(of label: UInt32) -> Int {
    if let index = byLabel[label] { return index }
    let index = ids.count
    byLabel.insert(label, index)
    ids.append(label)
    changes.append(0)
    candidates.append(SortedSlots())
    return index
  }
}
