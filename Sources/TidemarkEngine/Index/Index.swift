/// From keys to the sequences of their newest entries, in any order and by label.
///
/// Layers: what was written since the last freeze, the frozen delta of which a new run is made,
/// the runs. The topmost that knows a key decides. For each label a layer lists all its keys that
/// carry it, and all that replace a carrier; so walks over some labels' lists meet whatever
/// overrides what they meet beneath. No locks: the owner lets one caller in at a time (look-ups
/// alone may run beside each other).
package final class Index {
  /// The runs; safe to read beside anything that happens here.
  package internal(set) var runs: RunList
  /// The delta between the active one and the runs.
  var frozen: Delta?
  /// The newest writes.
  var active = Delta()
  /// Labels and sets of labels by id.
  package let labelTable: LabelTable
  /// Seeds the hashes of keys; part of the runs, so the same as long as the store lives.
  package let seed: UInt64

  private var oldIDs: [UInt32] = []
  private var newIDs: [UInt32] = []

  /// An index over runs, or over nothing.
  /// - Parameter seed: that of the runs, if there are some.
  package init(runs: RunList = RunList(), seed: UInt64) {
    self.runs = runs
    self.seed = seed
    labelTable = LabelTable(runs: runs.runs, seed: seed)
  }

  /// The hash by which a key is found.
  @inline(__always)
  package func hash(_ key: RawSpan) -> UInt64 { KeyHash.hash(key, seed: seed) }

  /// The newest slot of a key, which may say that it is deleted.
  package func lookup(_ key: RawSpan, hash: UInt64) throws(IndexError) -> Slot? {
    if let slot = lookupDeltas(key, hash: hash) { return slot }
    return try runs.lookup(key, hash: hash)
  }

  /// Asks the processor for what look-ups of some keys will touch, so that they wait for the memory
  /// of all at once.
  /// - Parameter runs: whether keys will be looked up in the runs by their hashes.
  package func prefetch(_ hashes: [UInt64], runs isByHash: Bool = true) {
    active.prefetch(hashes)
    frozen?.prefetch(hashes)
    if isByHash { runs.prefetch(hashes, keys: true) }
  }

  /// Whether a put or delete is the newest entry of its key, and was not touched since.
  package func isNewest(
    _ sequence: UInt64, of key: RawSpan, hash: UInt64
  ) throws(IndexError) -> Bool {
    if let slot = lookupDeltas(key, hash: hash) {
      return slot.sequence == sequence && !slot.size.isTouched
    }
    return try runs.isNewest(sequence, of: key, hash: hash)
  }

  /// The newest slot of a key, if it is not in a run yet.
  func lookupDeltas(_ key: RawSpan, hash: UInt64) -> Slot? {
    if let number = active.find(key, hash) { return active.store.slot(number) }
    if let frozen, let number = frozen.find(key, hash) { return frozen.store.slot(number) }
    return nil
  }

  /// Makes `slot` the newest of a key.
  /// - Parameter ifPresent: whether nothing changes when the key is not there, or deleted.
  /// - Returns: the slot before, or nil if the key was never written.
  /// - Throws: nothing has changed then.
  @discardableResult
  package func upsert(
    _ key: RawSpan, hash: UInt64, _ slot: Slot, ifPresent: Bool = false
  ) throws(IndexError) -> Slot? {
    guard slot.sequence <= Slot.maxSequence else { throw IndexError.limitExceeded }
    var slot = slot
    slot.labelSet = slot.effectiveLabelSet
    // Held here, so that not every step below holds and lets go of it.
    let active = active
    if let number = active.find(key, hash) {
      let old = active.store.slot(number)
      if ifPresent, old.isDeleted { return old }
      if PlantedBug.isOn(.labelsNotUpdated), !old.isDeleted, !slot.isDeleted {
        active.store.replace(number, slot)
        return old
      }
      try noteChange(number, key, in: active, isNew: false, from: old, to: slot)
      active.store.replace(number, slot)
      return old
    }
    guard key.byteCount > 0, key.byteCount <= Limits.keyBytes,
      active.count < Int(UInt32.max) - 1
    else { throw IndexError.limitExceeded }
    var old: Slot?
    if let frozen, let number = frozen.find(key, hash) {
      old = frozen.store.slot(number)
    } else if runs.newest != nil {
      old = try runs.lookup(key, hash: hash)
    }
    if ifPresent, old?.isDeleted ?? true { return old }
    try noteChange(active.count, key, in: active, isNew: true, from: old, to: slot)
    active.insert(key, hash, slot)
    return old
  }

  /// How many keys are not deleted, but for derived ones.
  package var liveKeys: Int {
    runs.liveKeys + (frozen?.liveChange ?? 0) + active.liveChange
  }

  package var memoryBytes: Int {
    active.memoryBytes + (frozen?.memoryBytes ?? 0) + runs.memoryBytes + labelTable.memoryBytes
  }

  /// Books what a new slot means for counts and candidates; reads everything before it changes
  /// anything.
  private func noteChange(
    _ number: Int, _ key: RawSpan, in active: Delta, isNew: Bool, from old: Slot?, to new: Slot
  ) throws(IndexError) {
    let oldSet = old?.effectiveLabelSet ?? 0
    let newSet = new.effectiveLabelSet
    if newSet != 0, isNew, oldSet == 0 || oldSet == newSet,
      active.labels.note(number, to: newSet, isGained: oldSet == 0)
    {
      // The set was noted by another key of this delta, as most are.
    } else if oldSet != newSet || (isNew && newSet != 0) {
      try labelTable.labelIDs(ofSet: oldSet, into: &oldIDs)
      try labelTable.labelIDs(ofSet: newSet, into: &newIDs)
      // The run that is made of this delta knows the labels that it names, and nothing else.
      try labelTable.activate(oldSet, labels: oldIDs)
      try labelTable.activate(newSet, labels: newIDs)
      active.labels.note(number, isNew: isNew, from: oldIDs, to: newIDs)
      if newIDs.count == 1 { active.labels.remember(newSet, ofLabel: newIDs[0]) }
    }
    if DerivedKeys.contains(key) { return }
    let wasLive = old.map { !$0.isDeleted } ?? false
    active.liveChange += (new.isDeleted ? 0 : 1) - (wasLive ? 1 : 0)
  }

  /// Whether the layers agree within and with each other; for tests.
  package func _checkInvariants() -> Bool {
    active.settleOrder()
    frozen?.settleOrder()
    return active._checkInvariants(seed: seed) && frozen?._checkInvariants(seed: seed) ?? true
  }
}
