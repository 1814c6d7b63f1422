/// What a delta changes about labels: who got one, and how the counts moved.
struct DeltaLabels {
  private var byLabel = IDMap()
  /// The labels that this delta touched, in order of first touch.
  private(set) var ids: [UInt32] = []
  private var changes: [Int] = []
  /// Per label the slots that carried it at some time since the delta began. Which of them
  /// still do is read from their slots.
  private(set) var candidates: [SortedSlots] = []

  /// Bytes in use.
  var memoryBytes: Int {
    candidates.reduce(byLabel.memoryBytes + ids.count * 64) { $0 + $1.memoryBytes }
  }

  /// By how much the number of live keys with this label changed.
  func change(of label: UInt32) -> Int {
    byLabel[label].map { changes[$0] } ?? 0
  }

  /// The place of a label in `candidates`.
  func index(of label: UInt32) -> Int? { byLabel[label] }

  /// How many candidates a label has, about.
  func candidateCount(_ label: UInt32) -> Int {
    byLabel[label].map { candidates[$0].count } ?? 0
  }

  /// Notes that a live key began or ceased to carry a label.
  mutating func count(_ label: UInt32, by change: Int) {
    changes[touch(label)] += change
  }

  /// Notes that the key of a slot carries a label now.
  mutating func addCandidate(_ number: Int, for label: UInt32) {
    candidates[touch(label)].appendMaybeAgain(number)
  }

  /// Sorts a label's candidates by key.
  mutating func settle(_ index: Int, _ store: SlotStore) {
    if !candidates[index].isSettled { candidates[index].settle(store) }
  }

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
