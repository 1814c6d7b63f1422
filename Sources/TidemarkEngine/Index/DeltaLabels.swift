/// The label changes of a delta: who got or lost one, and how the counts moved.
struct DeltaLabels {
  private var byLabel = IDMap()
  /// The same places, by sets of one label that the delta names.
  private var bySet = IDMap()
  /// The labels that this delta touched, in order of first touch.
  private(set) var ids: [UInt32] = []
  private var changes: [Int] = []
  /// Per label the slots that carried it at some time since the delta began, or whose keys carried
  /// it before. Which of them still do is read from their slots.
  private(set) var candidates: [SortedSlots] = []
  /// New candidates that are not in their lists yet, in the order of writing: the list's place in
  /// the upper half, the slot in the lower. The lists of many labels lie far from each other, and
  /// a writer would wait for the memory of one with each key.
  private var waiting: [UInt64] = []
  private static let mostWaiting = 32_768

  var memoryBytes: Int {
    let tables =
      byLabel.memoryBytes + bySet.memoryBytes + ids.count * 64 + waiting.capacity * 8
    return candidates.reduce(tables) { $0 + $1.memoryBytes }
  }

  /// By how much the number of live keys with this label changed.
  func change(of label: UInt32) -> Int {
    byLabel[label].map { changes[$0] } ?? 0
  }

  /// The place of a label in `candidates`.
  func index(of label: UInt32) -> Int? { byLabel[label] }

  /// How many candidates a label has, about; those that wait do not count.
  func candidateCount(_ label: UInt32) -> Int {
    byLabel[label].map { candidates[$0].count } ?? 0
  }

  /// Notes that a key which is new in this delta carries a set of one label, and carried it or none
  /// before.
  /// - Returns: false for a set that was not remembered; then nothing is noted.
  @inline(__always)
  mutating func note(_ number: Int, to set: UInt32, isGained: Bool) -> Bool {
    guard let index = bySet[set] else { return false }
    if isGained { changes[index] += 1 }
    waiting.append(UInt64(index) << 32 | UInt64(number))
    if waiting.count == Self.mostWaiting { handOut() }
    return true
  }

  /// Puts what waits into its lists.
  mutating func handOut() {
    guard !waiting.isEmpty else { return }
    for entry in waiting { candidates[Int(entry >> 32)].append(Int(entry & 0xffff_ffff)) }
    waiting.removeAll(keepingCapacity: true)
  }

  /// Remembers a set of one label that was noted.
  mutating func remember(_ set: UInt32, ofLabel label: UInt32) {
    guard bySet[set] == nil else { return }
    bySet.insert(set, touch(label))
  }

  /// Notes that a key went over from one set of labels to another.
  /// - Parameters:
  ///   - number: the number of its slot.
  ///   - isNew: whether the slot is new in this delta.
  mutating func note(_ number: Int, isNew: Bool, from old: [UInt32], to new: [UInt32]) {
    for label in new {
      let gained = !old.contains(label)
      guard gained || isNew else { continue }
      let index = touch(label)
      if gained { changes[index] += 1 }
      candidates[index].appendMaybeAgain(number)
    }
    for label in old where !new.contains(label) {
      let index = touch(label)
      changes[index] -= 1
      // Layers beneath name it as a carrier; this one has the last word.
      if isNew { candidates[index].appendMaybeAgain(number) }
    }
  }

  /// Sorts a label's candidates by key.
  mutating func settle(_ index: Int, _ store: SlotStore) {
    handOut()
    if !candidates[index].isSettled { candidates[index].settle(store) }
  }

  @inline(__always)
  private mutating func touch(_ label: UInt32) -> Int {
    if let index = byLabel[label] { return index }
    let index = ids.count
    byLabel.insert(label, index)
    ids.append(label)
    changes.append(0)
    candidates.append(SortedSlots())
    return index
  }
}
