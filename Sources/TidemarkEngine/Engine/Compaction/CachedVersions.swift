/// Decides which cached versions of a key a compaction drops: all that a newer entry has replaced,
/// whatever the retention, since the server has them. *Cached* entries come from a cache of server
/// data; others were written by the user. An *eviction* hides a cached key, as a tombstone does.
///
/// Asked about the entries of one key after another, each key's oldest first, all in one *group*:
/// segments that are rewritten together. Entries name the version before them (`previous`): where
/// that is dropped the entry gets a new link, so that the user's versions stay within reach.
struct CachedVersions {
  private let reader: Reader
  /// A version stays unless an entry up to this sequence has replaced it: open views may read it,
  /// or the next opening, after a power cut that took newer entries, which were not durable.
  private let needed: UInt64
  /// The last sequence of the group. Newer entries are in segments that keep their links: so the
  /// newest version up to `last` stays for them, unless the key has cached versions only, and no
  /// link leads to a version of the user's.
  private let last: UInt64
  private let hasDamage: Bool
  /// The key's newest version at or below the limit (see `drops`): it and all above it stay. 0 for
  /// none; nil until it is looked up.
  private var anchor: UInt64?
  /// Puts that are renewed by touches that stay: a touch extends the validity of an older put and
  /// has no value itself, so the puts stay, too.
  private var renewed: Set<UInt64> = []
  /// Sequences of the key's cached puts in the group so far.
  private var puts: Set<UInt64> = []
  /// By version of the key that was dropped: the nearest older version that was not; 0 for none.
  private var bridges: [UInt64: UInt64] = [:]
  /// Whether no segment before the group has the key; nil until its first entry comes. Otherwise an
  /// eviction stays: it hides older versions from an index that is made from the log alone.
  private var isWhole: Bool?
  /// Whether the oldest segment of the log is in the group.
  private let coversOldest: Bool
  /// The newest cached version that was dropped.
  private(set) var droppedThrough: UInt64 = 0

  init(_ reader: Reader, needed: UInt64, range: ClosedRange<UInt64>) {
    (self.reader, self.needed) = (reader, needed)
    last = range.upperBound
    let first = range.lowerBound
    coversOldest = reader.segments.first?.firstSequence ?? 0 >= first
    hasDamage = !reader.manifest.damage.isEmpty
  }

  /// Forgets the key: entries of another one follow.
  mutating func enterKey() {
    guard anchor != nil || isWhole != nil else { return }
    (anchor, isWhole) = (nil, nil)
    if !renewed.isEmpty { renewed.removeAll() }
    if !puts.isEmpty { puts.removeAll() }
    if !bridges.isEmpty { bridges.removeAll() }
  }

  /// Whether an entry is dropped.
  /// - Parameters:
  ///   - slot: the key's in the index, which names its newest entry; nil where the index forgot it.
  ///   - isCached: whether the entry is marked as cached. Touches are not: their puts tell.
  mutating func drops(
    _ head: EntryHead, _ slot: Slot?, isCached: Bool
  ) throws(TidemarkError) -> Bool {
    if isWhole == nil { isWhole = coversOldest || head.previous == 0 }
    if PlantedBug.isOn(.evictionDroppedEarly), head.kind == .evict, isCached { return true }
    let isCached = isCached || head.kind == .touch && puts.contains(head.valueSequence)
    // `anchor` follows links; one that leads into damage would end the compaction with an error.
    guard isCached, !hasDamage else { return false }
    if head.kind == .put { puts.insert(head.sequence) }
    let hasCachedOnly = slot.map { $0.size.isCached && !$0.size.hidesOwned } ?? false
    let limit = hasCachedOnly ? needed : min(needed, last)
    guard head.sequence <= limit, slot?.sequence != head.sequence else { return false }
    let anchor = try anchor(slot, limit)
    guard head.sequence < anchor || anchor == 0, !renewed.contains(head.sequence) else {
      return false
    }
    if head.kind == .evict, isWhole != true { return false }
    bridges[head.sequence] = bridges[head.previous] ?? head.previous
    droppedThrough = max(droppedThrough, head.sequence)
    return true
  }

  /// The version that an entry is to name in the place of `previous`; nil where that was kept.
  func link(of previous: UInt64) -> UInt64? {
    if PlantedBug.isOn(.cachedLinkDangles) { return nil }
    return bridges.isEmpty ? nil : bridges[previous]
  }

  private mutating func anchor(_ slot: Slot?, _ limit: UInt64) throws(TidemarkError) -> UInt64 {
    if let anchor { return anchor }
    var candidate = slot?.sequence ?? 0
    if candidate > limit || slot?.size.isTouched == true {
      // A version that an earlier compaction dropped ends the walk, and is the anchor. It may be
      // above the limit: views follow the same links, so they can read nothing below it either.
      while candidate > 0, let entry = try reader.linkedEntry(candidate) {
        if entry.head.kind == .touch { renewed.insert(entry.head.valueSequence) }
        if candidate <= limit { break }
        candidate = entry.head.previous
      }
    }
    anchor = candidate
    return candidate
  }
}
