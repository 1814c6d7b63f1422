/// Keys and their newest entries by the index. But for two methods they may be called with the
/// writer's lock held: so they throw for a damaged index, whose rebuilding takes that lock.
extension Reader {
  /// The sequence of the newest entry of a key; 0 if the key is absent or deleted.
  package func newestEntry(ofKey key: RawSpan) throws(TidemarkError) -> UInt64 {
    let slot = try withIndexAsItIs { (index) throws(IndexError) in
      try index.lookup(key, hash: index.hash(key), maySearch: true)
    }
    return slot.flatMap { $0.isDeleted ? nil : $0.sequence } ?? 0
  }

  /// Calls `body` with the index under the readers' lock; damage is thrown.
  private func withIndexAsItIs<R>(
    _ body: (Index) throws(IndexError) -> R
  ) throws(TidemarkError) -> R {
    do throws(IndexOrStoreError) {
      return try reading.withLock { (read: inout ReadState) throws(IndexOrStoreError) in
        do throws(TidemarkError) { try read.checkReadable() } catch { throw .store(error) }
        do throws(IndexError) { return try body(read.index) } catch { throw .index(error) }
      }
    } catch { throw TidemarkError(error) }
  }

  /// The key's newest entry, for the writer, which rebuilds a damaged index itself.
  func newestSlot(ofKey key: RawSpan) throws(IndexError) -> Slot? {
    try reading.withLock { (read: inout ReadState) throws(IndexError) in
      try read.index.lookup(key, hash: read.index.hash(key))
    }
  }

  /// The first keys with a prefix, or the last.
  package func firstKeys(
    withPrefix prefix: [UInt8], limit: Int, fromEnd: Bool = false
  ) throws(TidemarkError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    try forEachKey(prefix, fromEnd: fromEnd, most: limit) { (key, _) in
      keys.append([UInt8](copying: key))
    }
    return keys
  }

  /// How many keys begin with a prefix, and about how many bytes their entries have uncompressed.
  package func extent(ofPrefix prefix: [UInt8]) throws(TidemarkError) -> (keys: Int, bytes: Int) {
    var (keys, bytes) = (0, 0)
    try forEachKey(prefix) { (_, slot) in
      (keys, bytes) = (keys + 1, bytes + slot.size.approximateBytes)
    }
    return (keys, bytes)
  }

  /// Calls `body`, without a lock, with keys and newest entries, a page at a time.
  private func forEachKey(
    _ prefix: [UInt8], fromEnd: Bool = false, most limit: Int = .max,
    _ body: (RawSpan, Slot) -> Void
  ) throws(TidemarkError) {
    var page = KeyPage(room: min(limit, 64))
    let bounds = (KeyBound.including(prefix), KeyBound.afterPrefix(prefix))
    var from = fromEnd ? bounds.1 : bounds.0
    var left = limit
    while left > 0 {
      let isAtEnd = try withIndexAsItIs { (index) throws(IndexError) in
        try index.page(
          from: from, upTo: fromEnd ? bounds.0 : bounds.1, descending: fromEnd,
          limit: min(1_024, left), into: &page)
      }
      for number in 0..<page.count { body(page.key(at: number), page.slot(at: number)) }
      if isAtEnd { return }
      left -= page.count
      from = page.resumption
    }
  }

  /// How many keys there are, for certain. Not with the writer's lock held.
  package func countKeys() throws(TidemarkError) -> Int {
    try withIndex { (read) throws(IndexOrStoreError) in
      if read.uncertainBelow > 0 { throw .store(TidemarkError.possiblyStale(read.uncertainBelow)) }
      return read.index.liveKeys
    }
  }

  /// All labels in byte order, with how many keys carry each. Not with the writer's lock held.
  package func labelCounts() throws(TidemarkError) -> [(label: [UInt8], count: Int)] {
    try withIndex { (read) throws(IndexOrStoreError) in
      if read.uncertainBelow > 0 { throw .store(TidemarkError.possiblyStale(read.uncertainBelow)) }
      do throws(IndexError) { return try read.index.labelCounts() } catch { throw .index(error) }
    }
  }

  /// The log and the size of the index, in one hold of the lock, so that they agree.
  func figures() throws(TidemarkError) -> (LogSnapshot, index: (liveKeys: Int, bytes: Int)) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return (LogSnapshot(read), (read.index.liveKeys, read.index.memoryBytes))
    }
  }
}
