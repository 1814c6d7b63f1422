// SAFETY: the words are unmapped when nobody can call the cache any more; every method that uses
// them keeps the cache alive to its end.

/// A bounded cache of values by key, which every get looks into first. Split into shards by hash.
///
/// A hit takes no lock, moves nothing and allocates nothing: the value is copied (to the stack,
/// or to a scratch buffer when it is longer than 1 KiB), and a version tells whether a writer
/// changed the shard meanwhile. `body` then works on the copy, with no lock held: it may call the
/// cache, or the store, and take as long as it likes. Only values of more than 64 KiB, and more
/// than four long ones at a time, need a buffer from the heap.
///
/// Eviction is S3-FIFO's, see ``HotCacheShard``. Every put and delete removes its key, which raises
/// the *epoch* of the key's shard; a value that was read from the log is kept only if the epoch is
/// that from before the read. A *note* is what a caller keeps with a value, see ``HotNote``.
package final class HotCache: Sendable {
  /// The seed for `KeyHash.hash` of the keys.
  package let seed: UInt64
  let words: AtomicWords?
  let layout: HotCacheLayout
  let locks: [Lock<HotCacheQueues>]

  /// - Parameters:
  ///   - limitBytes: most bytes it takes, with keys, tables and all; below 16 KiB it keeps
  ///     nothing. Memory is taken as it fills.
  ///   - seed: a number that those who choose the keys do not know.
  package init(limitBytes: Int, seed: UInt64) {
    self.seed = seed
    let smallest = HotCacheLayout(fitting: HotCacheLayout.limitBytesMin)
    guard limitBytes >= HotCacheLayout.limitBytesMin else {
      layout = smallest
      words = nil
      locks = []
      return
    }
    let layout = HotCacheLayout(fitting: limitBytes)
    self.layout = layout
    words = AtomicWords(count: layout.words)
    locks = (0..<layout.shards).map { _ in Lock(HotCacheQueues(layout)) }
  }

  deinit { if let words { unsafe words.unmap() } }

  var isOn: Bool { words != nil }

  /// How often keys of a key's shard were removed. A caller that reads the epoch before it looks a
  /// value up in the index, and gives it to ``insert(_:hash:sequence:value:note:epoch:)``,
  /// cannot bring back a value that was replaced in between.
  func epoch(_ hash: UInt64) -> UInt64 {
    guard let shard = shard(hash) else { return 0 }
    defer { extendLifetime(self) }
    return shard.words.loadAcquiring(shard.epochWord)
  }

  /// Keeps a value, unless a newer one of the key is there or it is too long: with its key,
  /// more than an eighth of a shard, which is 220 KiB in 28 MiB.
  /// - Parameters:
  ///   - hash: the key's, by ``seed``.
  ///   - sequence: that of the entry that wrote the value.
  ///   - value: the value, and behind it as many bytes of facts as the note says.
  ///   - note: a note; `unknown` leaves room for one, see ``keep(_:_:hash:sequence:_:)``.
  ///   - epoch: what ``epoch(_:)`` said before the value was looked up; nil where nobody writes.
  package func insert(
    _ key: RawSpan, hash: UInt64, sequence: UInt64, value: RawSpan, note: HotNote? = nil,
    epoch: UInt64? = nil
  ) {
    guard let shard = shard(hash), HotCacheShard.words(of: key, value, note) <= layout.entryWords,
      sequence <= HotCacheEntry.sequenceMax, key.byteCount > 0, key.byteCount <= Limits.keyBytes
    else {
      // The key's older value must not outlive a newer one.
      remove(key, hash: hash)
      return
    }
    defer { extendLifetime(self) }
    locks[shard.number].withLock { queues in
      shard.writing {
        // Pairs with the fence of `remove`: either this sees the raised epoch, or `remove` sees the
        // odd version of `writing`, and waits for the lock to remove what is inserted here.
        AtomicWords.fence()
        if let epoch, shard.words.load(shard.epochWord) != epoch { return }
        shard.insert(
          key, tag: HotCacheEntry.tag(hash), sequence: sequence, value: value, note: note, &queues)
      }
    }
  }

  /// Adds a note to an entry that was inserted with room for one, if it is still here.
  /// - Parameters:
  ///   - sequence: the entry's.
  ///   - isCurrent: whether the note still holds; asked under the lock, where the key stays.
  func keep(
    _ note: HotNote, _ key: RawSpan, hash: UInt64, sequence: UInt64, _ isCurrent: () -> Bool
  ) {
    guard let shard = shard(hash) else { return }
    defer { extendLifetime(self) }
    locks[shard.number].withLock { _ in
      guard let found = shard.find(key, HotCacheEntry.tag(hash)), isCurrent() else { return }
      let head = shard.head(found.entry)
      let place = found.entry + HotCacheEntry.headWords + head.keyWords
      // A note that is there may tell of facts behind the value.
      guard head.sequence == sequence, head.hasNote, shard.note(at: place) == .unknown else {
        return
      }
      shard.writing { shard.write(note, at: place) }
    }
  }

  /// The epochs of all shards; none when the cache keeps nothing.
  func epochs() -> [UInt64] {
    guard let words else { return [] }
    defer { extendLifetime(self) }
    return (0..<layout.shards).map { number in
      words.loadAcquiring(HotCacheShard(words, layout, number).epochWord)
    }
  }

  /// Keeps a value that a scan has read, if its key is not here and nothing is evicted for it.
  /// - Parameters:
  ///   - key: the key; so are `sequence`, `value` and `note` those of
  ///     ``insert(_:hash:sequence:value:note:epoch:)``.
  ///   - epochs: what ``epochs()`` said before the entry was looked up.
  func fill(
    _ key: RawSpan, sequence: UInt64, value: RawSpan, note: HotNote? = nil, epochs: [UInt64]
  ) {
    let hash = KeyHash.hash(key, seed: seed)
    guard let shard = shard(hash), shard.number < epochs.count else { return }
    defer { extendLifetime(self) }
    let size = HotCacheShard.words(of: key, value, note)
    guard size <= layout.entryWords, sequence <= HotCacheEntry.sequenceMax, shard.hasRoom(for: size)
    else { return }
    let tag = HotCacheEntry.tag(hash)
    if let isHere = shard.undisturbed({ shard.find(key, tag) != nil }), isHere { return }
    locks[shard.number].withLock { queues in
      shard.writing {
        // As in `insert`. What was found without the lock may have changed.
        AtomicWords.fence()
        guard shard.words.load(shard.epochWord) == epochs[shard.number],
          shard.hasRoom(for: size), shard.find(key, tag) == nil
        else { return }
        shard.insert(
          key, tag: tag, sequence: sequence, value: value, note: note, &queues, goesToMain: true)
      }
    }
  }

  /// Removes a key, after its new entry is in the index. Takes no lock when the key is not here.
  package func remove(_ key: RawSpan, hash: UInt64) {
    guard let shard = shard(hash) else { return }
    defer { extendLifetime(self) }
    let tag = HotCacheEntry.tag(hash)
    // Raised first: an `insert` of an older value that the look-up misses sees the new epoch.
    shard.words.increment(shard.epochWord)
    AtomicWords.fence()
    if let isHere = shard.undisturbed({ shard.find(key, tag) != nil }), !isHere { return }
    locks[shard.number].withLock { queues in
      shard.writing { shard.remove(key, tag: tag, &queues) }
    }
  }

  /// Removes all keys and gives the memory of their values back.
  package func removeAll() {
    guard let words else { return }
    defer { extendLifetime(self) }
    for number in 0..<layout.shards {
      let shard = HotCacheShard(words, layout, number)
      words.increment(shard.epochWord)
      AtomicWords.fence()
      locks[number].withLock { queues in shard.writing { shard.removeAll(&queues) } }
    }
  }

  /// Bytes of memory in use, to within a page at the end of each queue; at most the limit.
  package var bytes: Int {
    guard let words else { return 0 }
    defer { extendLifetime(self) }
    var sum = layout.fixedBytes
    for number in 0..<layout.shards {
      sum += Int(words.load(HotCacheShard(words, layout, number).bytesWord))
    }
    for number in 0..<HotCacheLayout.scratchBuffers
    where words.load(layout.scratchFlag(number)) != HotCacheLayout.scratchUntouched {
      sum += layout.scratchWords * AtomicWords.wordBytes
    }
    return sum
  }

  package var count: Int {
    guard let words else { return 0 }
    defer { extendLifetime(self) }
    return (0..<layout.shards).reduce(0) { sum, number in
      sum + Int(words.load(HotCacheShard(words, layout, number).countWord))
    }
  }

  /// How many look-ups found their key and how many did not.
  package var statistics: (hits: UInt64, misses: UInt64) {
    guard let words else { return (0, 0) }
    defer { extendLifetime(self) }
    var sum: (hits: UInt64, misses: UInt64) = (0, 0)
    for number in 0..<HotCacheLayout.stripes {
      sum.hits += words.load(layout.stripe(number))
      sum.misses += words.load(layout.stripe(number) + 1)
    }
    return sum
  }
}
