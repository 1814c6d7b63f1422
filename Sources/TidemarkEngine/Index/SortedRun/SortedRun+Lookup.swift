// SAFETY: the loads stand inside a bucket or table whose length was checked just before.

// Point look-ups in a sorted run: its hash table leads to the ordinal of a key (its rank in byte
// order), and 16 keys in a row make a block, where the key and its slot stand. See `RunLayout`.
extension SortedRun {
  /// A key's place in the run and its slot.
  package struct Found: Sendable {
    /// The rank of the key in byte order.
    package var ordinal: Int
    package var slot: Slot
  }

  /// Finds a key; nil if the run does not have it.
  ///
  /// A look-up by the hash table reads a random bucket, which costs a read of the disk unless the
  /// bucket is in memory. A binary search over the samples reads no bucket, but always a block of
  /// keys, which the table spares a key that the run does not have. So gets search at first, until
  /// the time that the table would save them has paid for reading it; puts, whose keys are often
  /// new, use the table at once.
  /// - Parameters:
  ///   - hash: the key's hash under the seed in the header.
  ///   - maySearch: whether the caller is a get.
  package func lookup(
    _ key: RawSpan, hash: UInt64, maySearch: Bool = false
  ) throws(IndexError) -> Found? {
    if maySearch, !hasReadHash(hash), searches.value < searchesBeforeHash {
      searches.raise()
      guard let number = try blockNumber(holding: key) else { return nil }
      return try find(key, inBlock: number)
    }
    return try probe(hash) { (ordinal) throws(IndexError) in
      try slot(ordinal, ifKeyIs: key).map { Found(ordinal: ordinal, slot: $0) }
    }
  }

  /// To read a chunk of the table takes as long as so many searches take longer than its answers.
  private var searchesBeforeHash: UInt64 {
    UInt64(16 * RunLayout.chunks(dataBytes: header[.hash].bytes))
  }

  /// Whether the bucket of a hash is in memory, or there is no table at all.
  func hasReadHash(_ hash: UInt64) -> Bool {
    let buckets = header[.hash].count
    guard buckets > 0 else { return true }
    let place = RunLayout.bucket(hash, of: buckets) * RunLayout.bucketBytes
    return isLoaded(.hash, place, RunLayout.bucketBytes)
  }

  /// Finds a key that the run has in this block or not at all.
  func find(_ key: RawSpan, inBlock number: Int) throws(IndexError) -> Found? {
    try withBlock(number) { (block) throws(FormatError) in
      guard let position = try block.position(of: key) else { return nil }
      let ordinal = number * RunLayout.keysPerBlock + position
      return Found(ordinal: ordinal, slot: try block.slot(position))
    }
  }

  /// Whether the slot of some key has this sequence, and the entry is no touch. A sequence belongs
  /// to one key, so the slot decides and no key is read.
  /// - Parameter hash: the hash of the key of that entry.
  func holds(_ sequence: UInt64, hash: UInt64) throws(IndexError) -> Bool {
    try probe(hash) { (ordinal) throws(IndexError) in
      let slot = try slot(at: ordinal)
      return slot.sequence == sequence ? !slot.size.isTouched : nil
    } ?? false
  }

  /// Calls `body` with each ordinal that the hash table has for a hash, until `body` gives an
  /// answer. Keys with other hashes may be among them: the table has only 8 bits of each.
  @inline(__always)
  private func probe<Answer>(
    _ hash: UInt64, _ body: (_ ordinal: Int) throws(IndexError) -> Answer?
  ) throws(IndexError) -> Answer? {
    let buckets = header[.hash].count
    guard buckets > 0 else { return nil }
    var bucket = RunLayout.bucket(hash, of: buckets)
    // The bound ends the search in a damaged table whose buckets all run over.
    for _ in 0...header.longestProbe {
      let bytes = try self.bytes(.hash, bucket * RunLayout.bucketBytes, RunLayout.bucketBytes)
      let used = Int(Self.byte(bytes, RunLayout.bucketCount))
      guard used <= RunLayout.entriesPerBucket else { throw damage(.hash, bucket * 64) }
      var matches = Self.matches(bytes, tag: UInt8(truncatingIfNeeded: hash))
      while matches != 0 {
        let entry = matches.trailingZeroBitCount
        matches &= matches - 1
        if entry >= used { break }
        if let answer = try body(Int(Self.ordinal(bytes, entry))) { return answer }
      }
      if Self.byte(bytes, RunLayout.bucketRunsOver) == 0 { return nil }
      bucket += 1
      if bucket == buckets { bucket = 0 }
    }
    return nil
  }

  /// Asks the processor for the memory that ``holds(_:hash:)`` will need for some keys, so that all
  /// wait at once. Skips what is not in memory, and damage: the look-up meets both.
  /// - Parameter keys: whether ``lookup(_:hash:)`` will come, which needs the keys' bytes, too.
  func prefetch(_ hashes: [UInt64], keys: Bool) {
    let buckets = header[.hash].count
    guard buckets > 0 else { return }
    for hash in hashes {
      prefetch(
        .hash, RunLayout.bucket(hash, of: buckets) * RunLayout.bucketBytes,
        RunLayout.bucketBytes)
    }
    var ordinals: [Int] = []
    ordinals.reserveCapacity(hashes.count)
    for hash in hashes {
      let place = RunLayout.bucket(hash, of: buckets) * RunLayout.bucketBytes
      guard isLoaded(.hash, place, RunLayout.bucketBytes),
        let bytes = try? self.bytes(.hash, place, RunLayout.bucketBytes)
      else { continue }
      let matches = Self.matches(bytes, tag: UInt8(truncatingIfNeeded: hash))
      guard matches != 0, matches.trailingZeroBitCount < RunLayout.entriesPerBucket else {
        continue
      }
      let ordinal = Int(Self.ordinal(bytes, matches.trailingZeroBitCount))
      prefetchOffset(of: ordinal)
      ordinals.append(ordinal)
    }
    for ordinal in ordinals {
      if keys {
        prefetchBlock(of: ordinal)
      } else {
        prefetchColumns(ofBlock: ordinal / RunLayout.keysPerBlock)
      }
    }
  }

  /// Asks the processor for the offset of the block of a key.
  func prefetchOffset(of ordinal: Int) {
    let number = ordinal / RunLayout.keysPerBlock
    prefetch(.blockOffsets, number * RunLayout.offsetBytes, 2 * RunLayout.offsetBytes)
  }

  /// Asks the processor for the block of a key, if its offset has been read.
  func prefetchBlock(of ordinal: Int) {
    let number = ordinal / RunLayout.keysPerBlock
    guard
      isLoaded(.blockOffsets, number * RunLayout.offsetBytes, 2 * RunLayout.offsetBytes),
      let place = try? blockRange(number)
    else { return }
    prefetch(.blocks, place.start, place.end - place.start)
  }

  /// Prefetches the packed slots at the start of a block into the processor's cache; does nothing
  /// if the block's offset is not in memory yet, which a look-up reads from the file.
  func prefetchColumns(ofBlock number: Int) {
    guard
      isLoaded(.blockOffsets, number * RunLayout.offsetBytes, 2 * RunLayout.offsetBytes),
      let place = try? blockRange(number)
    else { return }
    prefetch(.blocks, place.start, min(RunLayout.usualColumns, place.end - place.start))
  }

  func prefetch(_ section: RunLayout.Section, _ offset: Int, _ count: Int) {
    guard isLoaded(section, offset, count), let bytes = try? bytes(section, offset, count) else {
      return
    }
    bytes.prefetch()
  }

  private func slot(at ordinal: Int) throws(IndexError) -> Slot {
    guard ordinal < count else { throw damage(.hash) }
    return try withBlock(ordinal / RunLayout.keysPerBlock) { (block) throws(FormatError) in
      try block.slot(ordinal % RunLayout.keysPerBlock)
    }
  }

  private func slot(_ ordinal: Int, ifKeyIs key: RawSpan) throws(IndexError) -> Slot? {
    guard ordinal < count else { throw damage(.hash) }
    return try withBlock(ordinal / RunLayout.keysPerBlock) { (block) throws(FormatError) in
      block.bytes.prefetch()
      let position = ordinal % RunLayout.keysPerBlock
      return try block.holds(key, at: position) ? try block.slot(position) : nil
    }
  }

  var blockCount: Int { header[.blockOffsets].count }

  @_lifetime(borrow self)
  @inline(__always)
  func block(_ number: Int) throws(IndexError) -> RunBlock {
    let (start, end) = try blockRange(number)
    let keys = min(RunLayout.keysPerBlock, count - number * RunLayout.keysPerBlock)
    let bytes = try bytes(.blocks, start, end - start)
    do throws(FormatError) { return try RunBlock(bytes, count: keys) } catch {
      throw blockDamage(number)
    }
  }

  @inline(__always)
  func blockRange(_ number: Int) throws(IndexError) -> (start: Int, end: Int) {
    let offsets = try bytes(
      .blockOffsets, number * RunLayout.offsetBytes, 2 * RunLayout.offsetBytes)
    let start = Self.offset(offsets, 0)
    let end = Self.offset(offsets, RunLayout.offsetBytes)
    let keys = min(RunLayout.keysPerBlock, count - number * RunLayout.keysPerBlock)
    guard start <= end, end - start <= RunLayout.longestBlock,
      end - start >= RunLayout.leastBlock(keys: keys)
    else { throw damage(.blockOffsets, number * RunLayout.offsetBytes) }
    return (start, end)
  }

  /// Calls `body` with a block; what does not follow the format there is damage to the sorted run.
  @inline(__always)
  func withBlock<R>(
    _ number: Int, _ body: (borrowing RunBlock) throws(FormatError) -> R
  ) throws(IndexError) -> R {
    let block = try block(number)
    do throws(FormatError) { return try body(block) } catch { throw blockDamage(number) }
  }

  /// Whether the first key of a block, which alone is stored whole, meets a condition.
  @inline(__always)
  func isFirstKey(ofBlock number: Int, _ isWanted: (RawSpan) -> Bool) throws(IndexError) -> Bool {
    try withBlock(number) { (block) throws(FormatError) in
      var walk = block.walk
      try walk.next()
      return isWanted(walk.rest)
    }
  }

  /// The error for a block that does not follow its format.
  func blockDamage(_ number: Int) -> IndexError {
    guard let offsets = try? bytes(.blockOffsets, number * RunLayout.offsetBytes, 5) else {
      return damage(.blockOffsets)
    }
    return damage(.blocks, Self.offset(offsets, 0))
  }

  /// A u40; five bytes from `position` on must be there.
  @inline(__always)
  static func offset(_ bytes: RawSpan, _ position: Int) -> Int {
    precondition(position >= 0 && position <= bytes.byteCount - RunLayout.offsetBytes)
    return unsafe Int(bytes.load32(position)) | Int(bytes.load8(position + 4)) << 32
  }

  @inline(__always)
  private static func byte(_ bucket: RawSpan, _ position: Int) -> UInt8 {
    precondition(bucket.byteCount == RunLayout.bucketBytes)
    return unsafe bucket.load8(position)
  }

  @inline(__always)
  private static func ordinal(_ bucket: RawSpan, _ entry: Int) -> UInt32 {
    precondition(bucket.byteCount == RunLayout.bucketBytes)
    return unsafe bucket.load32(RunLayout.bucketOrdinals + 4 * entry)
  }

  /// A bit per entry of a bucket, set if its tag is the one given, also of unused entries.
  @inline(__always)
  private static func matches(_ bucket: RawSpan, tag: UInt8) -> UInt32 {
    precondition(bucket.byteCount == RunLayout.bucketBytes)
    let (low, high) = unsafe (bucket.load64(0), bucket.load32(8))
    let wanted = UInt64(tag) &* 0x0101_0101_0101_0101
    return bits(ofZeroBytes: low ^ wanted) | (bits(ofZeroBytes: UInt64(high) ^ wanted) & 0xf) << 8
  }

  /// A bit per byte of a word, set where the byte is zero.
  @inline(__always)
  private static func bits(ofZeroBytes word: UInt64) -> UInt32 {
    let low7: UInt64 = 0x7f7f_7f7f_7f7f_7f7f
    let zeros = ~(((word & low7) &+ low7) | word | low7)
    // Brings bit 7 of each byte together in the highest byte, in order.
    return UInt32(truncatingIfNeeded: ((zeros >> 7) &* 0x0102_0408_1020_4080) >> 56)
  }
}
