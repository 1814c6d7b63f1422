// SAFETY: a look-up beside a writer may read any words; it stays inside the shard, writes no more
// than the buffer holds, and its result is thrown away.

/// One shard of a hot cache, with the keys of some hashes: a table from hash to entry, two queues
/// that hold the entries, and a ghost queue of evicted keys. A handle: ``HotCache`` owns the words.
///
/// Readers take no lock: they read the version, look the key up, copy the value and read the
/// version again. If the version has changed they start over. All words are atomic, so that this is
/// no data race by the rules of the language: H.-J. Boehm, "Can seqlocks get along with programming
/// language memory models?", MSPC 2012. Writers hold the shard's lock.
struct HotCacheShard {
  let words: AtomicWords
  let layout: HotCacheLayout
  let number: Int
  /// The control block: version, odd while a writer is at work; slots in the table; bytes in use;
  /// entries; epoch.
  let control: Int
  /// The first word, where the table begins.
  let table: Int

  @inline(__always)
  init(_ words: AtomicWords, _ layout: HotCacheLayout, _ number: Int) {
    self.words = words
    self.layout = layout
    self.number = number
    control = layout.control(number)
    table = layout.start(number)
  }

  private var version: Int { control }
  var slotsWord: Int { control &+ 1 }
  var bytesWord: Int { control &+ 2 }
  var countWord: Int { control &+ 3 }
  /// How often keys were removed, see ``HotCache/epoch(_:)``.
  var epochWord: Int { control &+ 4 }
  /// The end of what entries may touch.
  var end: Int { table &+ layout.shardWords }

  /// A slot that was found: its index in the words and its content.
  struct Found {
    var index: Int
    var slot: UInt64
    /// The entry's first word.
    var entry: Int
  }

  /// The outcome of a look-up.
  enum Answer {
    case miss
    /// The value is in the buffer.
    case hit(sequence: UInt64, length: Int, note: HotNote?)
    /// The buffer is too short.
    case long(length: Int)
  }

  // MARK: - For readers

  /// Runs a look-up until no writer has changed the shard meanwhile, four times at most.
  /// - Returns: nil when a writer was there each time: the caller then takes the lock.
  @inline(__always)
  func undisturbed<R>(_ lookUp: () -> R) -> R? {
    for _ in 0..<4 {
      let before = words.loadAcquiring(version)
      if before & 1 != 0 { continue }
      let result = lookUp()
      AtomicWords.fenceLoads()
      if words.load(version) == before { return result }
    }
    return nil
  }

  /// Finds a key's slot. Stays inside the shard whatever the words say.
  @inline(__always)
  func find(_ key: RawSpan, _ tag: UInt64) -> Found? {
    let slots = Int(truncatingIfNeeded: words.load(slotsWord))
    if slots == 0 { return nil }
    var index = Self.home(tag, slots)
    for _ in 0..<slots {
      let slot = words.load(table &+ index)
      if slot == 0 { return nil }
      if HotCacheEntry.tag(ofSlot: slot) == tag {
        let entry = table &+ layout.small &+ HotCacheEntry.position(ofSlot: slot)
        let start = entry &+ HotCacheEntry.headWords
        if start &+ AtomicWords.words(forBytes: key.byteCount) <= end,
          words.load(entry) & 0xffff == UInt64(key.byteCount), words.holds(key, at: start)
        {
          return Found(index: table &+ index, slot: slot, entry: entry)
        }
      }
      index &+= 1
      if index == slots { index = 0 }
    }
    return nil
  }

  /// Looks a key up and copies its value.
  @unsafe
  @inline(__always)
  func read(
    _ key: RawSpan, _ tag: UInt64, into buffer: UnsafeMutableRawBufferPointer
  ) -> (answer: Answer, found: Found?) {
    guard let found = find(key, tag) else { return (.miss, nil) }
    let head = head(found.entry)
    let length = head.valueLength
    if length > buffer.count { return (.long(length: length), found) }
    let noteStart =
      found.entry &+ HotCacheEntry.headWords &+ AtomicWords.words(forBytes: key.byteCount)
    let start = noteStart &+ head.noteWords
    let count = AtomicWords.words(forBytes: length)
    // Only words that a writer was changing give such a length: the look-up is thrown away.
    guard start &+ count <= end, count &<< 3 <= buffer.count else { return (.miss, nil) }
    unsafe words.read(start, count, into: buffer)
    guard head.hasNote else {
      return (.hit(sequence: head.sequence, length: length, note: nil), found)
    }
    let note = self.note(at: noteStart)
    let valueLength = length &- note.factBytes
    guard valueLength >= 0 else { return (.miss, nil) }
    let answer = Answer.hit(
      sequence: head.sequence, length: valueLength, note: note == .unknown ? nil : note)
    return (answer, found)
  }

  /// Counts a hit, up to three. Where the slot is another key's by now, that key gains the hit.
  @inline(__always)
  func countHit(_ found: Found) {
    if HotCacheEntry.hits(ofSlot: found.slot) < HotCacheEntry.hitsMax {
      _ = words.replace(found.index, found.slot, with: found.slot &+ 1)
    }
  }

  /// Cache lines of an entry that are prefetched: enough for a key and a value of common lengths.
  private static let linesAhead = 5
  private static let wordsPerLine = 8

  @inline(__always)
  func prefetchSlot(_ tag: UInt64) {
    let slots = Int(truncatingIfNeeded: words.load(slotsWord))
    if slots > 0 { words.prefetch(table &+ Self.home(tag, slots)) }
  }

  /// Prefetches the beginning of the first entry with a key's tag, which is most likely the key's.
  @inline(__always)
  func prefetchEntry(_ tag: UInt64) {
    let slots = Int(truncatingIfNeeded: words.load(slotsWord))
    if slots == 0 { return }
    let home = Self.home(tag, slots)
    for index in home..<min(home &+ Self.wordsPerLine, slots) {
      let slot = words.load(table &+ index)
      if slot == 0 { return }
      guard HotCacheEntry.tag(ofSlot: slot) == tag else { continue }
      let entry = table &+ layout.small &+ HotCacheEntry.position(ofSlot: slot)
      for line in 0..<Self.linesAhead { words.prefetch(entry &+ line &* Self.wordsPerLine) }
      return
    }
  }

  @inline(__always)
  func note(at start: Int) -> HotNote {
    HotNote(first: words.load(start), second: words.load(start &+ 1))
  }

  // MARK: - For writers

  /// Runs `change` with an odd version, so that readers beside it start over. With the lock held.
  func writing(_ change: () -> Void) {
    let before = words.load(version)
    words.store(version, before &+ 1)
    AtomicWords.fenceStores()
    change()
    words.storeReleasing(version, before &+ 2)
  }

  @inline(__always)
  func head(_ entry: Int) -> HotCacheEntry {
    HotCacheEntry(first: words.load(entry), second: words.load(entry &+ 1))
  }

  @inline(__always)
  static func home(_ tag: UInt64, _ slots: Int) -> Int {
    Int(truncatingIfNeeded: (tag &* UInt64(truncatingIfNeeded: slots)) &>> 32)
  }
}
