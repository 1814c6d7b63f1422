/// Writes the keys of a new run of the index (blocks and hash table) in one pass over the merged
/// layers, and collects on the way what ``MergedLabels`` writes after it.
struct MergedKeys {
  /// In the place of an ordinal: the key is not in the new run. Greater than all ordinals.
  static let dropped = UInt32.max

  private let input: MergeInput
  private let info: RunInfo
  private var hash: HashBuilder
  private(set) var memberships: MembershipBuilder
  /// Sets of labels that some key of the new run has.
  private(set) var usedSets: [UInt32] = []
  private var knownSets = IDMap()
  /// Ordinals in the new run by layer (0 is the frozen memtable, then the merged runs) and by
  /// number in the layer; empty where no former carriers of labels are kept.
  private(set) var newOrdinals: [[UInt32]] = []
  private(set) var count = 0
  /// How many keys are not deleted, but for those of rows that the library derives from others.
  private(set) var liveCount = 0
  private(set) var deletedCount = 0
  /// The labels of the set `idsSet`, which was decoded last.
  private var ids: [UInt32] = []
  private var idsSet: UInt32 = 0
  private(set) var longestProbe = 0

  init(_ input: MergeInput, _ info: RunInfo) throws(IndexError) {
    self.input = input
    self.info = info
    hash = HashBuilder(keys: input.mostKeys)
    var labels = try MergedLabelReader(input)
    var bounds: [(id: UInt32, most: Int)] = []
    while try labels.next() { bounds.append((labels.id, labels.mostCarriers)) }
    memberships = MembershipBuilder(bounds)
    // A run over others must say of which labels its keys are rid: their lists still name them.
    let overrides = !PlantedBug.isOn(.lostLabelForgotten)
    if !memberships.hasNoLabels, input.isWhole ? info.keepFormerMembers : overrides {
      for keys in [input.frozen.count] + input.runs.map(\.count) {
        newOrdinals.append([UInt32](repeating: Self.dropped, count: keys))
      }
    }
  }

  mutating func write(to writer: inout SectionWriter) throws(IndexError) {
    var stream = MergeStream(input)
    var blocks = BlockBuilder()
    try writer.begin()
    while try stream.next() {
      var slot = stream.slot
      slot.labelSet = slot.effectiveLabelSet
      if isForgotten(slot) { continue }
      let key = stream.key
      try blocks.add(key, slot, to: &writer)
      try hash.insert(KeyHash.hash(key, seed: input.seed), UInt32(truncatingIfNeeded: count))
      if slot.labelSet != 0 { try noteLabels(slot.labelSet) }
      if !newOrdinals.isEmpty {
        for place in stream.places {
          newOrdinals[place.layer][place.number] = UInt32(truncatingIfNeeded: count)
        }
      }
      if slot.isDeleted { deletedCount += 1 } else if !DerivedKeys.contains(key) { liveCount += 1 }
      count += 1
    }
    try blocks.finish(count, &writer)
    try hash.write(to: &writer)
    longestProbe = hash.longestProbe
    hash = HashBuilder(keys: 0)
  }

  /// Whether a key leaves the index: a delete that the log has let go, or an eviction that no view
  /// needs. Never over other runs: one may have an older slot, which would count again.
  private func isForgotten(_ slot: Slot) -> Bool {
    if PlantedBug.isOn(.deleteForgottenOverRuns), slot.isDeleted, !input.isWhole { return true }
    if slot.size == .evicted, input.isWhole, slot.sequence <= info.dropEvictionsThrough {
      return true
    }
    return slot.isDeleted && input.isWhole && slot.sequence <= info.dropTombstonesThrough
      && !info.keptDeletes.contains(slot.sequence)
  }

  /// Collects the labels of the key whose ordinal is `count`. Neighbours mostly have the same set.
  private mutating func noteLabels(_ set: UInt32) throws(IndexError) {
    if set != idsSet {
      ids.removeAll(keepingCapacity: true)
      try input.sets.withString(set) { (string) throws(IndexError) in
        try LabelSetCoding.decode(string, into: &ids)
      }
      idsSet = set
      if knownSets[set] == nil {
        knownSets.insert(set, 0)
        usedSets.append(set)
      }
    }
    for id in ids { try memberships.add(UInt32(truncatingIfNeeded: count), to: id) }
  }
}
