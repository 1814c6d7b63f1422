// SAFETY: what a disturbed look-up reads may be anything; it stays inside the shard, writes no
// more than the buffer holds, and is thrown away.

/// One part of a hot cache: a table, two queues and a ghost queue, for the keys of some hashes.
///
/// Readers take no lock: they read the version, look the key up, copy the value and read the
/// version again. If a writer was there in between they know nothing and start over. All words
/// are atomic, so that this is no data race by the rules of the language: H.-J. Boehm, "Can
/// seqlocks get along with programming language memory models?", MSPC 2012. Writers hold the
/// shard's lock.
struct HotCacheShard {
  let words: AtomicWords
  let layout: HotCacheLayout
  /// The control block: version, odd while a writer is at work; slots in the table; bytes
  /// charged; entries; how often a key was forgotten.
  let control: Int
  /// The first word, where the table begins.
  let table: Int

  @inline(__always)
  init(_ words: AtomicWords, _ layout: HotCacheLayout, _ number: Int) {
    self.words = words
    self.layout = layout
    control = layout.control(number)
    table = layout.start(number)
  }

  private var version: Int { control }
  var slotsWord: Int { control &+ 1 }
  var bytesWord: Int { control &+ 2 }
  var countWord: Int { control &+ 3 }
  /// How often a key was forgotten.
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

  /// The answer that a reader saw.
  enum Answer {
    case miss
    /// The value is in the buffer.
    case hit(sequence: UInt64, length: Int, note: HotNote?)
    /// The buffer is too short.
    case long(length: Int)
  }

  // MARK: - For readers

  /// Runs a look-up that no writer disturbed.
  /// - Returns: nil when writers were there each time; the caller then takes the lock.
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

  /// Finds a key's slot. Reads inside the shard whatever the words say.
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
        if holds(key, entry) {
          return Found(index: table &+ index, slot: slot, entry: entry)
        }
      }
      index &+= 1
      if index == slots { index = 0 }
    }
    return nil
  }

  @inline(__always)
  private func holds(_ key: RawSpan, _ entry: Int) -> Bool {
    let start = entry &+ HotCacheEntry.headWords
    guard start &+ AtomicWords.words(forBytes: key.byteCount) <= end else { return false }
    return words.load(entry) & 0xffff == UInt64(key.byteCount) && words.holds(key, at: start)
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
    // Only a look-up that was disturbed can get here with such a length; it is thrown away.
    guard start &+ count <= end, count &<< 3 <= buffer.count else { return (.miss, nil) }
    unsafe words.read(start, count, into: buffer)
    var note: HotNote?
    if head.hasNote {
      note = HotNote(first: words.load(noteStart), second: words.load(noteStart &+ 1))
      if note == .unknown { note = nil }
    }
    return (.hit(sequence: head.sequence, length: length, note: note), found)
  }

  /// Counts a hit, up to three. The slot may be another's by now: then that one gains a hit.
  @inline(__always)
  func countHit(_ found: Found) {
    if HotCacheEntry.hits(ofSlot: found.slot) < HotCacheEntry.hitsMax {
      _ = words.replace(found.index, found.slot, with: found.slot &+ 1)
    }
  }

  /// Lines of memory that an entry's beginning has: a key and a value of common lengths.
  private static let linesAhead = 5
  private static let wordsPerLine = 8

  /// Asks the processor for the slot of a key.
  @inline(__always)
  func prefetchSlot(_ tag: UInt64) {
    let slots = Int(truncatingIfNeeded: words.load(slotsWord))
    if slots > 0 { words.prefetch(table &+ Self.home(tag, slots)) }
  }

  /// Asks the processor for the beginning of what is most likely a key's entry.
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

  // MARK: - For writers

  /// Makes readers start over that run beside `change`.
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
