/// Versions that a compaction keeps for peers besides those that the floor keeps: of every key
/// with a pending entry the newest version that may be in the feed, entries that must go by
/// themselves, and deletes that somebody has yet to hear of.
///
/// Where versions between go, the one above names the next that stays, so that who walks a key's
/// versions finds what a pending one was made upon. Both change in one step, within one group of
/// segments: of each group the first version of such a key stays. So a crash between two groups
/// leaves no version that cannot be reached.
struct PinnedVersions {
  /// Besides what the floor keeps, with a bit for each of the first 64 peers that need it; none for
  /// what only keeps others within reach.
  private(set) var kept: [UInt64: UInt64] = [:]
  /// By version that stays: the next older one that does, where those between go; 0 for none.
  private(set) var links: [UInt64: UInt64] = [:]
  /// The deletes among them, which the index must not forget.
  private(set) var deletes: Set<UInt64> = []
  /// By pin.
  private(set) var held: [HeldHistory] = []

  private let reader: Reader
  private let floor: CompactionFloor
  private let groups: [ClosedRange<UInt64>]
  private var pins: [(pin: RetentionPin, isGone: Bool)] = []
  /// Entries that stay as long as they are pending, whatever their keys hold: what belongs to an
  /// atomic group, what comes after others, and those.
  private var single: Set<UInt64> = []
  /// The newest entries of the keys of which something may be pending.
  private var tops: Set<UInt64> = []
  private var versions: NeededVersions

  /// - Parameters:
  ///   - floor: what is kept in any case.
  ///   - pins: those of all peers.
  ///   - groups: the sequences of the segments that are rewritten together, ascending.
  init(
    _ reader: Reader, _ floor: CompactionFloor, _ pins: [RetentionPin.Named],
    groups: [ClosedRange<UInt64>]
  ) throws(TidemarkError) {
    self.reader = reader
    self.floor = floor
    self.groups = groups
    versions = NeededVersions(reader, floor)
    guard floor.drops else { return }
    for row in pins {
      guard let pin = row.pin else { continue }
      self.pins.append((pin, pin.isGone(in: reader)))
      held.append(HeldHistory(name: row.name))
    }
    guard !self.pins.isEmpty else { return }
    try look()
    for top in tops.sorted() { try keepVersions(below: top) }
    (tops, single) = ([], [])
    versions = NeededVersions(reader, floor)
  }

  // MARK: Which keys

  /// Looks through what may be pending for some peer.
  private mutating func look() throws(TidemarkError) {
    let head = reader.lastSequence
    var wanted = SequenceSet()
    for (pin, _) in pins {
      wanted.formUnion(pin.pending)
      let rest = min(pin.frontier, (pin.unread ?? .max) - 1)
      if rest < head { wanted.insert(rest + 1...head) }
    }
    for range in wanted.ranges {
      var cursor = LogCursor(reader, from: range.lowerBound, through: min(range.upperBound, head))
      while let entry = try cursor.next() { try take(entry) }
    }
  }

  private mutating func take(_ entry: LogEntry) throws(TidemarkError) {
    let sequence = entry.sequence
    let newest = try reader.slot(ofKey: entry.key.rawSpan)?.sequence ?? 0
    if entry.head.kind == .delete, newest == sequence {
      for (index, row) in pins.enumerated() where (row.pin.unread ?? .max) <= sequence {
        keep(sequence, for: index, entry.head)
      }
    }
    let attributes = try entry.attributes()
    guard attributes.origin == nil else { return }
    guard pins.contains(where: { $0.pin.isPending(sequence) }) else { return }
    tops.insert(newest)
    guard attributes.atomicGroup != 0 || !attributes.after.isEmpty else { return }
    single.insert(sequence)
    for target in attributes.after where target < sequence {
      single.insert(target)
      guard let other = try reader.entryIfKept(at: target),
        let slot = try reader.slot(ofKey: other.key.rawSpan)
      else { continue }
      tops.insert(slot.sequence)
    }
  }

  // MARK: Which versions

  private struct Version {
    var head: EntryHead
    /// Whether it came from a feed.
    var isForeign: Bool
    /// Whether peers may be told of it.
    var isOwn: Bool
    /// Whether it stays; filled in later.
    var stays = false

    var sequence: UInt64 { head.sequence }
  }

  /// A key's versions, newest first, down to one that came from a feed: nothing that is pending
  /// lies below that.
  private mutating func chain(_ newest: UInt64) throws(TidemarkError) -> [Version] {
    var found: [Version] = []
    var candidate = newest
    while candidate > 0, !reader.isDamaged(candidate), let entry = try reader.linkedEntry(candidate)
    {
      let attributes = try entry.attributes()
      let kind = entry.head.kind
      let isForeign = attributes.origin != nil
      found.append(
        Version(
          head: entry.head, isForeign: isForeign,
          isOwn: !isForeign && attributes.entryClass == .owned && (kind == .put || kind == .delete)
        ))
      if isForeign { break }
      candidate = entry.head.previous
      // An earlier compaction leaves the last of several touches alone, which names its value.
      if kind == .touch, try reader.entryIfKept(at: candidate) == nil {
        candidate = entry.head.valueSequence
      }
    }
    guard let top = found.first else { return [] }
    let key = try reader.entry(at: top.sequence).key
    let needed = try versions.of(key.rawSpan, newest: newest)
    for index in found.indices {
      let version = found[index]
      // A tombstone at or below the floor goes, though it is its key's newest entry.
      let isDropped = version.head.kind.removes && version.sequence <= floor.sequence
      found[index].stays =
        version.sequence > floor.limit || kept[version.sequence] != nil
        || needed.keeps(version.sequence) && !isDropped
    }
    return found
  }

  private mutating func keepVersions(below newest: UInt64) throws(TidemarkError) {
    var chain = try chain(newest)
    for index in pins.indices { mark(&chain, for: index) }
    guard let lowest = chain.lastIndex(where: \.stays) else { return }
    var holder: Version?
    var hasGap = false
    for index in chain[...lowest].indices {
      if !chain[index].stays, let above = holder,
        group(of: chain[index].sequence) != group(of: above.sequence)
      {
        chain[index].stays = true
        kept[chain[index].sequence] = 0
      }
      guard chain[index].stays else {
        hasGap = true
        continue
      }
      if hasGap, let holder { links[holder.sequence] = chain[index].sequence }
      holder = chain[index]
      hasGap = false
    }
    // Nobody has heard of the key: what goes was replaced before it was sent.
    let rest = chain[(lowest + 1)...]
    if let holder, let last = rest.last, last.head.previous == 0,
      rest.allSatisfy({ version in
        version.isOwn && pins.allSatisfy { $0.pin.isPending(version.sequence) }
      })
    {
      links[holder.sequence] = 0
    }
  }

  private func group(of sequence: UInt64) -> Int? {
    groups.firstIndex { $0.contains(sequence) }
  }

  /// Marks what a peer needs.
  private mutating func mark(_ chain: inout [Version], for index: Int) {
    let (pin, isGone) = pins[index]
    // A peer that is gone for long holds back deletes alone.
    if isGone, chain.first.map({ !$0.head.kind.removes }) ?? true { return }
    var isWanted = false
    var isFormed = false
    for place in chain.indices {
      let version = chain[place]
      if version.isOwn, pin.isPending(version.sequence) {
        isWanted = true
        let isNamed = pin.pending.contains(version.sequence)
        isFormed = isFormed || isNamed
        let isDelete = version.head.kind.removes && place == 0
        guard isNamed || isDelete || single.contains(version.sequence) else { continue }
      } else {
        if !isWanted, version.sequence < pin.first { return }
        // Touches and cached values are nothing that a change was made upon.
        guard isWanted, version.isForeign || version.isOwn else { continue }
        // One in whose place a later one was sent may hide what that was made upon.
        isWanted = version.isOwn && isFormed && version.sequence > pin.settledThrough
      }
      guard !chain[place].stays || kept[version.sequence] != nil else { continue }
      chain[place].stays = true
      keep(version.sequence, for: index, version.head)
    }
  }

  private mutating func keep(_ sequence: UInt64, for index: Int, _ head: EntryHead) {
    let bit: UInt64 = index < 64 ? 1 << UInt64(index) : 0
    let known = kept[sequence]
    if let known, known & bit == bit { return }
    if head.kind.removes { deletes.insert(sequence) }
    kept[sequence] = (known ?? 0) | bit
    held[index].count(head)
  }
}

/// History that compactions keep for a peer: versions that pending changes were made upon, and
/// deletes that are pending, or that stand in its feed where this store has not read yet.
/// Forgetting the peer lets it go.
public struct HeldHistory: Sendable, Hashable {
  /// The peer's name.
  public var peer: String
  /// How many superseded versions.
  public var versions = 0
  /// How many deletes.
  public var deletes = 0
  /// Bytes of their keys and values, before they are compressed.
  public var bytes = 0
  /// Whether all superseded entries stay: what the store has noted of its needs is of another form
  /// or cannot be read, and is written anew when it replicates with the peer again.
  public var keepsAll = false

  /// Whether there is anything to tell.
  public var isEmpty: Bool { versions == 0 && deletes == 0 && !keepsAll }

  package init(peer: String) { self.peer = peer }

  /// - Parameter name: that of the pin.
  init(name: [UInt8]) {
    let name = name.starts(with: "peer ".utf8) ? name.dropFirst(5) : name[...]
    peer = String(decoding: name, as: UTF8.self)
  }

  mutating func count(_ head: EntryHead) {
    if head.kind.removes { deletes += 1 } else { versions += 1 }
    bytes += head.keyLength + head.valueLength
  }
}

extension Compactor {
  private func pinnedNow() throws(TidemarkError) -> PinnedVersions {
    let head = reader.lastSequence
    return try PinnedVersions(
      reader, CompactionFloor(sequence: head, needed: head), try RetentionPin.all(in: reader),
      groups: [])
  }

  /// The peers for which versions of a key are kept.
  package func peersHolding(_ sequences: [UInt64]) throws(TidemarkError) -> [HeldHistory] {
    let pinned = try pinnedNow()
    let bits = sequences.reduce(0) { $0 | (pinned.kept[$1] ?? 0) }
    return pinned.held.enumerated().filter { $0.offset < 64 && bits >> UInt64($0.offset) & 1 == 1 }
      .map(\.element)
  }

  /// History that a compaction without any would keep for peers.
  package func historyHeldForPeers() throws(TidemarkError) -> [HeldHistory] {
    var held = try pinnedNow().held
    for row in try RetentionPin.all(in: reader) where row.pin == nil {
      var all = HeldHistory(name: row.name)
      all.keepsAll = true
      held.append(all)
    }
    return held
  }
}
