/// Looks up keys that come in ascending order in the runs of an index.
///
/// Each is searched for from where the one before was found, in the order of the keys, as long as
/// few blocks lie between. Beyond it is looked up by its hash, unless that part of the table was
/// not read yet: hashes lead all over a run, and each place is a chunk to read, where the order of
/// the keys leads to one that holds the next keys, too. Keys in another order go by their hashes.
struct NearbyKeys {
  /// So many blocks are passed before a key is looked up by its hash.
  private static let blocksMost = 8

  private let runs: RunList
  /// Where the key before is, or would be, in each run; -1 for nowhere yet.
  private var blocks: [Int]
  /// The last key that was searched for in their order.
  private var last: [UInt8] = []

  init(_ runs: RunList) {
    self.runs = runs
    blocks = Array(repeating: -1, count: runs.runs.count)
  }

  /// Whether an index still has the runs that are looked into.
  func isCurrent(_ index: Index) -> Bool {
    runs.runs.elementsEqual(index.runs.runs, by: ===)
  }

  /// The newest slots of keys in the runs.
  mutating func slots(of keys: KeyPage, _ hashes: [UInt64]) throws(IndexError) -> [Slot?] {
    var slots: [Slot?] = []
    slots.reserveCapacity(keys.count)
    guard Self.isAscending(keys) else {
      runs.prefetch(hashes, keys: true)
      for number in 0..<keys.count {
        slots.append(try runs.lookup(keys.key(at: number), hash: hashes[number]))
      }
      return slots
    }
    guard keys.count > 0 else { return slots }
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
    where keys.key(at: number - 1).compare(to: keys.key(at: number)) >= 0 {
      return false
    }
    return true
  }

  private mutating func lookup(_ key: RawSpan, hash: UInt64) throws(IndexError) -> Slot? {
    for number in blocks.indices {
      let run = runs.runs[number]
      if let slot = try Self.lookup(key, hash, in: run, from: &blocks[number]) { return slot }
    }
    return nil
  }

  private static func lookup(
    _ key: RawSpan, _ hash: UInt64, in run: Image, from block: inout Int
  ) throws(IndexError) -> Slot? {
    if block >= 0 {
      for _ in 0..<blocksMost {
        guard block + 1 < run.blockCount, try run.isReached(block + 1, by: key) else {
          return try run.slot(of: key, inBlock: block)
        }
        block += 1
      }
    }
    if run.hasReadHash(hash) {
      guard let found = try run.lookup(key, hash: hash) else { return nil }
      block = found.ordinal / ImageLayout.keysPerBlock
      return found.slot
    }
    let behind = try run.rank(KeyCut(key: [UInt8](copying: key), place: .after))
    guard behind > 0 else { return nil }
    block = (behind - 1) / ImageLayout.keysPerBlock
    return try run.slot(of: key, inBlock: block)
  }
}

extension Image {
  /// Whether a key lies in a block or behind it.
  fileprivate func isReached(_ number: Int, by key: RawSpan) throws(IndexError) -> Bool {
    try isFirstKey(ofBlock: number) { $0.compare(to: key) <= 0 }
  }

  /// Whether the part of the hash table where a hash belongs was read already.
  fileprivate func hasReadHash(_ hash: UInt64) -> Bool {
    let buckets = header[.hash].count
    guard buckets > 0 else { return true }
    let place = ImageLayout.bucket(hash, of: buckets) * ImageLayout.bucketBytes
    return isLoaded(.hash, place, ImageLayout.bucketBytes)
  }

  /// The slot of a key that is in a certain block, if anywhere.
  fileprivate func slot(of key: RawSpan, inBlock number: Int) throws(IndexError) -> Slot? {
    try withBlock(number) { (block) throws(FormatError) in
      guard let position = try block.position(of: key) else { return nil }
      return try block.slot(position)
    }
  }
}
