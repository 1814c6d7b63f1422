/// Versions that a compaction keeps for peers of replication, besides those that the floor keeps.
///
/// A peer's feed is its log of changes. An entry is pending until the peer has decided on it, as a
/// pin (``RetentionPin``) says. Of every key with a pending entry the newest version stays that may
/// be in the feed, for the pending one was made upon it. So do `heldAlone` entries and unread
/// deletes.
///
/// Where versions between two kept ones go, the upper one links to the lower one. Both must change
/// in one step of MANIFEST, or a crash leaves versions that no link reaches. A step replaces one
/// group of segments, so the newest version of such a key in each group stays.
struct PinnedVersions {
  /// Versions kept besides those of the floor, with a bit for each of the first 64 peers that need
  /// it; no bit for a version that only carries a link to others.
  private(set) var kept: [UInt64: UInt64] = [:]
  /// By version that stays: the next older one that stays, where those between go; 0 for none.
  private(set) var links: [UInt64: UInt64] = [:]
  /// The deletes among `kept`: the index must know them as long as the log has them.
  private(set) var deletes: Set<UInt64> = []
  /// What is kept for each of `pins`, in the same order.
  private(set) var held: [HeldHistory] = []
  private let reader: Reader
  private let floor: CompactionFloor
  private let groups: [ClosedRange<UInt64>]
  /// The readable pins. `isGone`: the peer has given no sign of life for long.
  private var pins: [(pin: RetentionPin, isGone: Bool)] = []
  /// Entries that are sent though their key has a newer one, and so stay while they are pending:
  /// members of atomic groups, entries that must come after others, and those others.
  private var heldAlone: Set<UInt64> = []
  /// The newest entries of the keys of which something may be pending.
  private var newestPending: Set<UInt64> = []
  private var versions: RetainedVersions

  /// - Parameter groups: the sequences of the segments that are rewritten together, ascending.
  init(
    _ reader: Reader, _ floor: CompactionFloor, _ pins: [RetentionPin.Named],
    groups: [ClosedRange<UInt64>]
  ) throws(TidemarkError) {
    self.reader = reader
    self.floor = floor
    self.groups = groups
    versions = RetainedVersions(reader, floor)
    guard floor.drops else { return }
    for row in pins {
      guard let pin = row.pin else { continue }
      self.pins.append((pin, pin.isGone(in: reader)))
      held.append(HeldHistory(name: row.name))
    }
    guard !self.pins.isEmpty else { return }
    try collectPending()
    for top in newestPending.sorted() { try keepVersions(below: top) }
    (newestPending, heldAlone) = ([], [])
    versions = RetainedVersions(reader, floor)
  }

  /// Reads the part of the log that may hold pending entries or unread deletes of some peer.
  private mutating func collectPending() throws(TidemarkError) {
    let head = reader.lastSequence
    var wanted = SequenceSet()
    for (pin, _) in pins {
      wanted.formUnion(pin.pending)
      let rest = min(pin.frontier, (pin.unread ?? .max) - 1)
      if rest < head { wanted.insert(rest + 1...head) }
    }
    for range in wanted.ranges {
      var cursor = LogCursor(reader, from: range.lowerBound, through: min(range.upperBound, head))
      while let entry = try cursor.next() { try collect(entry) }
    }
  }

  private mutating func collect(_ entry: LogEntry) throws(TidemarkError) {
    let sequence = entry.sequence
    let newest = try reader.slot(ofKey: entry.key.rawSpan)?.sequence ?? 0
    // Older entries of the key by others may yet come from the feed, and must meet the delete.
    if entry.head.kind == .delete, newest == sequence {
      for (index, row) in pins.enumerated() where (row.pin.unread ?? .max) <= sequence {
        keep(sequence, for: index, entry.head)
      }
    }
    let attributes = try entry.attributes()
    guard attributes.origin == nil else { return }
    guard pins.contains(where: { $0.pin.isPending(sequence) }) else { return }
    newestPending.insert(newest)
    guard attributes.atomicGroup != 0 || !attributes.after.isEmpty else { return }
    heldAlone.insert(sequence)
    for target in attributes.after where target < sequence {
      heldAlone.insert(target)
      guard let other = try reader.entryIfKept(at: target),
        let slot = try reader.slot(ofKey: other.key.rawSpan)
      else { continue }
      newestPending.insert(slot.sequence)
    }
  }

  private struct Version {
    var head: EntryHead
    /// Whether it came from a feed.
    var isForeign: Bool
    /// Whether it is a change of the user's in this store, which peers are told of.
    var isOwn: Bool
    /// Whether it stays; filled in later.
    var stays = false

    var sequence: UInt64 { head.sequence }
  }

  /// A key's versions, newest first, down to one from a feed, below which nothing is pending.
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
      // Where compaction has dropped the touches before, go on at the put that this one renews.
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

  /// Marks the versions of a key that stay, and links them over those that go.
  private mutating func keepVersions(below newest: UInt64) throws(TidemarkError) {
    var chain = try chain(newest)
    for index in pins.indices { mark(&chain, for: index) }
    guard let lowest = chain.lastIndex(where: \.stays) else { return }
    // The last version met that stays.
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
    // All older versions were replaced before any peer got them, back to the key's first version:
    // to peers the lowest one that stays is the first.
    let rest = chain[(lowest + 1)...]
    if let holder, let last = rest.last, last.head.previous == 0,
      rest.allSatisfy({ version in
        version.isOwn && pins.allSatisfy { $0.pin.isPending(version.sequence) }
      })
    {
      links[holder.sequence] = 0
    }
  }

  private func group(of sequence: UInt64) -> Int? { groups.firstIndex { $0.contains(sequence) } }

  /// Marks the versions that a peer needs: pending ones that are sent by themselves, and below
  /// pending ones the first that the peer may have, which is their base.
  private mutating func mark(_ chain: inout [Version], for index: Int) {
    let (pin, isGone) = pins[index]
    // For a peer that is gone for long only keys count whose newest entry is a delete.
    if isGone, chain.first.map({ !$0.head.kind.removes }) ?? true { return }
    var isWanted = false  // The base of a pending version is still to be found.
    var isListed = false  // A pending version was met that the pin lists by its sequence.
    for place in chain.indices {
      let version = chain[place]
      if version.isOwn, pin.isPending(version.sequence) {
        isWanted = true
        let isInList = pin.pending.contains(version.sequence)
        isListed = isListed || isInList
        let isDelete = version.head.kind.removes && place == 0
        guard isInList || isDelete || heldAlone.contains(version.sequence) else { continue }
      } else {
        if !isWanted, version.sequence < pin.first { return }
        // No change is made upon a touch or a cached value.
        guard isWanted, version.isForeign || version.isOwn else { continue }
        // Above `acknowledgedThrough` a listed one may be sent in its place: its base is older.
        isWanted = version.isOwn && isListed && version.sequence > pin.acknowledgedThrough
      }
      // What the floor keeps needs no note; what another peer keeps gets this one's bit, too.
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
/// deletes that are pending, or that stand in the peer's feed where this store has not read yet.
/// Once the store forgets the peer, compactions may drop that history.
public struct HeldHistory: Sendable, Hashable {
  /// The name of the peer that the history is kept for.
  public var peer: String
  /// The number of superseded versions that are kept for the peer.
  public var versions = 0
  /// The number of deletes (tombstones) that are kept for the peer.
  public var deletes = 0
  /// The bytes of keys and values that are kept for the peer, before compression.
  public var bytes = 0
  /// Whether all superseded entries are kept, because the store's record of the peer's needs cannot
  /// be read or has another form. The next replication with the peer writes the record anew.
  public var keepsAll = false

  /// Whether nothing is kept for the peer.
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
  /// The versions that peers need if nothing else were kept: with the floor at the log's end.
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
