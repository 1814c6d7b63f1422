/// The two queues of a shard, behind its lock. Positions count from the small queue's first word.
struct HotCacheQueues: Sendable {
  var small: HotCacheRing
  var main: HotCacheRing
  var count = 0

  init(_ layout: HotCacheLayout) {
    small = HotCacheRing(capacity: layout.main - layout.small)
    main = HotCacheRing(capacity: layout.mainWords)
  }
}

// The work of writers, who hold the shard's lock and run it within `writing`. Eviction is S3-FIFO:
// Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023. New
// keys enter the small queue. At its end those with two hits go on to the main queue, others are
// evicted, and remembered as ghosts: such a key enters the main queue at once when it is inserted
// again. At the end of the main queue an entry with hits goes back to the tail and loses one hit.
// So a scan evicts entries of the small queue only. Unlike in the paper, while the main queue has
// room, entries without hits go on to it too: each queue has its own memory here.
extension HotCacheShard {
  /// Most entries that go back to the tail for one insertion, so that it takes bounded time.
  private static let secondChances = 64

  private var mainStart: Int { layout.main - layout.small }

  /// Whether an entry would fit into the main queue if all words ever used in both queues were
  /// there: then nothing is evicted for it. May be asked without the lock.
  func hasRoom(for size: Int) -> Bool {
    let slots = self.slots
    let touched =
      Int(truncatingIfNeeded: words.load(bytesWord)) / AtomicWords.wordBytes - slots - slots / 4
    return touched + size <= layout.mainWords
      && words.load(countWord) < UInt64(Self.entries(perSlots: layout.slots))
  }

  /// The words that an entry takes.
  static func words(of key: RawSpan, _ value: RawSpan, _ note: HotNote? = nil) -> Int {
    HotCacheEntry.headWords + AtomicWords.words(forBytes: key.byteCount)
      + (note == nil ? 0 : HotNote.words) + AtomicWords.words(forBytes: value.byteCount)
  }

  /// Keeps a value, unless a newer one of the key is there.
  /// - Parameter startsInMain: whether it enters the main queue at once.
  func insert(
    _ key: RawSpan, tag: UInt64, sequence: UInt64, value: RawSpan, note: HotNote?,
    _ queues: inout HotCacheQueues, goesToMain startsInMain: Bool = false
  ) {
    let new = HotCacheEntry(
      sequence: sequence, tag: tag, keyLength: key.byteCount, valueLength: value.byteCount,
      hasNote: note != nil)
    var goesToMain = startsInMain
    if let found = find(key, tag) {
      let old = head(found.entry)
      if old.sequence > sequence { return }
      // The same value is there, and its note is not to be lost.
      if old.sequence == sequence, old.hasNote, note == nil || note == .unknown { return }
      if old.words == new.words {
        write(new, key, note, value, at: found.entry)
        return
      }
      goesToMain = HotCacheEntry.position(ofSlot: found.slot) >= mainStart
      erase(found, &queues)
    }
    if forgetGhost(tag) { goesToMain = true }
    makeSlot(&queues)
    let position = goesToMain ? appendToMain(new.words, &queues) : appendToSmall(new.words, &queues)
    write(new, key, note, value, at: table + layout.small + position)
    insertSlot(HotCacheEntry.slot(tag: tag, position: position, hits: 0))
    queues.count += 1
    charge(queues)
  }

  func remove(_ key: RawSpan, tag: UInt64, _ queues: inout HotCacheQueues) {
    guard let found = find(key, tag) else { return }
    // A removed key mostly has a new value: it goes back to the main queue when that is read.
    if HotCacheEntry.position(ofSlot: found.slot) >= mainStart { rememberGhost(tag) }
    erase(found, &queues)
    charge(queues)
  }

  /// Removes everything and gives the memory back.
  func removeAll(_ queues: inout HotCacheQueues) {
    queues = HotCacheQueues(layout)
    words.store(slotsWord, 0)
    words.release(table, layout.shardWords)
    charge(queues)
  }

  /// Publishes the bytes and the entries in use, for those who ask without the lock.
  private func charge(_ queues: HotCacheQueues) {
    let touched = slots + slots / 4 + queues.small.touched + queues.main.touched
    words.store(bytesWord, UInt64(touched * AtomicWords.wordBytes))
    words.store(countWord, UInt64(queues.count))
  }

  private func write(
    _ head: HotCacheEntry, _ key: RawSpan, _ note: HotNote?, _ value: RawSpan, at entry: Int
  ) {
    words.store(entry, head.first)
    words.store(entry + 1, head.second)
    words.write(key, at: entry + HotCacheEntry.headWords)
    let start = entry + HotCacheEntry.headWords + head.keyWords
    if let note { write(note, at: start) }
    words.write(value, at: start + head.noteWords)
  }

  func write(_ note: HotNote, at start: Int) {
    words.store(start, note.first)
    words.store(start + 1, note.second)
  }

  /// Turns an entry into a gap, which goes when it comes to the head of its queue.
  private func erase(_ found: Found, _ queues: inout HotCacheQueues) {
    removeSlot(at: found.index)
    words.store(found.entry, HotCacheEntry.gap(head(found.entry).words))
    queues.count -= 1
  }

  /// Makes room for one more slot: grows the table, or evicts where that is as large as it may be.
  private func makeSlot(_ queues: inout HotCacheQueues) {
    var chances = Self.secondChances
    while queues.count >= Self.entries(perSlots: slots), !growTable(queues) {
      if queues.small.used * 8 >= queues.small.used + queues.main.used {
        evictFromSmall(&queues)
      } else {
        evictFromMain(&queues, &chances)
      }
    }
  }

  private func appendToSmall(_ size: Int, _ queues: inout HotCacheQueues) -> Int {
    while true {
      if let position = append(size, to: &queues.small, from: 0) { return position }
      evictFromSmall(&queues)
    }
  }

  private func appendToMain(_ size: Int, _ queues: inout HotCacheQueues) -> Int {
    var chances = Self.secondChances
    while true {
      if let position = append(size, to: &queues.main, from: mainStart) { return position }
      evictFromMain(&queues, &chances)
    }
  }

  /// Finds a place in a queue, which begins at `start`; nil when its head must be removed first.
  private func append(_ size: Int, to ring: inout HotCacheRing, from start: Int) -> Int? {
    guard let place = ring.append(size) else { return nil }
    if let gap = place.gap {
      words.store(table + layout.small + start + gap, HotCacheEntry.gap(ring.capacity - gap))
    }
    return start + place.position
  }

  /// Removes the oldest entry of the small queue: it goes on to the main queue or is evicted.
  private func evictFromSmall(_ queues: inout HotCacheQueues) {
    let position = queues.small.head
    let head = head(table + layout.small + position)
    queues.small.removeHead(head.words)
    guard !head.isGap, let index = findSlot(tag: head.tag, position: position) else { return }
    let hits = HotCacheEntry.hits(ofSlot: words.load(index))
    let isFull = queues.count >= Self.entries(perSlots: layout.slots)
    guard hits > 1 || (!isFull && queues.main.hasRoom(for: head.words)) else {
      removeSlot(at: index)
      rememberGhost(head.tag)
      queues.count -= 1
      return
    }
    let target = appendToMain(head.words, &queues)
    move(position, to: target, head)
    // The main queue may have evicted, which moves slots of the table.
    guard let index = findSlot(tag: head.tag, position: position) else { return }
    words.store(index, HotCacheEntry.slot(tag: head.tag, position: target, hits: 0))
  }

  /// Removes the oldest entry of the main queue: it goes back to the tail or is evicted.
  private func evictFromMain(_ queues: inout HotCacheQueues, _ chances: inout Int) {
    let position = mainStart + queues.main.head
    let head = head(table + layout.small + position)
    queues.main.removeHead(head.words)
    guard !head.isGap, let index = findSlot(tag: head.tag, position: position) else { return }
    let hits = HotCacheEntry.hits(ofSlot: words.load(index))
    guard hits > 0, chances > 0,
      let target = append(head.words, to: &queues.main, from: mainStart)
    else {
      removeSlot(at: index)
      queues.count -= 1
      return
    }
    chances -= 1
    move(position, to: target, head)
    words.store(index, HotCacheEntry.slot(tag: head.tag, position: target, hits: hits - 1))
  }

  /// Copies an entry that was removed from its ring; nothing has been written over it yet. Where
  /// both ranges overlap the target is the lower one, as `copy` demands.
  private func move(_ source: Int, to target: Int, _ head: HotCacheEntry) {
    let start = table + layout.small
    words.copy(from: start + source, to: start + target, head.words)
  }
}
