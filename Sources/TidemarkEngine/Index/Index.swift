/// Maps a key to its slot: sequence, label set and size of its newest entry. Lists keys by label.
///
/// Layers, newest first, as in an LSM tree: the active memtable, the frozen memtable
/// of which a merge makes the next run, and the sorted runs on the disk (class `SortedRun`). The
/// newest layer that has a key decides. For each label a layer lists the keys that carry it in this
/// layer, and those that carried it in the layers beneath: a walk over the lists of a label so
/// meets every slot that overrides one which it meets further down.
///
/// No locks: the owner lets one caller in at a time, since walks sort the memtables lazily.
/// Look-ups alone may run beside each other.
package final class Index {
  /// The runs: immutable, so that a copy of the list may be read without the owner's lock.
  package internal(set) var runs: RunList
  /// The memtable beneath the active one, while a run is made of it; nil otherwise.
  var frozen: Memtable?
  /// The memtable that takes every write.
  var active = Memtable()
  /// Labels and sets of labels by id.
  package let labelTable: LabelTable
  /// Seeds the hashes of keys. Runs hold such hashes, so the seed is the store's for good.
  package let seed: UInt64

  private var oldIDs: [UInt32] = []
  private var newIDs: [UInt32] = []

  /// An index over runs, or over nothing.
  /// - Parameter seed: the store's, with which the runs were made.
  package init(runs: RunList = RunList(), seed: UInt64) {
    self.runs = runs
    self.seed = seed
    labelTable = LabelTable(runs: runs.runs, seed: seed)
  }

  /// The hash by which a key is found.
  @inline(__always)
  package func hash(_ key: RawSpan) -> UInt64 { KeyHash.hash(key, seed: seed) }

  /// The newest slot of a key, which may say that the key is deleted; nil if no layer has the key.
  /// - Parameter maySearch: whether the caller is a get, see `SortedRun.lookup`.
  package func lookup(
    _ key: RawSpan, hash: UInt64, maySearch: Bool = false
  ) throws(IndexError) -> Slot? {
    if let slot = lookupDeltas(key, hash: hash) { return slot }
    return try runs.lookup(key, hash: hash, maySearch: maySearch)
  }

  /// Asks the processor for the memory that look-ups of some keys need, so that all wait at once.
  /// - Parameter runs: whether keys will be looked up in the runs, too, by their hashes.
  package func prefetch(_ hashes: [UInt64], runs isByHash: Bool = true) {
    active.prefetch(hashes)
    frozen?.prefetch(hashes)
    if isByHash { runs.prefetch(hashes, keys: true) }
  }

  /// Whether a put or delete is its key's newest entry. A touch, which renews a put, would be
  /// newer.
  package func isNewest(
    _ sequence: UInt64, of key: RawSpan, hash: UInt64
  ) throws(IndexError) -> Bool {
    if let slot = lookupDeltas(key, hash: hash) {
      return slot.sequence == sequence && !slot.size.isTouched
    }
    return try runs.isNewest(sequence, of: key, hash: hash)
  }

  /// The newest slot of a key if a memtable has it; nil tells nothing of the runs.
  func lookupDeltas(_ key: RawSpan, hash: UInt64) -> Slot? {
    active.slot(of: key, hash) ?? frozen?.slot(of: key, hash)
  }

  /// Makes `slot` the newest of a key. Sequences are not compared: a key's slots come in order.
  /// - Parameter ifPresent: whether nothing changes when the key is absent or deleted.
  /// - Returns: the slot before, or nil if no layer has the key.
  /// - Throws: then no key and no count has changed.
  @discardableResult
  package func upsert(
    _ key: RawSpan, hash: UInt64, _ slot: Slot, ifPresent: Bool = false
  ) throws(IndexError) -> Slot? {
    guard slot.sequence <= Slot.maxSequence else { throw IndexError.limitExceeded }
    var slot = slot
    slot.labelSet = slot.effectiveLabelSet
    // One retain here instead of one at every step below.
    let active = active
    if let number = active.find(key, hash) {
      let old = active.store.slot(number)
      if ifPresent, old.isDeleted { return old }
      if !PlantedBug.isOn(.labelsNotUpdated) || old.isDeleted || slot.isDeleted {
        try recordChange(number, key, in: active, isNew: false, from: old, to: slot)
      }
      active.store.replace(number, slot)
      return old
    }
    guard key.byteCount > 0, key.byteCount <= Limits.keyBytes, active.count < Int(UInt32.max) - 1
    else { throw IndexError.limitExceeded }
    var old = frozen?.slot(of: key, hash)
    if old == nil { old = try runs.lookup(key, hash: hash) }
    if ifPresent, old?.isDeleted ?? true { return old }
    // First what may throw. `active.count` is the slot number that the insert gives.
    try recordChange(active.count, key, in: active, isNew: true, from: old, to: slot)
    active.insert(key, hash, slot)
    return old
  }

  /// How many keys are not deleted; derived keys (rows of collections' indexes) do not count.
  package var liveKeys: Int { runs.liveKeys + (frozen?.liveChange ?? 0) + active.liveChange }

  package var memoryBytes: Int {
    active.memoryBytes + (frozen?.memoryBytes ?? 0) + runs.memoryBytes + labelTable.memoryBytes
  }

  /// Updates label lists and counts of the active memtable; what may throw comes before any change.
  private func recordChange(
    _ number: Int, _ key: RawSpan, in active: Memtable, isNew: Bool, from old: Slot?, to new: Slot
  ) throws(IndexError) {
    let oldSet = old?.effectiveLabelSet ?? 0
    let newSet = new.effectiveLabelSet
    if newSet != 0, isNew, oldSet == 0 || oldSet == newSet,
      active.labels.recordInsert(number, ofSet: newSet, isGained: oldSet == 0)
    {
      // Done: a set of one label which another key of this memtable had before.
    } else if oldSet != newSet || (isNew && newSet != 0) {
      try labelTable.labelIDs(ofSet: oldSet, into: &oldIDs)
      try labelTable.labelIDs(ofSet: newSet, into: &newIDs)
      // The run made of this memtable gets the strings of ids that the memtable names, and no
      // others.
      try labelTable.activate(oldSet, labels: oldIDs)
      try labelTable.activate(newSet, labels: newIDs)
      active.labels.recordChange(number, isNew: isNew, from: oldIDs, to: newIDs)
      if newIDs.count == 1 { active.labels.remember(newSet, ofLabel: newIDs[0]) }
    }
    if DerivedKeys.contains(key) { return }
    let wasLive = old.map { !$0.isDeleted } ?? false
    active.liveChange += (new.isDeleted ? 0 : 1) - (wasLive ? 1 : 0)
  }

  /// Whether each memtable agrees within itself; for tests.
  package func _checkInvariants() -> Bool {
    active.sortOrder()
    frozen?.sortOrder()
    return active._checkInvariants(seed: seed) && frozen?._checkInvariants(seed: seed) ?? true
  }
}
