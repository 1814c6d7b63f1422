public import TidemarkEngine

extension Cache {
  /// Keeps a value that the server has sent. When the cache is full, the least recently used
  /// entries make room in the same commit.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - value: the value.
  ///   - labels: up to 64.
  ///   - hash: a validator hash, up to 64 bytes, such as an ETag.
  ///   - maxAge: for how long the value is valid from now, in whole seconds, rounded up; nil for
  ///     the policy's.
  ///   - attachment: a file beside the log that belongs to the value; its length counts as the
  ///     entry's, and it goes with the entry.
  ///   - durability: when to return; nil for the store's.
  /// - Throws: `conflict` where the key holds, or held, what the user wrote; `coding`; what a put
  ///   of the store throws.
  public func put(
    _ key: some BytesConvertible, _ value: Value, labels: [EntryLabel] = [], hash: [UInt8]? = nil,
    maxAge: Duration? = nil, attachment: StagedAttachment? = nil, durability: Durability? = nil
  ) async throws(TidemarkError) {
    let batch = try batch(key, encode(value), labels, hash, maxAge, attachment)
    defer { extendLifetime(attachment) }
    _ = try await store.commit(batch, durability)
  }

  /// Records that the server's value is unchanged, without writing the value again.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - hash: a new validator hash; nil leaves the old one.
  ///   - maxAge: for how long the value is valid from now; nil leaves that as it is.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: false when there is no such entry; then nothing is written.
  @discardableResult
  public func touch(
    _ key: some BytesConvertible, hash: [UInt8]? = nil, maxAge: Duration? = nil,
    durability: Durability? = nil
  ) async throws(TidemarkError) -> Bool {
    guard let batch = try touchBatch(key, hash, maxAge) else { return false }
    return try await !store.commit(batch, durability).sequences.isEmpty
  }

  /// Marks entries as stale. They stay stale until they are written or touched again.
  /// - Parameter keys: the keys, without the cache's prefix.
  public func markStale(keys: [Key]) async throws(TidemarkError) {
    _ = try await store.commit(try staleBatch(keys), nil)
  }

  /// Marks the entries whose labels meet a filter as stale.
  public func markStale(labels: LabelFilter) async throws(TidemarkError) {
    _ = try await store.commit(try staleBatch(labels: labels), nil)
  }

  /// Removes the entry of a key from the cache, so that the key reads as absent.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: false when there is no such entry.
  @discardableResult
  public func remove(
    _ key: some BytesConvertible, durability: Durability? = nil
  ) async throws(TidemarkError) -> Bool {
    try await !store.commit(try removal(of: key), durability).sequences.isEmpty
  }

  /// Removes the entries of several keys from the cache.
  /// - Parameters:
  ///   - keys: the keys, without the cache's prefix.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: how many of them were there.
  @discardableResult
  public func remove(
    keys: [Key], durability: Durability? = nil
  ) async throws(TidemarkError) -> Int {
    let batch = try removal(of: keys)
    return min(batch.count, try await store.commit(batch, durability).sequences.count)
  }

  /// Removes all entries, or those whose labels meet a filter, and clears their bytes from the
  /// disk. The store rewrites the log files that hold them, which takes time in proportion to their
  /// length. For everyday removals use ``remove(keys:durability:)``. Open views keep the entries
  /// that they show until the next compaction. The file system may keep bytes of deleted files; the
  /// store cannot change that.
  /// - Throws: the errors of ``Store/compact(dropHistory:dense:dryRun:newKey:waits:)``. The entries
  ///   are then removed, and a later call or compaction clears the disk.
  public func removeAll(
    labels: LabelFilter = .everything, durability: Durability? = nil
  ) async throws(TidemarkError) {
    _ = try await store.commit(try removal(labels: labels), durability)
    try await store.offPool("tidemark-pack") { (_) throws(TidemarkError) in
      try eraseGivenUp()
    }
  }

  /// Removes entries that have been stale for longer than a duration.
  /// - Parameters:
  ///   - duration: for how long; zero takes all that are valid no more.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: how many there were.
  @discardableResult
  public func removeStale(
    for duration: Duration = .zero, durability: Durability? = nil
  ) async throws(TidemarkError) -> Int {
    let batch = try removal(staleFor: duration)
    return min(batch.count, try await store.commit(batch, durability).sequences.count)
  }
}

// MARK: - Batches

extension Cache {
  func batch(
    _ key: some BytesConvertible, _ bytes: [UInt8], _ labels: [EntryLabel], _ hash: [UInt8]?,
    _ maxAge: Duration?, _ attachment: StagedAttachment? = nil
  ) throws(TidemarkError) -> WriteBatch {
    var attributes = EntryAttributes(
      cachedAt: region.now, hash: hash, maxAge: maxAge.map { Validity.seconds($0) },
      attachment: attachment?.hold.id)
    if PlantedBug.isOn(.cachedAsOwned) { attributes.entryClass = .owned }
    var batch = WriteBatch()
    let set = try batch.operations.addLabelSet(labels.map(\.bytes))
    try batch.operations.add(
      .put, key: full(key).rawSpan, value: bytes.rawSpan, labelSet: set, attributes: attributes)
    return batch
  }

  func encode(_ value: Value) throws(TidemarkError) -> [UInt8] {
    do { return try coding.encode(value) } catch {
      throw TidemarkError(.coding, "a value for the cache cannot be encoded", cause: error)
    }
  }

  /// The seconds that a touch gives: one that says nothing ends what a mark has said.
  private func seconds(
    _ maxAge: Duration?, _ key: [UInt8]
  ) throws(TidemarkError) -> UInt32? {
    if let maxAge { return Validity.seconds(maxAge) }
    guard let entry = try store.entry(forKey: key), entry.maxAgeSeconds == Validity.staleMark else {
      return nil
    }
    return Validity.seconds(region.policy.maxAge)
  }

  /// Nil where there is no such entry.
  /// - Parameter sequence: the key's newest entry; nil for whichever it is.
  func touchBatch(
    _ key: some BytesConvertible, at sequence: UInt64? = nil, _ hash: [UInt8]?, _ maxAge: Duration?
  ) throws(TidemarkError) -> WriteBatch? {
    let key = full(key)
    var batch = WriteBatch()
    let seconds = try seconds(maxAge, key)
    let isThere = try batch.addTouch(
      of: key, at: sequence, hash: hash, maxAge: seconds, region.engine)
    return isThere ? batch : nil
  }

  func staleBatch(_ keys: [Key]) throws(TidemarkError) -> WriteBatch {
    let keys = keys.map { full($0) }
    store.registry.willWrite(keys)
    return try staleBatch(of: keys)
  }

  func staleBatch(labels: LabelFilter) throws(TidemarkError) -> WriteBatch {
    store.registry.willWrite(prefix: region.prefix, labels)
    return try staleBatch(of: try keys(labels, prefix: region.prefix))
  }

  private func staleBatch(of keys: [[UInt8]]) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    for key in keys {
      _ = try batch.addTouch(of: key, maxAge: Validity.staleMark, region.engine)
    }
    return batch
  }

  func removal(of key: some BytesConvertible) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    try batch.operations.addEviction(of: full(key).rawSpan, at: 0)
    return batch
  }

  /// The evictions of the keys that are there: what a commit gives up besides is not counted.
  func removal(of keys: [Key]) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    let keys = Set(keys.map { full($0) })
    store.registry.willWrite(keys)
    // Sorted, so that a simulated run repeats: the order of a set differs between processes.
    for key in keys.sorted(by: { $0.lexicographicallyPrecedes($1) })
    where try region.engine.reader.slot(ofKey: key.rawSpan)?.isLiveCached == true {
      try batch.operations.addEviction(of: key.rawSpan, at: 0)
    }
    return batch
  }

  /// Entries with some labels, and items with them that a sync has fetched for its next switch.
  func removal(labels: LabelFilter) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    store.registry.willWrite(prefix: region.prefix, labels)
    var keys = try keys(labels, prefix: region.prefix)
    keys += try self.keys(labels, prefix: ReservedKeys.staged + region.prefix)
    // The hash of a collection without items stands in this entry alone.
    if labels == .everything { keys.append(ReservedKeys.collection(region.prefix)) }
    for key in keys { try batch.operations.addEviction(of: key.rawSpan, at: 0) }
    return batch
  }

  /// Leaves nothing on the disk of entries that were given up, nor, where none is left, of the
  /// cache's prefix.
  func eraseGivenUp() throws(TidemarkError) {
    try store.engine.eraseGivenUp()
    try region.eraseOrder()
  }

  func removal(staleFor duration: Duration) throws(TidemarkError) -> WriteBatch {
    let (now, policy) = (region.now, region.policy)
    let duration = Int64(clamping: duration.wholeMilliseconds)
    var batch = WriteBatch()
    for use in try region.leastRecent()
    where try region.isStale(use, at: now, for: duration, policy) {
      guard let entry = try region.engine.reader.entryIfKept(at: use.sequence) else { continue }
      try batch.operations.addEviction(of: entry.key.rawSpan, at: use.sequence)
    }
    return batch
  }

  /// The keys with some labels, with their prefix.
  private func keys(
    _ labels: LabelFilter, prefix: [UInt8]
  ) throws(TidemarkError) -> [[UInt8]] {
    var rows = try store.entries(EntryQuery(prefix: prefix, labels: labels, values: false))
    var keys: [[UInt8]] = []
    while let entry = try rows.next() { keys.append(entry.key.bytes) }
    return keys
  }
}

extension Validity {
  /// Seconds as they are stored, rounded up.
  static func seconds(_ duration: Duration) -> UInt32 {
    UInt32(clamping: min(Int64(staleMark) - 1, Int64(clamping: duration.wholeSeconds)))
  }
}

extension EntryAttributes {
  /// Those of a cached entry.
  /// - Parameters:
  ///   - now: the clock's time, which a commit's need not be where the clock was set back.
  ///   - maxAge: for how many seconds the value is valid.
  init(
    cachedAt now: Timestamp, hash: [UInt8]? = nil, maxAge: UInt32?, attachment: AttachmentID? = nil
  ) {
    self.init()
    entryClass = .cache
    time = Timestamp(milliseconds: now.milliseconds)
    self.hash = hash
    self.maxAge = maxAge
    self.attachment = attachment
  }
}

extension WriteBatch {
  /// Adds the touch of a cached entry.
  /// - Parameter sequence: the key's newest entry; nil for whichever it is.
  /// - Returns: false where there is no such entry.
  mutating func addTouch(
    of key: [UInt8], at sequence: UInt64? = nil, hash: [UInt8]? = nil, maxAge: UInt32?,
    _ engine: Engine
  ) throws(TidemarkError) -> Bool {
    guard let slot = try engine.reader.slot(ofKey: key.rawSpan), slot.isLiveCached,
      sequence == nil || slot.sequence == sequence
    else { return false }
    let now = engine.environment.clock.now()
    try operations.addTouch(
      of: key, at: slot.sequence, EntryAttributes(cachedAt: now, hash: hash, maxAge: maxAge))
    return true
  }
}

extension OperationBatch {
  /// Adds a touch, which does nothing where the key has another newest entry by then.
  mutating func addTouch(
    of key: [UInt8], at sequence: UInt64, _ attributes: EntryAttributes
  ) throws(TidemarkError) {
    try add(
      .touch, key: key.rawSpan, attributes: attributes,
      condition: addCondition(.isNewest(sequence)))
  }
}
