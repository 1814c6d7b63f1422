/// Decides which entries of a log stay when it is compacted, asked from the oldest segment on.
struct CompactionFates {
  enum Fate {
    case kept(created: UInt64, isSuperseded: Bool)
    case dropped
    case droppedTombstone
  }

  private let engine: Engine
  private let floor: CompactionFloor
  private let pinned: PinnedVersions?
  private let isRecordSuperseded: (@Sendable (RecordName, UInt64) -> Bool)?
  private var versions: NeededVersions
  private var creations = CreationTimes()
  /// Whether the newest entry of the key that was asked about last is a touch, so that an older
  /// one has the value.
  private(set) var isTouched = false
  /// Whether versions may have been lost in damage: then the log itself is asked for each.
  private let hasDamage: Bool

  init(
    _ engine: Engine, _ floor: CompactionFloor, _ pinned: PinnedVersions?,
    isRecordSuperseded: (@Sendable (RecordName, UInt64) -> Bool)?
  ) {
    self.engine = engine
    self.floor = floor
    self.pinned = pinned
    self.isRecordSuperseded = isRecordSuperseded
    versions = NeededVersions(engine, floor)
    hasDamage = engine.reading.withLock { !$0.manifest.damage.isEmpty }
  }

  /// Forgets what was worked out for keys of which more than one version may be needed.
  mutating func beginWindow() { versions = NeededVersions(engine, floor) }

  /// Decides whether an entry stays.
  /// - Parameters:
  ///   - head: the entry.
  ///   - key: its key.
  ///   - front: the heads that it stands among.
  mutating func fate(
    of head: EntryHead, key: RawSpan, in front: DecodedFront
  ) throws(TidemarkError) -> Fate {
    guard head.kind != .record else {
      return try isSuperseded(head, key, in: front)
        ? .dropped : .kept(created: 0, isSuperseded: false)
    }
    let slot = try engine.slot(ofKey: key)
    isTouched = slot?.size.isTouched ?? false
    let fate = try fate(of: head, key: key, slot)
    // Behind a newest version that stays nothing comes.
    if case .kept = fate, slot?.sequence == head.sequence { return fate }
    creations.note(head)
    return fate
  }

  private mutating func fate(
    of head: EntryHead, key: RawSpan, _ slot: Slot?
  ) throws(TidemarkError) -> Fate {
    let newest = slot?.sequence ?? 0
    let isSuperseded = newest != head.sequence || head.kind.removes
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.tombstoneDroppedEarly), head.kind.removes { return .dropped }
    #endif
    guard floor.drops, head.sequence <= floor.limit else {
      return .kept(created: head.created, isSuperseded: isSuperseded)
    }
    if head.kind.removes, head.sequence > floor.deletes {
      return .kept(created: head.created, isSuperseded: true)
    }
    // A key that the index has forgotten was deleted at or below the floor.
    guard newest > 0 else {
      guard head.sequence <= floor.sequence else {
        return .kept(created: head.created, isSuperseded: true)
      }
      return head.kind.removes ? .droppedTombstone : .dropped
    }
    if let pinned, pinned.kept[head.sequence] != nil {
      return .kept(created: try created(head), isSuperseded: true)
    }
    if newest <= floor.sequence, floor.versionsPerKey == nil, slot?.size.isTouched == false,
      !hasDamage
    {
      // The key's newest version stays, unless it is a delete, and nothing else does.
      if head.kind.removes { return .droppedTombstone }
      guard newest == head.sequence else { return .dropped }
      return .kept(created: try created(head), isSuperseded: false)
    }
    let chain = try versions.of(key, newest: newest)
    return try fate(of: head, chain, isSuperseded: isSuperseded)
  }

  /// The same for a key of which more than one version may be needed.
  private func fate(
    of head: EntryHead, _ chain: NeededVersions.Chain, isSuperseded: Bool
  ) throws(TidemarkError) -> Fate {
    guard chain.keeps(head.sequence) else {
      return head.kind.removes ? .droppedTombstone : .dropped
    }
    if head.kind.removes, head.sequence <= floor.sequence { return .droppedTombstone }
    // The put that a touch stands on may lose its predecessors, too.
    let isLast =
      head.sequence == chain.oldest
      || (head.previous > 0 && head.previous <= floor.limit
        && !chain.keeps(head.previous))
    let created = isLast ? try created(head) : head.created
    return .kept(created: created, isSuperseded: isSuperseded)
  }

  /// Whether a record says nothing any more. One that takes its name away stays: an older one may
  /// stand in a segment that is not rewritten.
  private func isSuperseded(
    _ head: EntryHead, _ key: RawSpan, in front: DecodedFront
  ) throws(TidemarkError) -> Bool {
    guard let isRecordSuperseded else { return false }
    let type: UInt32
    do { type = try front.attributes(of: head).recordType } catch {
      throw TidemarkError(.damaged, "a record of the engine cannot be read", cause: error)
    }
    let known = RecordType(rawValue: type)
    guard head.valueLength > 0 || !known.isListed else { return false }
    return isRecordSuperseded(RecordName(known, key: [UInt8](copying: key)), head.sequence)
  }

  /// Commit time of the oldest version since the key was last absent, for a survivor whose
  /// older versions go.
  private func created(_ head: EntryHead) throws(TidemarkError) -> UInt64 {
    if head.created != 0 || head.kind.removes { return head.created }
    if head.previous == 0 { return 0 }
    if let known = creations.time(through: head.previous) { return known }
    var oldest: UInt64 = 0
    var candidate = head.previous
    while candidate > 0, let entry = try engine.entryIfKept(at: candidate),
      !entry.head.kind.removes
    {
      oldest = entry.head.created != 0 ? entry.head.created : entry.head.commitTime
      if entry.head.created != 0 { break }
      candidate = entry.head.previous
    }
    return oldest
  }
}

/// When keys were created whose older versions go: else the log would be asked for each, which an
/// earlier step of the compaction may have taken them from.
struct CreationTimes {
  /// Most keys that are kept in mind; of others the log is asked.
  private static let most = 1 << 20

  /// By sequence of the version of a key that was met last: the commit time of its oldest one since
  /// the key was last absent; 0 for a delete.
  private var times: [UInt64: UInt64] = [:]

  /// Takes a version into account. Those of a key come in order of sequence; one may come again.
  mutating func note(_ head: EntryHead) {
    let before = times.removeValue(forKey: head.previous)
    let time: UInt64
    if head.kind.removes {
      time = 0
    } else if head.created != 0 {
      time = head.created
    } else if head.previous == 0 || before == 0 {
      time = head.commitTime
    } else if let before {
      time = before
    } else {
      return
    }
    guard times.count < Self.most else { return }
    times[head.sequence] = time
  }

  /// The time for a version and those before it; nil when it was not met.
  func time(through sequence: UInt64) -> UInt64? { times[sequence] }
}
