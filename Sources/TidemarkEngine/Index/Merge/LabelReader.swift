/// Reads the labels of a sorted run and their posting lists, by ascending id, for a merge.
struct LabelReader {
  private let run: SortedRun
  private var window: RunWindow
  private var postings: RunWindow
  private var number = 0
  /// Bytes of all lists so far. Lists do not overlap, so together they fit into their section; else
  /// a small damaged sorted run could ask for any amount of memory and time.
  private var total = 0
  /// The present label; nil at the end.
  private(set) var label: RunLabel?

  init(_ run: SortedRun) throws(IndexError) {
    self.run = run
    window = RunWindow(run)
    postings = RunWindow(run)
    try load()
  }

  mutating func advance() throws(IndexError) {
    number += 1
    try load()
  }

  /// Calls `body` with the ordinals of the keys that carry the present label, or have lost it.
  mutating func forEach(_ body: (UInt32) -> Void) throws(IndexError) {
    guard let label else { return }
    for list in [label.current, label.former] {
      try postings.load(.postings, list.offset, list.bytes)
      try list.forEach(in: postings.bytes(.postings, list.offset, list.bytes), body)
    }
  }

  private mutating func load() throws(IndexError) {
    let before = label?.id
    label = nil
    guard number < run.labelCount else { return }
    let place = number * RunLayout.labelBytes
    try window.load(.labels, place, RunLayout.labelBytes)
    let entry = try RunLabel(
      run, entry: window.bytes(.labels, place, RunLayout.labelBytes), at: place)
    total += entry.current.bytes + entry.former.bytes
    guard before.map({ $0 < entry.id }) ?? true, total <= run.header[.postings].bytes else {
      throw run.damage(.labels, place)
    }
    label = entry
  }
}

/// The labels of a merge's layers (the frozen memtable and the merged runs), by ascending id.
struct MergedLabelReader {
  private let frozen: MemtableLabels
  private let frozenIDs: [UInt32]
  private var position = 0
  private var runs: [LabelReader] = []
  private let beneath: RunList
  /// The present label; before the first call of ``next()`` an id that no label has.
  private(set) var id = UInt32.max

  init(_ input: MergeInput) throws(IndexError) {
    frozen = input.frozenLabels
    frozenIDs = frozen.ids.sorted()
    beneath = input.beneath
    for run in input.runs { runs.append(try LabelReader(run)) }
  }

  /// Goes to the next label that any layer has.
  /// - Returns: false at the end.
  mutating func next() throws(IndexError) -> Bool {
    if position < frozenIDs.count, frozenIDs[position] == id { position += 1 }
    for run in runs.indices where runs[run].label?.id == id { try runs[run].advance() }
    var least: UInt32?
    if position < frozenIDs.count { least = frozenIDs[position] }
    for run in runs {
      guard let found = run.label?.id else { continue }
      least = min(least ?? found, found)
    }
    guard let least else { return false }
    id = least
    return true
  }

  /// How many live keys carry the present label, in the new run and all beneath. The newest run
  /// that has the label counts its carriers beneath, too; the frozen memtable has the change since.
  func count() throws(IndexError) -> Int {
    let change = frozen.change(of: id)
    for run in runs { if let label = run.label, label.id == id { return label.count + change } }
    return try beneath.count(ofLabel: id) + change
  }

  /// How many keys of the new run carry the present label, at most.
  var mostCarriers: Int {
    runs.reduce(frozen.candidateCount(id)) { sum, run in
      run.label.map { $0.id == id ? sum + $0.current.count : sum } ?? sum
    }
  }

  /// Calls `body` with every key, by layer and number in it, that a layer lists for the present
  /// label: those that carry it there and those that have lost it. Some come more than once.
  mutating func forEachPlace(_ body: (MergeStream.Place) -> Void) throws(IndexError) {
    if let index = frozen.index(of: id) {
      frozen.candidates[index].forEach { body((layer: 0, number: $0)) }
    }
    for run in runs.indices where runs[run].label?.id == id {
      try runs[run].forEach { body((layer: run + 1, number: Int($0))) }
    }
  }
}
