/// Which versions of a key a compaction has to keep, worked out once per key: walking from the
/// newest down for every entry would take the square of their number.
///
/// Only versions at or below the floor's limit are told apart, and those no longer change while
/// others write.
struct NeededVersions {
  /// The versions of one key.
  struct Chain {
    /// At or below the limit: versions that a view, the count of versions or a touch needs.
    var needed: Set<UInt64> = []
    /// The last version of the chain that stays; what is older goes.
    var oldest: UInt64 = 0
    /// A version that accepted damage took: what is older stays, since nobody can tell.
    var brokenAt: UInt64 = 0

    func keeps(_ sequence: UInt64) -> Bool { needed.contains(sequence) || sequence < brokenAt }
  }

  /// So many keys are kept in mind.
  private static let mostKeys = 4_096

  private let reader: Reader
  private let floor: CompactionFloor
  private var chains: [[UInt8]: Chain] = [:]

  init(_ reader: Reader, _ floor: CompactionFloor) {
    self.reader = reader
    self.floor = floor
  }

  /// - Parameter newest: the sequence of the key's newest entry.
  mutating func of(_ key: RawSpan, newest: UInt64) throws(TidemarkError) -> Chain {
    // Most keys have one version.
    if newest <= floor.sequence, floor.versionsPerKey == nil {
      return try chain(newest)
    }
    let bytes = [UInt8](copying: key)
    if let known = chains[bytes] { return known }
    let chain = try chain(newest)
    if chains.count >= Self.mostKeys { chains.removeAll(keepingCapacity: true) }
    chains[bytes] = chain
    return chain
  }

  /// From the newest down: everything above the limit, and the first at or below it; of what a
  /// count of versions keeps, that many.
  private func chain(_ newest: UInt64) throws(TidemarkError) -> Chain {
    var chain = Chain()
    var versions: UInt32 = 0
    var candidate = newest
    while candidate > 0 {
      if reader.isDamaged(candidate) {
        chain.brokenAt = candidate
        break
      }
      guard let entry = try reader.linkedEntry(candidate) else { break }
      versions += 1
      if candidate <= floor.limit {
        chain.needed.insert(candidate)
        chain.oldest = candidate
      }
      if entry.head.kind == .touch, entry.head.valueSequence <= floor.limit {
        chain.needed.insert(entry.head.valueSequence)
      }
      if candidate <= floor.sequence { break }
      if let most = floor.versionsPerKey, versions >= most, candidate <= floor.needed { break }
      candidate = entry.head.previous
    }
    return chain
  }
}
