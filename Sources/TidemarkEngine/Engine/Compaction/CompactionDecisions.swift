/// Decides which entries stay when a log is compacted, asked group by group (segments rewritten
/// together), the oldest first. A compaction owns it, and goes back to a copy where a group fails.
///
/// `floor` says which versions the retention, open views and projections need, `pinned` which ones
/// peers need besides. A *touch* renews the validity of an older put and has no value itself.
struct CompactionDecisions {
  enum Fate {
    /// With the time to write into the entry as that of its key's creation; 0 for none.
    case kept(created: UInt64, isSuperseded: Bool)
    case dropped
    case droppedTombstone
  }

  private let reader: Reader
  private var floor: CompactionFloor
  private let pinned: PinnedVersions?
  private let isRecordSuperseded: (@Sendable (RecordName, UInt64) -> Bool)?
  private var versions: RetainedVersions
  private(set) var cached: CachedVersions
  private var creations = CreationTimes()
  /// The key that was asked about last, and its slot in the index, which names the newest entry;
  /// nil where the index has forgotten the key.
  private var key: [UInt8]?
  private var slot: Slot?
  /// Whether the newest entry of that key is a touch, so that an older one has the value.
  var isTouched: Bool { slot?.size.isTouched ?? false }
  /// Whether all cached versions of that key but the newest go, as soon as nothing needs them.
  /// Where the user may have written the key before (`hidesOwned`), one may stay in each group, to
  /// link newer versions to the user's.
  var olderVersionsGo: Bool {
    slot.map { $0.size.isCached && !$0.size.hidesOwned && !$0.size.isTouched } ?? false
  }
  /// Whether versions may have been lost in damage: then each key's versions are walked in the log.
  private let hasDamage: Bool

  init(
    _ reader: Reader, _ floor: CompactionFloor, _ pinned: PinnedVersions?,
    isRecordSuperseded: (@Sendable (RecordName, UInt64) -> Bool)?
  ) {
    (self.reader, self.floor, self.pinned) = (reader, floor, pinned)
    self.isRecordSuperseded = isRecordSuperseded
    versions = RetainedVersions(reader, floor)
    cached = CachedVersions(reader, needed: 0, range: 0...0)
    hasDamage = !reader.manifest.damage.isEmpty
  }

  /// Begins a group, whose segments have the sequences of `range`.
  mutating func begin(_ range: ClosedRange<UInt64>) {
    cached = CachedVersions(reader, needed: floor.cached, range: range)
  }

  /// Keeps all deletes from here on: a group that stays as it is may have versions that they hide.
  mutating func keepDeletes() { floor.deletes = 0 }

  /// Decides whether an entry stays. A key's versions come oldest first, best without other keys'.
  /// - Parameter recordType: gives the type of a record of the engine's.
  mutating func fate(
    of head: EntryHead, key: RawSpan, isCached: Bool,
    recordType: () throws(TidemarkError) -> RecordType
  ) throws(TidemarkError) -> Fate {
    guard head.kind != .record else {
      return try isSuperseded(head, key, recordType)
        ? .dropped : .kept(created: 0, isSuperseded: false)
    }
    if self.key?.rawSpan.isEqual(to: key) != true { try enterKey(key) }
    let fate: Fate =
      try cached.drops(head, slot, isCached: isCached) ? .dropped : fate(of: head, key: key)
    // No version follows the newest one; of a key that the index has forgotten no time is needed.
    if let slot, slot.sequence != head.sequence {
      creations.note(head)
    } else {
      creations.endKey()
    }
    return fate
  }

  private mutating func enterKey(_ key: RawSpan) throws(TidemarkError) {
    creations.leaveKey()
    cached.enterKey()
    // Nil while the look-up may throw: key and slot belong together.
    self.key = nil
    slot = try reader.slot(ofKey: key)
    self.key = [UInt8](copying: key)
  }

  private mutating func fate(of head: EntryHead, key: RawSpan) throws(TidemarkError) -> Fate {
    let removes = head.kind.removes
    if PlantedBug.isOn(.tombstoneDroppedEarly), removes { return .dropped }
    guard let losesOlder = try losesOlder(head, key: key) else {
      return removes ? .droppedTombstone : .dropped
    }
    // Where the version before it is dropped, an entry must tell itself when the key was created.
    let tellsCreation = losesOlder || cached.link(of: head.previous) != nil
    return .kept(
      created: tellsCreation ? try created(head) : head.created,
      isSuperseded: slot?.sequence != head.sequence || removes)
  }

  /// Whether older versions of its key may go while an entry stays; nil where the entry goes.
  ///
  /// By ``CompactionFloor`` all above its `limit` stays. Between `sequence` and `limit` so many
  /// versions stay as the retention counts; up to `sequence` one at most, and no delete unless it
  /// is above `deletes`.
  private mutating func losesOlder(_ head: EntryHead, key: RawSpan) throws(TidemarkError) -> Bool? {
    guard floor.drops, head.sequence <= floor.limit else { return false }
    if head.kind.removes, head.sequence > floor.deletes { return false }
    // The index has forgotten a key whose delete may go: up to `sequence` all its entries do.
    let isFloored = head.sequence <= floor.sequence
    guard let newest = slot?.sequence, newest > 0 else { return isFloored ? nil : false }
    // Kept for a peer. Older versions may go up to the next one that stays, which it then names.
    if let pinned, pinned.kept[head.sequence] != nil { return true }
    let isOldDelete = head.kind.removes && isFloored
    // Only the newest version of such a key stays, so its versions need not be walked; but for a
    // touch, which needs its put, too, and where damage may have taken versions.
    let keepsNewestAlone =
      newest <= floor.sequence || floor.versionsPerKey == 1 && newest <= floor.needed
    if keepsNewestAlone, slot?.size.isTouched == false, !hasDamage {
      return newest == head.sequence && !isOldDelete ? true : nil
    }
    // The versions at or below `limit` that stay.
    let chain = try versions.of(key, newest: newest)
    guard chain.keeps(head.sequence), !isOldDelete else { return nil }
    // The put of a touch may lose older versions, too, though it is not the oldest that stays.
    return head.sequence == chain.oldest
      || (head.previous > 0 && head.previous <= floor.limit && !chain.keeps(head.previous))
  }

  /// Whether a record of the engine's is outdated. One with an empty value removes its name, and
  /// stays if record tables know its type (`isListed`): without it they would find an older record
  /// in a segment that is not rewritten.
  private func isSuperseded(
    _ head: EntryHead, _ key: RawSpan, _ recordType: () throws(TidemarkError) -> RecordType
  ) throws(TidemarkError) -> Bool {
    guard let isRecordSuperseded else { return false }
    let type = try recordType()
    guard head.valueLength > 0 || !type.isListed else { return false }
    return isRecordSuperseded(RecordName(type, key: [UInt8](copying: key)), head.sequence)
  }

  /// Commit time of the oldest version since the key was last absent, for an entry that stays while
  /// older versions go; 0 where it is the oldest itself.
  private func created(_ head: EntryHead) throws(TidemarkError) -> UInt64 {
    if head.created != 0 || head.kind.removes { return head.created }
    if head.previous == 0 { return 0 }
    if let known = creations.time(through: head.previous) { return known }
    var oldest: UInt64 = 0
    var candidate = head.previous
    while candidate > 0, let entry = try reader.entryIfKept(at: candidate), !entry.head.kind.removes
    {
      oldest = entry.head.created != 0 ? entry.head.created : entry.head.commitTime
      if entry.head.created != 0 { break }
      candidate = entry.head.previous
    }
    return oldest
  }
}

/// Remembers when keys were created whose older versions are being dropped: the version that stays
/// has to tell. To walk the log for it is slow, and fails where an earlier group of the compaction
/// has dropped those versions.
struct CreationTimes {
  /// Most keys that are remembered; for others the log is walked.
  private static let most = 1 << 20

  /// The last version of the present key, and the commit time of the key's oldest version since it
  /// was last absent; 0 for a delete.
  private var last: (sequence: UInt64, time: UInt64)?
  /// The same for other keys of which newer versions have yet to come, by sequence.
  private var times: [UInt64: UInt64] = [:]

  /// Takes a version into account. Those of a key come in order of sequence; one may come again.
  mutating func note(_ head: EntryHead) {
    let before = time(through: head.previous)
    if !times.isEmpty { times[head.previous] = nil }
    last = nil
    if head.kind.removes {
      last = (head.sequence, 0)
    } else if head.created != 0 {
      last = (head.sequence, head.created)
    } else if head.previous == 0 || before == 0 {
      last = (head.sequence, head.commitTime)
    } else if let before {
      last = (head.sequence, before)
    }
  }

  /// Forgets the present key: no version of it is left.
  mutating func endKey() { last = nil }

  /// Another key comes; remembers the present one, if newer versions of it have yet to come.
  mutating func leaveKey() {
    if let last, times.count < Self.most { times[last.sequence] = last.time }
    last = nil
  }

  /// The creation time as of a version; nil where that did not come or was forgotten.
  func time(through sequence: UInt64) -> UInt64? {
    if let last, last.sequence == sequence { return last.time }
    return times.isEmpty ? nil : times[sequence]
  }
}
