// SAFETY: a buffer that a value is copied to belongs to one call: it is on the stack, on the heap,
// or scratch, which the call has that turned its flag from free to taken. `extendLifetime` keeps
// the cache, whose `deinit` unmaps the words, until a call has used them.

extension HotCache {
  /// Calls `body` with a key's value and sequence, and no lock held.
  ///
  /// Not generic: callers in other modules would ask the runtime for types with every hit.
  /// - Parameters:
  ///   - hash: the key's, by ``seed``.
  ///   - note: gets the note that is kept with the value, nil for none, before `body` is called.
  ///   - body: gets a copy of the value that ends with the call.
  /// - Returns: false when the key is not here.
  package func read(
    _ key: RawSpan, hash: UInt64, note: inout HotNote?,
    _ body: (RawSpan, UInt64) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    note = nil
    guard let words else { return false }
    defer { extendLifetime(self) }
    var length = 0
    let isHit = unsafe try withUnsafeTemporaryAllocation(
      byteCount: Self.stackBytes, alignment: 16
    ) { (buffer) throws(TidemarkError) -> Bool in
      switch unsafe look(words, key, hash, into: buffer) {
      case .miss: return false
      case .long(let found):
        length = found
        return false
      case .hit(let sequence, let found, let kept):
        note = kept
        try body(unsafe Self.span(buffer, found), sequence)
        return true
      }
    }
    // A value longer than the stack buffer is looked up once more, with a longer one.
    return length == 0 ? isHit : try readLong(words, key, hash, length, &note, body)
  }

  /// Calls `body` with a key's value and sequence; see ``read(_:hash:note:_:)``.
  package func read(
    _ key: RawSpan, hash: UInt64, _ body: (RawSpan, UInt64) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    var note: HotNote?
    return try read(key, hash: hash, note: &note, body)
  }

  /// The facts that stand behind the value of an entry; nil where there are none, or only values of
  /// more than 1 KiB.
  package func facts(_ key: RawSpan, hash: UInt64, ofEntry sequence: UInt64) -> [UInt8]? {
    guard let shard = shard(hash) else { return nil }
    defer { extendLifetime(self) }
    return unsafe withUnsafeTemporaryAllocation(byteCount: Self.stackBytes, alignment: 16) {
      buffer in
      let seen = shard.undisturbed {
        unsafe shard.read(key, HotCacheEntry.tag(hash), into: buffer)
      }
      guard case .hit(sequence, let length, let note?) = seen?.answer, note.factBytes > 0 else {
        return nil
      }
      return unsafe [UInt8](buffer[length..<(length + note.factBytes)])
    }
  }

  /// Copies the value of an entry for a scan. Not counted as a hit, which would keep what a scan
  /// reads in the cache.
  /// - Parameters:
  ///   - hash: the key's, by ``seed``.
  ///   - sequence: the entry's; a value of another entry of the key is not returned.
  ///   - bytes: gets the value from `start` on, a multiple of eight; grows.
  /// - Returns: its length; nil when it is not here, or longer than 1 KiB.
  func copy(
    _ key: RawSpan, hash: UInt64, ofEntry sequence: UInt64, into bytes: inout [UInt8], at start: Int
  ) -> Int? {
    guard let shard = shard(hash) else { return nil }
    defer { extendLifetime(self) }
    let tag = HotCacheEntry.tag(hash)
    if bytes.count < start + Self.stackBytes {
      // A scan whose values are not here allocates nothing.
      guard shard.undisturbed({ shard.find(key, tag) != nil }) ?? false else { return nil }
      let missing = max(bytes.count, Self.copiedBytes, start + Self.stackBytes - bytes.count)
      bytes.append(contentsOf: repeatElement(0, count: missing))
    }
    return unsafe bytes.withUnsafeMutableBytes { bytes in
      let buffer = unsafe UnsafeMutableRawBufferPointer(
        rebasing: bytes[start..<(start + Self.stackBytes)])
      let seen = shard.undisturbed { unsafe shard.read(key, tag, into: buffer) }
      guard case .hit(sequence, let length, _) = seen?.answer else { return nil }
      return length
    }
  }

  @inline(__always)
  func prefetchSlot(_ hash: UInt64) {
    shard(hash)?.prefetchSlot(HotCacheEntry.tag(hash))
    extendLifetime(self)
  }

  @inline(__always)
  func prefetchEntry(_ hash: UInt64) {
    shard(hash)?.prefetchEntry(HotCacheEntry.tag(hash))
    extendLifetime(self)
  }

  /// The least by which the buffer of a scan's values grows.
  private static let copiedBytes = 16 << 10
  /// Longer values are not copied to the stack.
  private static let stackBytes = 1024

  /// The shard of a hash; nil when the cache keeps nothing.
  @inline(__always)
  func shard(_ hash: UInt64) -> HotCacheShard? {
    words.map { HotCacheShard($0, layout, shardNumber(hash)) }
  }

  @inline(__always)
  private func shardNumber(_ hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash &>> 60) & (layout.shards &- 1)
  }

  @unsafe
  @_lifetime(immortal)
  @inline(__always)
  private static func span(_ buffer: UnsafeMutableRawBufferPointer, _ length: Int) -> RawSpan {
    let span = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<length]))
    return unsafe _overrideLifetime(span, copying: ())
  }

  /// Looks a key up, copies its value and counts the outcome: `.long` when it is looked up again.
  @unsafe
  private func look(
    _ words: AtomicWords, _ key: RawSpan, _ hash: UInt64, into buffer: UnsafeMutableRawBufferPointer
  ) -> HotCacheShard.Answer {
    let shard = HotCacheShard(words, layout, shardNumber(hash))
    let tag = HotCacheEntry.tag(hash)
    let seen =
      shard.undisturbed { unsafe shard.read(key, tag, into: buffer) }
      ?? locks[shard.number].withLock { _ in unsafe shard.read(key, tag, into: buffer) }
    let stripe = layout.stripe(ThreadStripe.number)
    switch seen.answer {
    case .miss: words.increment(stripe &+ 1)
    case .long: break
    case .hit:
      words.increment(stripe)
      if let found = seen.found { shard.countHit(found) }
    }
    return seen.answer
  }

  /// The same for a value that does not fit on the stack. A value that grows between look-ups each
  /// time, four times over, counts as absent.
  private func readLong(
    _ words: AtomicWords, _ key: RawSpan, _ hash: UInt64, _ length: Int, _ note: inout HotNote?,
    _ body: (RawSpan, UInt64) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    var length = length
    for _ in 0..<4 {
      let scratch = takeScratch(words, length)
      let buffer = unsafe self.buffer(words, length, scratch)
      defer {
        if let scratch {
          words.storeReleasing(layout.scratchFlag(scratch), HotCacheLayout.scratchFree)
        } else {
          unsafe buffer.deallocate()
        }
      }
      switch unsafe look(words, key, hash, into: buffer) {
      case .miss: return false
      case .long(let now): length = now
      case .hit(let sequence, let found, let kept):
        note = kept
        try body(unsafe Self.span(buffer, found), sequence)
        return true
      }
    }
    return false
  }

  /// Scratch buffer number `scratch`, or for nil one from the heap, for the caller to deallocate.
  @unsafe
  private func buffer(
    _ words: AtomicWords, _ length: Int, _ scratch: Int?
  ) -> UnsafeMutableRawBufferPointer {
    guard let scratch else {
      let size = AtomicWords.words(forBytes: length) * AtomicWords.wordBytes
      return .allocate(byteCount: size, alignment: 16)
    }
    return unsafe words.plainBytes(layout.scratch(scratch), layout.scratchWords)
  }

  /// Takes a scratch buffer for a value.
  /// - Returns: nil when it is too long or all are taken.
  private func takeScratch(_ words: AtomicWords, _ length: Int) -> Int? {
    guard length <= layout.scratchWords * AtomicWords.wordBytes else { return nil }
    for number in 0..<HotCacheLayout.scratchBuffers {
      let flag = layout.scratchFlag(number)
      let state = words.load(flag)
      if state != HotCacheLayout.scratchTaken,
        words.replace(flag, state, with: HotCacheLayout.scratchTaken)
      {
        return number
      }
    }
    return nil
  }
}
