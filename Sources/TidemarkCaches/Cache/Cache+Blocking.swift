public import TidemarkEngine

extension Cache {
  /// The synchronous forms of a cache's writes, which commit on the thread that calls them.
  public var blocking: Blocking { Blocking(cache: self) }

  /// The synchronous forms of a cache's writes; each blocks the calling thread until it is
  /// committed.
  public struct Blocking: Sendable {
    /// The cache that these calls write to.
    public let cache: Cache

    /// Keeps a value that the server has sent; see
    /// ``Cache/put(_:_:labels:hash:maxAge:attachment:durability:)``.
    public func put(
      _ key: some BytesConvertible, _ value: Value, labels: [EntryLabel] = [],
      hash: [UInt8]? = nil, maxAge: Duration? = nil, durability: Durability? = nil
    ) throws(TidemarkError) {
      _ = try cache.store.commitBlocking(
        try cache.batch(key, cache.encode(value), labels, hash, maxAge), durability)
    }

    /// Records that the server's value is unchanged; see
    /// ``Cache/touch(_:hash:maxAge:durability:)``.
    /// - Returns: false when there is no such entry; then nothing is written.
    @discardableResult
    public func touch(
      _ key: some BytesConvertible, hash: [UInt8]? = nil, maxAge: Duration? = nil,
      durability: Durability? = nil
    ) throws(TidemarkError) -> Bool {
      guard let batch = try cache.touchBatch(key, hash, maxAge) else { return false }
      return try !cache.store.commitBlocking(batch, durability).sequences.isEmpty
    }

    /// Marks entries as stale; see ``Cache/markStale(keys:)``.
    public func markStale(keys: [Key]) throws(TidemarkError) {
      _ = try cache.store.commitBlocking(try cache.staleBatch(keys), nil)
    }

    /// Marks the entries whose labels meet a filter as stale.
    public func markStale(labels: LabelFilter) throws(TidemarkError) {
      _ = try cache.store.commitBlocking(try cache.staleBatch(labels: labels), nil)
    }

    /// Removes the entry of a key from the cache; see ``Cache/remove(_:durability:)``.
    /// - Returns: false when there is no such entry.
    @discardableResult
    public func remove(
      _ key: some BytesConvertible, durability: Durability? = nil
    ) throws(TidemarkError) -> Bool {
      try !cache.store.commitBlocking(try cache.removal(of: key), durability).sequences.isEmpty
    }

    /// Removes the entries of several keys from the cache; see ``Cache/remove(keys:durability:)``.
    /// - Returns: how many of them were there.
    @discardableResult
    public func remove(
      keys: [Key], durability: Durability? = nil
    ) throws(TidemarkError) -> Int {
      let batch = try cache.removal(of: keys)
      return min(
        batch.count, try cache.store.commitBlocking(batch, durability).sequences.count)
    }

    /// Removes all entries, or those whose labels meet a filter, and clears their bytes from the
    /// disk; see ``Cache/removeAll(labels:durability:)``.
    public func removeAll(
      labels: LabelFilter = .everything, durability: Durability? = nil
    ) throws(TidemarkError) {
      _ = try cache.store.commitBlocking(try cache.removal(labels: labels), durability)
      try cache.eraseGivenUp()
    }

    /// Removes entries that have been stale for longer than a duration.
    /// - Returns: how many there were.
    @discardableResult
    public func removeStale(
      for duration: Duration = .zero, durability: Durability? = nil
    ) throws(TidemarkError) -> Int {
      let batch = try cache.removal(staleFor: duration)
      return min(
        batch.count, try cache.store.commitBlocking(batch, durability).sequences.count)
    }
  }
}
