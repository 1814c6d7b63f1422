/// Which versions of a key a compaction has to keep, worked out once per key: walking from the
/// newest down for every entry would take the square of their number.
///
/// The retention's age lets superseded versions go up to `floor.sequence`; a count of versions
/// (`versionsPerKey`) also those up to `floor.needed`, the least that open views need. All above
/// `floor.limit` (`needed` with a count, else `sequence`) stays; up to it writers change nothing.
struct RetainedVersions {
  /// The versions at or below the floor's limit that stay of one key; callers keep all above it.
  struct Chain {
    /// Versions that a view or the count needs, and puts whose value a touch renews.
    var kept: Set<UInt64> = []
    /// The oldest version that the walk met, and so the last that stays; 0 for none.
    var oldest: UInt64 = 0
    /// A version lost in accepted damage, 0 for none: its link is lost, so all older ones stay.
    var brokenAt: UInt64 = 0

    func keeps(_ sequence: UInt64) -> Bool { kept.contains(sequence) || sequence < brokenAt }
  }

  /// Most keys whose chains are remembered.
  private static let mostKeys = 4_096
  private let reader: Reader
  private let floor: CompactionFloor
  private var chains: [[UInt8]: Chain] = [:]

  init(_ reader: Reader, _ floor: CompactionFloor) {
    self.reader = reader
    self.floor = floor
  }

  mutating func of(_ key: RawSpan, newest: UInt64) throws(TidemarkError) -> Chain {
    // The walk ends at the newest version, and costs less than a look into `chains`.
    if newest <= floor.sequence, floor.versionsPerKey == nil { return try chain(newest) }
    let bytes = [UInt8](copying: key)
    if let known = chains[bytes] { return known }
    let chain = try chain(newest)
    if chains.count >= Self.mostKeys { chains.removeAll(keepingCapacity: true) }
    chains[bytes] = chain
    return chain
  }

  /// Walks from the newest version down to the first at or below `sequence`, which a view there
  /// shows; with a count no further than that many versions, one of them at or below `needed`.
  private func chain(_ newest: UInt64) throws(TidemarkError) -> Chain {
    var chain = Chain()
    var versions: UInt32 = 0
    var candidate = newest
    while candidate > 0 {
      if reader.isDamaged(candidate) {
        chain.brokenAt = candidate
        break
      }
      // Nil: an earlier compaction has dropped this version, and no link leads to older ones.
      guard let entry = try reader.linkedEntry(candidate) else { break }
      versions += 1
      if candidate <= floor.limit {
        chain.kept.insert(candidate)
        chain.oldest = candidate
      }
      if entry.head.kind == .touch, entry.head.valueSequence <= floor.limit {
        chain.kept.insert(entry.head.valueSequence)
      }
      if candidate <= floor.sequence { break }
      if let most = floor.versionsPerKey, versions >= most, candidate <= floor.needed { break }
      candidate = entry.head.previous
    }
    return chain
  }
}
