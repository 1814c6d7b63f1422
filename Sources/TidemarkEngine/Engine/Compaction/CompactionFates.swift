/// Decides which entries of a log stay when it is compacted, asked from the oldest segment on.
struct CompactionFates {
  enum Fate {
    case kept(created: UInt64, isSuperseded: Bool)
    case dropped
    case droppedTombstone
  }

  private let reader: Reader
  private var floor: CompactionFloor
  private let pinned: PinnedVersions?
  private let isRecordSuperseded: (@Sendable (RecordName, UInt64) -> Bool)?
  private var versions: NeededVersions
  private(set) var cached: CachedVersions
  private var creations = CreationTimes()
  /// The key that was asked about last, and what the index says of it.
  private var key: [UInt8]?
  private var slot: Slot?
  /// Whether the newest entry of the key that was asked about last is a touch, so that an older
  /// one has the value.
  var isTouched: Bool { slot?.size.isTouched ?? false }
  /// Whether all cached versions of that key but the newest go, as soon as nothing needs them.
  /// Where the user may have written the key before (`hidesOwned`), one may stay in each group of
  /// segments: it links the newer ones to the user's.
  var olderVersionsGo: Bool {
    slot.map { $0.size.isCached && !$0.size.hidesOwned && !$0.size.isTouched } ?? false
  }
  /// Whether versions may have been lost in damage: then the log itself is asked for each.
  private let hasDamage: Bool

  init(
    _ reader: Reader, _ floor: CompactionFloor, _ pinned: PinnedVersions?,
    isRecordSuperseded: (@Sendable (RecordName, UInt64) -> Bool)?
  ) {
    self.reader = reader
    self.floor = floor
    self.pinned = pinned
    self.isRecordSuperseded = isRecordSuperseded
    versions = NeededVersions(reader, floor)
    cached = CachedVersions(reader, needed: 0, range: 0...0)
    hasDamage = !reader.manifest.damage.isEmpty
  }

  /// Begins with the entries of a group of segments, which are rewritten together.
  mutating func begin(_ range: ClosedRange<UInt64>) {
    cached = CachedVersions(reader, needed: floor.cached, range: range)
  }

  /// Lets all deletes stay from here on: an older segment was passed over that has what they hide.
  mutating func keepDeletes() { floor.deletes = 0 }

  /// Decides whether an entry stays. Those of a key are best asked about one behind the other.
  /// - Parameters:
  ///   - head: the entry.
  ///   - key: its key.
  ///   - isCached: whether it says that it is of cached data.
  ///   - recordType: of a record of the engine's, its type.
  mutating func fate(
    of head: EntryHead, key: RawSpan, isCached: Bool,
    recordType: () throws(TidemarkError) -> RecordType
  ) throws(TidemarkError) -> Fate {
    guard head.kind != .record else {
      return try isSuperseded(head, key, recordType)
        ? .dropped : .kept(created: 0, isSuperseded: false)
    }
    if self.key?.rawSpan.isEqual(to: key) != true { try enter(key) }
    let fate: Fate =
      try cached.drops(head, slot, isCached: isCached) ? .dropped : fate(of: head, key: key)
    // Behind the newest version nothing comes; of a key that the index has forgotten nothing stays.
    if let slot, slot.sequence != head.sequence {
      creations.note(head)
    } else {
      creations.endKey()
    }
    return fate
  }

  private mutating func enter(_ key: RawSpan) throws(TidemarkError) {
    creations.leaveKey()
    cached.enter()
    self.key = nil
    slot = try reader.slot(ofKey: key)
    self.key = [UInt8](copying: key)
  }

  private mutating func fate(of head: EntryHead, key: RawSpan) throws(TidemarkError) -> Fate {
    let removes = head.kind.removes
    // A planted bug is a mistake built in only to see that the tests find it.
    if PlantedBug.isOn(.tombstoneDroppedEarly), removes { return .dropped }
    guard let losesOlder = try losesOlder(head, key: key) else {
      return removes ? .droppedTombstone : .dropped
    }
    // Where the cached version before went, the entry names an older one (`link`) in its place.
    let tells = losesOlder || cached.link(of: head.previous) != nil
    return .kept(
      created: tells ? try created(head) : head.created,
      isSuperseded: slot?.sequence != head.sequence || removes)
  }

  /// Whether older versions of its key may go while an entry stays; nil where the entry goes.
  private mutating func losesOlder(
    _ head: EntryHead, key: RawSpan
  ) throws(TidemarkError) -> Bool? {
    guard floor.drops, head.sequence <= floor.limit else { return false }
    if head.kind.removes, head.sequence > floor.deletes { return false }
    // A key that the index has forgotten was deleted at or below the floor.
    let isFloored = head.sequence <= floor.sequence
    guard let newest = slot?.sequence, newest > 0 else { return isFloored ? nil : false }
    // Kept for a peer. Older versions may go up to the next one that stays, which it then names.
    if let pinned, pinned.kept[head.sequence] != nil { return true }
    let isOldDelete = head.kind.removes && isFloored
    // By the floor's table no other version of such a key stays. A touch needs its put besides, and
    // past damage nobody can tell: for both the versions are walked.
    let keepsNewestAlone =
      newest <= floor.sequence || floor.versionsPerKey == 1 && newest <= floor.needed
    if keepsNewestAlone, slot?.size.isTouched == false, !hasDamage {
      return newest == head.sequence && !isOldDelete ? true : nil
    }
    // The versions at or below the floor's limit that stay.
    let chain = try versions.of(key, newest: newest)
    guard chain.keeps(head.sequence), !isOldDelete else { return nil }
    // The put that a touch stands on may lose its predecessors, too.
    return head.sequence == chain.oldest
      || (head.previous > 0 && head.previous <= floor.limit && !chain.keeps(head.previous))
  }

  /// Whether a record says nothing any more. One with an empty value takes its name away, and stays
  /// where record tables know its type (`isListed`): they would find an older record in a segment
  /// that is not rewritten.
  private func isSuperseded(
    _ head: EntryHead, _ key: RawSpan, _ recordType: () throws(TidemarkError) -> RecordType
  ) throws(TidemarkError) -> Bool {
    guard let isRecordSuperseded else { return false }
    let type = try recordType()
    guard head.valueLength > 0 || !type.isListed else { return false }
    return isRecordSuperseded(RecordName(type, key: [UInt8](copying: key)), head.sequence)
  }

  /// Commit time of the oldest version since the key was last absent, for a survivor whose
  /// older versions go.
  private func created(_ head: EntryHead) throws(TidemarkError) -> UInt64 {
    if head.created != 0 || head.kind.removes { return head.created }
    if head.previous == 0 { return 0 }
    if let known = creations.time(through: head.previous) { return known }
    var oldest: UInt64 = 0
    var candidate = head.previous
    while candidate > 0, let entry = try reader.entryIfKept(at: candidate),
      !entry.head.kind.removes
    {
      oldest = entry.head.created != 0 ? entry.head.created : entry.head.commitTime
      if entry.head.created != 0 { break }
      candidate = entry.head.previous
    }
    return oldest
  }
}

/// Remembers when keys were created whose older versions are being dropped. The version that stays
/// has to say it; to walk the log for it is slow, and fails where an earlier step of the compaction
/// has dropped those versions.
struct CreationTimes {
  /// Most keys that are kept in mind; of others the log is asked.
  private static let most = 1 << 20

  /// The version that was met last, of the key that is at hand: the commit time of its oldest one
  /// since the key was last absent; 0 for a delete.
  private var last: (sequence: UInt64, time: UInt64)?
  /// The same for other keys, whose newest version was not met.
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

  /// No version of the key at hand comes any more.
  mutating func endKey() { last = nil }

  /// Another key comes, before the newest version of this one was met.
  mutating func leaveKey() {
    if let last, times.count < Self.most { times[last.sequence] = last.time }
    last = nil
  }

  /// The time for a version and those before it; nil when it was not met.
  func time(through sequence: UInt64) -> UInt64? {
    if let last, last.sequence == sequence { return last.time }
    return times.isEmpty ? nil : times[sequence]
  }
}
