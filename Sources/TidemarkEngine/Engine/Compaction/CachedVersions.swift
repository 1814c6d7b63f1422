/// Decides which cached versions of a key a compaction lets go: all that something newer has
/// replaced, whatever the retention, since the server has them.
///
/// Asked about the entries of a key one behind the other, oldest first, all of them in segments
/// that are rewritten together. The one above a version that goes names the one below it from then
/// on, so that what a user has written stays within reach.
struct CachedVersions {
  private let reader: Reader
  /// A version that only entries newer than this have replaced stays: open views may read it, or
  /// the next opening, after a power cut that took what was not durable.
  private let needed: UInt64
  /// Newer entries are in segments that are not rewritten: their links to what the user may have
  /// written must hold. A key that is the cache's alone has nothing that they lead to.
  private let last: UInt64
  private let hasDamage: Bool
  /// The first version at or below the limit, from the newest down: it and all above stay; 0 for
  /// none. Nil until that is asked.
  private var anchor: UInt64?
  /// Puts that touches which stay renew.
  private var renewed: Set<UInt64> = []
  /// Sequences of the cached puts that were met.
  private var puts: Set<UInt64> = []
  /// By version of the key that went, what it named.
  private var bridges: [UInt64: UInt64] = [:]
  /// Whether no segment before these has anything of the key: else an eviction keeps that from
  /// coming back where the index is made from the log alone.
  private var isWhole: Bool?
  /// Whether the oldest segment is among those that are rewritten.
  private let coversOldest: Bool
  /// The newest cached version that was let go.
  private(set) var droppedThrough: UInt64 = 0

  /// - Parameters:
  ///   - needed: a version that only entries newer than this have replaced stays.
  ///   - range: the sequences of the segments that are rewritten.
  init(_ reader: Reader, needed: UInt64, range: ClosedRange<UInt64>) {
    self.reader = reader
    self.needed = needed
    last = range.upperBound
    let first = range.lowerBound
    coversOldest = reader.segments.first?.firstSequence ?? 0 >= first
    hasDamage = !reader.manifest.damage.isEmpty
  }

  /// Another key comes.
  mutating func enter() {
    guard anchor != nil || isWhole != nil else { return }
    anchor = nil
    isWhole = nil
    if !renewed.isEmpty { renewed.removeAll() }
    if !puts.isEmpty { puts.removeAll() }
    if !bridges.isEmpty { bridges.removeAll() }
  }

  /// Whether an entry goes.
  /// - Parameters:
  ///   - head: the entry.
  ///   - slot: what the index says of the key.
  ///   - isCached: whether the entry itself says that it is of cached data.
  mutating func drops(
    _ head: EntryHead, _ slot: Slot?, isCached: Bool
  ) throws(TidemarkError) -> Bool {
    if isWhole == nil { isWhole = coversOldest || head.previous == 0 }
    if PlantedBug.isOn(.evictionDroppedEarly), head.kind == .evict, isCached { return true }
    let isCached = isCached || head.kind == .touch && puts.contains(head.valueSequence)
    // A link that leads into damage would end the compaction with an error.
    guard isCached, !hasDamage else { return false }
    if head.kind == .put { puts.insert(head.sequence) }
    let isAlone = slot.map { $0.size.isCached && !$0.size.hidesOwned } ?? false
    let limit = isAlone ? needed : min(needed, last)
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

  /// The version that an entry names from now on, where that has changed.
  func link(of previous: UInt64) -> UInt64? {
    if PlantedBug.isOn(.cachedLinkDangles) { return nil }
    return bridges.isEmpty ? nil : bridges[previous]
  }

  private mutating func anchor(_ slot: Slot?, _ limit: UInt64) throws(TidemarkError) -> UInt64 {
    if let anchor { return anchor }
    var candidate = slot?.sequence ?? 0
    if candidate > limit || slot?.size.isTouched == true {
      // A version that is gone ends the walk, and may be above the limit: views walk the same
      // links, so nothing older can be read, and every cached version below it goes.
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
