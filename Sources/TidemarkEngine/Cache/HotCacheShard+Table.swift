// The table of a shard, from hash to entry: linear probing, grown in place. And the ghost queue,
// which remembers keys that were evicted. Only writers, who hold the shard's lock, change words
// here, within `writing`, so that readers beside them start over.
extension HotCacheShard {
  private static let firstSlots = 64
  /// From so many slots on a shard takes huge pages: the first value that a store reads should not
  /// wait until the system has cleared megabytes.
  private static let slotsForHugePages = 1024

  var slots: Int { Int(words.load(slotsWord)) }

  /// Most entries of a table: a fifth of its slots stays empty, so that probing ends soon.
  static func entries(perSlots slots: Int) -> Int { slots / 5 * 4 }

  /// Adds a slot; there must be a free one.
  func insertSlot(_ slot: UInt64) {
    let slots = slots
    var index = Self.home(HotCacheEntry.tag(ofSlot: slot), slots)
    while words.load(table + index) != 0 {
      index += 1
      if index == slots { index = 0 }
    }
    words.store(table + index, slot)
  }

  /// The slot of the entry at a position.
  /// - Returns: its index in the words; nil where the entry was removed.
  func findSlot(tag: UInt64, position: Int) -> Int? {
    let slots = slots
    guard slots > 0 else { return nil }
    let sought = HotCacheEntry.slot(tag: tag, position: position, hits: 0)
    var index = Self.home(tag, slots)
    for _ in 0..<slots {
      let slot = words.load(table + index)
      if slot == 0 { return nil }
      if slot & ~HotCacheEntry.hitsMax == sought { return table + index }
      index += 1
      if index == slots { index = 0 }
    }
    return nil
  }

  /// Empties a slot and closes the gap: D. E. Knuth, The Art of Computer Programming 3,
  /// section 6.4, algorithm R.
  func removeSlot(at wordIndex: Int) {
    let slots = slots
    var hole = wordIndex - table
    var index = hole
    while true {
      index = index + 1 == slots ? 0 : index + 1
      let slot = words.load(table + index)
      if slot == 0 { break }
      let home = Self.home(HotCacheEntry.tag(ofSlot: slot), slots)
      let fromHome = index >= home ? index - home : index - home + slots
      let fromHole = index >= hole ? index - hole : index - hole + slots
      if fromHome >= fromHole {
        words.store(table + hole, slot)
        hole = index
      }
    }
    words.store(table + hole, 0)
  }

  /// Gives the table twice its slots and inserts a slot for every entry of the queues; removed ones
  /// have become gaps. Hits and ghosts are lost, which costs little while the cache still fills.
  /// - Returns: false when the table has the most slots already.
  func growTable(_ queues: HotCacheQueues) -> Bool {
    let new = min(max(Self.firstSlots, 2 * slots), layout.slots)
    guard new > slots else { return false }
    if layout.usesHugePages, slots < Self.slotsForHugePages, new >= Self.slotsForHugePages {
      // Small pages, which the table has, would keep the system from using a huge one.
      words.release(table, slots)
      words.useHugePages(table, layout.shardWords)
    }
    words.clear(table, new)
    words.clear(table + layout.ghost, new / 4)
    words.store(slotsWord, UInt64(new))
    insertSlots(of: queues.small, from: 0)
    insertSlots(of: queues.main, from: layout.main - layout.small)
    return true
  }

  private func insertSlots(of ring: HotCacheRing, from start: Int) {
    var position = ring.head
    var rest = ring.used
    while rest > 0 {
      let head = head(table + layout.small + start + position)
      if !head.isGap {
        insertSlot(HotCacheEntry.slot(tag: head.tag, position: start + position, hits: 0))
      }
      rest -= head.words
      position += head.words
      if position == ring.capacity { position = 0 }
    }
  }

  // MARK: - The ghost queue

  /// Remembers a key that leaves. Each word is a queue of four fingerprints; all of them together
  /// forget keys at about the age at which one long queue would.
  func rememberGhost(_ tag: UInt64) {
    let index = ghostIndex(tag)
    words.store(index, words.load(index) << 16 | Self.fingerprint(tag))
  }

  /// Whether a key left not long ago; then its fingerprint is removed.
  func forgetGhost(_ tag: UInt64) -> Bool {
    guard slots > 0 else { return false }
    let index = ghostIndex(tag)
    let queue = words.load(index)
    for shift in stride(from: UInt64(0), to: 64, by: 16)
    where (queue >> shift) & 0xffff == Self.fingerprint(tag) {
      words.store(index, queue & ~(0xffff << shift))
      return true
    }
    return false
  }

  private func ghostIndex(_ tag: UInt64) -> Int { table + layout.ghost + Self.home(tag, slots / 4) }

  /// Never 0, which is an empty place of a ghost queue.
  private static func fingerprint(_ tag: UInt64) -> UInt64 { max(1, tag & 0xffff) }
}
