/// Keys and their newest entries, for those who hold the writer's lock as well.
extension Reader {
  /// The newest entry of a key that is there; 0 for none. For a ``DerivedChange``, which holds the
  /// writer's lock, so that a damaged index is an error and is not made anew.
  package func newestEntry(ofKey key: RawSpan) throws(TidemarkError) -> UInt64 {
    let slot = try look { (index) throws(IndexError) in
      try index.lookup(key, hash: index.hash(key))
    }
    return slot.flatMap { $0.isDeleted ? nil : $0.sequence } ?? 0
  }

  /// Calls `body` with the index, for those who may hold the writer's lock: a damaged index is an
  /// error and is not made anew.
  private func look<R>(
    _ body: (Index) throws(IndexError) -> R
  ) throws(TidemarkError) -> R {
    do throws(IndexOrStoreError) {
      return try reading.withLock { (read: inout ReadState) throws(IndexOrStoreError) in
        do throws(TidemarkError) { try read.checkReadable() } catch { throw .store(error) }
        do throws(IndexError) { return try body(read.index) } catch { throw .index(error) }
      }
    } catch { throw TidemarkError(error) }
  }

  /// The index's answer for a key, to the writer, who makes a damaged index anew himself.
  func newestSlot(ofKey key: RawSpan) throws(IndexError) -> Slot? {
    try reading.withLock { (read: inout ReadState) throws(IndexError) in
      try read.index.lookup(key, hash: read.index.hash(key))
    }
  }

  /// The first keys with a prefix, or the last; for a ``DerivedChange`` as well.
  package func firstKeys(
    withPrefix prefix: [UInt8], limit: Int, fromEnd: Bool = false
  ) throws(TidemarkError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    try walk(prefix, fromEnd: fromEnd, most: limit) { (key, _) in keys.append([UInt8](copying: key))
    }
    return keys
  }

  /// How many keys begin with a prefix, and about how many bytes their entries have before they are
  /// compressed.
  package func extent(ofPrefix prefix: [UInt8]) throws(TidemarkError) -> (keys: Int, bytes: Int) {
    var (keys, bytes) = (0, 0)
    try walk(prefix) { (_, slot) in
      (keys, bytes) = (keys + 1, bytes + slot.size.approximateBytes)
    }
    return (keys, bytes)
  }

  private func walk(
    _ prefix: [UInt8], fromEnd: Bool = false, most limit: Int = .max,
    _ body: (RawSpan, Slot) -> Void
  ) throws(TidemarkError) {
    var page = KeyPage(room: min(limit, 64))
    let bounds = (KeyBound.including(prefix), KeyBound.afterPrefix(prefix))
    var from = fromEnd ? bounds.1 : bounds.0
    var left = limit
    while left > 0 {
      let isAtEnd = try look { (index) throws(IndexError) in
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

  /// How many keys there are; unlike ``liveKeys`` this is sure.
  package func countKeys() throws(TidemarkError) -> Int {
    try withIndex { (read) throws(IndexOrStoreError) in
      if read.staleBelow > 0 { throw .store(TidemarkError.possiblyStale(read.staleBelow)) }
      return read.index.liveKeys
    }
  }

  /// All labels in byte order, with how many keys carry each.
  package func labelCounts() throws(TidemarkError) -> [(label: [UInt8], count: Int)] {
    try withIndex { (read) throws(IndexOrStoreError) in
      if read.staleBelow > 0 { throw .store(TidemarkError.possiblyStale(read.staleBelow)) }
      do throws(IndexError) { return try read.index.labelCounts() } catch { throw .index(error) }
    }
  }

  /// The log and how large the index is, in one hold: it changes with every write.
  func figures() throws(TidemarkError) -> (LogSnapshot, index: (liveKeys: Int, bytes: Int)) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return (LogSnapshot(read), (read.index.liveKeys, read.index.memoryBytes))
    }
  }
}
