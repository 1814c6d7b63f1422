/// From keys to the sequences of their newest entries, in any order and by label.
///
/// Three layers: what was written since the last freeze, the frozen delta that a merge is
/// turning into the next image, the image. The topmost that knows a key decides. No locks: the
/// owner lets one caller in at a time (look-ups alone may run beside each other).
package final class Index {
  /// The newest image; safe to read beside anything that happens here.
  package internal(set) var image: Image?
  /// What stands between the active delta and the image.
  var frozen: Delta?
  /// What was written last.
  var active = Delta()
  var pendingInstall: PendingInstall?
  /// Labels and sets of labels by id.
  package let labelTable: LabelTable
  /// Seeds the hashes of keys; part of the image, so the same as long as the store lives.
  package let seed: UInt64

  private var oldIDs: [UInt32] = []
  private var newIDs: [UInt32] = []

  /// An index over an image, or over nothing.
  /// - Parameter seed: that of the image, if there is one.
  package init(image: Image? = nil, seed: UInt64) {
    self.image = image
    self.seed = seed
    labelTable = LabelTable(image: image, seed: seed)
  }

  /// The hash by which a key is found.
  @inline(__always)
  package func hash(_ key: RawSpan) -> UInt64 { KeyHash.hash(key, seed: seed) }

  /// The newest slot of a key, which may say that it is deleted.
  package func lookup(_ key: RawSpan, hash: UInt64) throws(IndexError) -> Slot? {
    if let slot = lookupDeltas(key, hash: hash) { return slot }
    return try image?.lookup(key, hash: hash)?.slot
  }

  /// Whether a put or delete is the newest entry of its key, and was not touched since.
  package func isNewest(
    _ sequence: UInt64, of key: RawSpan, hash: UInt64
  ) throws(IndexError) -> Bool {
    if let slot = lookupDeltas(key, hash: hash) {
      return slot.sequence == sequence && !slot.size.isTouched
    }
    return try image?.holds(sequence, hash: hash) ?? false
  }

  /// The newest slot of a key if it was written since the image; else ``image`` has it, and
  /// can be asked outside the owner's lock.
  package func lookupDeltas(_ key: RawSpan, hash: UInt64) -> Slot? {
    if let number = active.find(key, hash) { return active.store.slot(number) }
    if let frozen, let number = frozen.find(key, hash) { return frozen.store.slot(number) }
    return nil
  }

  /// Makes `slot` the newest of a key.
  /// - Returns: the slot before, or nil if the key was never written.
  /// - Throws: nothing has changed then.
  @discardableResult
  package func upsert(
    _ key: RawSpan, hash: UInt64, _ slot: Slot
  ) throws(IndexError) -> Slot? {
    guard slot.sequence <= Slot.maxSequence else { throw IndexError.limitExceeded }
    var slot = slot
    slot.labelSet = slot.effectiveLabelSet
    if let number = active.find(key, hash) {
      let old = active.store.slot(number)
      #if TIDEMARK_PLANTED
        if PlantedBug.isOn(.labelsNotUpdated), !old.isDeleted, !slot.isDeleted {
          active.store.replace(number, slot)
          return old
        }
      #endif
      try noteChange(number, isNew: false, from: old, to: slot)
      active.store.replace(number, slot)
      return old
    }
    guard key.byteCount > 0, key.byteCount <= Limits.keyBytes,
      active.count < Int(UInt32.max) - 1
    else { throw IndexError.limitExceeded }
    var old: Slot?
    if let frozen, let number = frozen.find(key, hash) {
      old = frozen.store.slot(number)
      try noteChange(active.count, isNew: true, from: old, to: slot)
      active.overriddenSlots.insert(number)
    } else {
      let found = try image?.lookup(key, hash: hash)
      old = found?.slot
      try noteChange(active.count, isNew: true, from: old, to: slot)
      if let found { active.overriddenOrdinals.insert(found.ordinal) }
    }
    active.insert(key, hash, slot)
    return old
  }

  /// How many keys are not deleted.
  package var liveKeys: Int {
    (image?.header.liveKeys ?? 0) + (frozen?.liveChange ?? 0) + active.liveChange
  }

  /// Bytes of memory in use.
  package var memoryBytes: Int {
    active.memoryBytes + (frozen?.memoryBytes ?? 0) + (image?.memoryBytes ?? 0)
      + labelTable.memoryBytes
  }

  /// Books what a new slot means for counts and candidates; reads everything before it changes
  /// anything.
  private func noteChange(
    _ number: Int, isNew: Bool, from old: Slot?, to new: Slot
  ) throws(IndexError) {
    let oldSet = old?.effectiveLabelSet ?? 0
    let newSet = new.effectiveLabelSet
    if oldSet != newSet || (isNew && newSet != 0) {
      try labelTable.labelIDs(ofSet: oldSet, into: &oldIDs)
      try labelTable.labelIDs(ofSet: newSet, into: &newIDs)
      active.labels.note(number, isNew: isNew, from: oldIDs, to: newIDs)
    }
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
