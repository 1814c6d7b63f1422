/// Looks up keys that come in ascending order in the sorted runs of an index, page by page, without
/// the lock of the index's owner. In each run a key is searched for, in this order:
/// 1. From the block of the key before on, as long as few blocks lie between.
/// 2. By its hash, if the bucket of the hash is in memory already.
/// 3. By binary search. Hashes lead all over a run, so that each bucket costs the read of a chunk;
///    a chunk of blocks holds the next keys, too.
///
/// A page that is not in ascending order is looked up by hashes.
struct NearbyKeys {
  /// How many blocks step 1 passes.
  private static let blocksMost = 8

  private let runs: RunList
  /// By run: a block that begins at or before the key before, so that no later key of ascending
  /// order lies in an earlier block; -1 for none known yet.
  private var blocks: [Int]
  /// The last key of the ascending pages so far.
  private var last: [UInt8] = []

  init(_ runs: RunList) {
    self.runs = runs
    blocks = Array(repeating: -1, count: runs.runs.count)
  }

  /// Whether an index still has the same runs; else answers may be out of date.
  func isCurrent(_ index: Index) -> Bool { runs.runs.elementsEqual(index.runs.runs, by: ===) }

  /// The newest slot in the runs of each key of a page; nil for keys that no run has.
  mutating func slots(of keys: KeyPage, _ hashes: [UInt64]) throws(IndexError) -> [Slot?] {
    var slots: [Slot?] = []
    slots.reserveCapacity(keys.count)
    guard Self.isAscending(keys) else {
      runs.prefetch(hashes, keys: true)
      for number in 0..<keys.count {
        slots.append(
          try runs.lookup(keys.key(at: number), hash: hashes[number], maySearch: true))
      }
      return slots
    }
    guard keys.count > 0 else { return slots }
    // A page that begins at or before the last key starts anew.
    if last.rawSpan.compare(to: keys.key(at: 0)) >= 0 {
      for number in blocks.indices { blocks[number] = -1 }
    }
    for number in 0..<keys.count {
      slots.append(try lookup(keys.key(at: number), hash: hashes[number]))
    }
    last.removeAll(keepingCapacity: true)
    last.append(copying: keys.key(at: keys.count - 1))
    return slots
  }

  private static func isAscending(_ keys: KeyPage) -> Bool {
    for number in 1..<max(1, keys.count)
    where keys.key(at: number - 1).compare(to: keys.key(at: number)) >= 0 { return false }
    return true
  }

  private mutating func lookup(_ key: RawSpan, hash: UInt64) throws(IndexError) -> Slot? {
    // Runs are listed newest first: the first that has the key decides.
    for number in blocks.indices {
      let run = runs.runs[number]
      if let slot = try Self.lookup(key, hash, in: run, from: &blocks[number]) { return slot }
    }
    return nil
  }

  /// - Parameter block: the run's row of `blocks`, which the search moves on.
  private static func lookup(
    _ key: RawSpan, _ hash: UInt64, in run: SortedRun, from block: inout Int
  ) throws(IndexError) -> Slot? {
    if block >= 0 {
      for _ in 0..<blocksMost {
        guard block + 1 < run.blockCount,
          try run.isFirstKey(ofBlock: block + 1, { $0.compare(to: key) <= 0 })
        else { return try run.find(key, inBlock: block)?.slot }
        block += 1
      }
    }
    if run.hasReadHash(hash) {
      guard let found = try run.lookup(key, hash: hash) else { return nil }
      block = found.ordinal / RunLayout.keysPerBlock
      return found.slot
    }
    guard let number = try run.blockNumber(holding: key) else { return nil }
    block = number
    return try run.find(key, inBlock: number)?.slot
  }
}
