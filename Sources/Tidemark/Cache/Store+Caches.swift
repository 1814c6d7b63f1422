public import TidemarkEngine

extension Store {
  /// The cache of the keys that begin with a prefix: a server's data, which may be given up.
  ///
  /// ```swift
  /// let pages = try store.cache(prefix: "pages/", policy: CachePolicy(capacity: 1_000))
  /// try await pages.put("home", html, hash: etag)
  /// ```
  /// Asked for again, it is the same cache, with the rules that were given last. It takes no part
  /// in replication, its older versions are not kept, and it never touches what the user owns.
  /// - Parameters:
  ///   - prefix: 1 to 1,024 bytes, such that no other cache's begins with it or the reverse.
  ///   - policy: its rules.
  /// - Throws: `invalidArgument`.
  public func cache(
    prefix: some BytesConvertible, policy: CachePolicy = CachePolicy()
  ) throws(TidemarkError) -> Cache<[UInt8]> {
    try cache(prefix: prefix, policy: policy, coding: .bytes)
  }

  /// The cache of the keys that begin with a prefix, of values that are coded somehow.
  /// - Parameters:
  ///   - prefix: see ``cache(prefix:policy:)``.
  ///   - policy: its rules.
  ///   - coding: how values become bytes.
  public func cache<Value: Sendable>(
    prefix: some BytesConvertible, policy: CachePolicy = CachePolicy(), coding: CacheCoding<Value>
  ) throws(TidemarkError) -> Cache<Value> {
    let prefix = prefix.withBytes { [UInt8](copying: $0) }
    try ReservedKeys.refuse(prefix: prefix)
    return Cache(self, try region(prefix, policy), coding)
  }

  private func region(
    _ prefix: [UInt8], _ policy: CachePolicy
  ) throws(TidemarkError) -> CacheRegion {
    guard !prefix.isEmpty, prefix.count <= 1_024 else {
      throw TidemarkError(
        .invalidArgument, "a cache's prefix of \(prefix.count) bytes; it has 1 to 1024")
    }
    return try caches.withLock { (regions: inout [CacheRegion]) throws(TidemarkError) in
      defer { engine.noteCacheBound(regions.reduce(0) { $0 + ($1.policy.bytes ?? 0) }) }
      if let known = regions.first(where: { $0.prefix == prefix }) {
        known.policy = policy
        return known
      }
      let overlaps = regions.contains {
        $0.prefix.starts(with: prefix) || prefix.starts(with: $0.prefix)
      }
      guard !overlaps else {
        throw TidemarkError(
          .invalidArgument, "one cache's prefix begins with that of another; choose others")
      }
      let region = CacheRegion(engine, prefix: prefix, policy: policy, questions: questions)
      regions.append(region)
      return region
    }
  }

  /// Whether a key belongs to one of the caches that were asked for, or says something about one.
  func isInCache(_ key: [UInt8]) -> Bool {
    ReservedKeys.contains(key.rawSpan)
      || caches.withLock { $0.contains { $0.contains(key.rawSpan) } }
  }

  /// Notes that a cached value was read by its key, though not through its cache.
  func noteUse(ofCached key: [UInt8], _ sequence: UInt64) {
    let region = caches.withLock { $0.first { $0.contains(key.rawSpan) } }
    region?.noteUse(of: sequence)
  }

  /// How often one batch on a full disk makes caches evict before it fails with `noSpace`.
  private static let mostAttempts = 32

  /// Stages a batch; on a full disk what caches have given up goes first, and what they would give
  /// up next.
  func stage(
    _ operations: OperationBatch, _ durability: Durability?, waitsForRoom: Bool = true,
    answering answer: CacheQuestion.Answer? = nil
  ) throws(TidemarkError) -> CommitResult {
    var attempts = 0
    if operations.operations.contains(where: { $0.kind == .put }) { keepReserve(for: operations) }
    while true {
      do throws(TidemarkError) {
        return try attempt(operations, durability, waitsForRoom, answer)
      } catch {
        attempts += 1
        guard error.code == .noSpace, attempts <= Self.mostAttempts,
          makeRoom(for: operations.storedBound)
        else { throw error }
      }
    }
  }

  /// Evicts cached entries before a put would take the free space that the next compaction needs,
  /// on a disk that is hardly larger than the caches.
  private func keepReserve(for operations: OperationBatch) {
    var lack = engine.lackingBytes(for: operations.storedBound)
    while lack > 0, makeRoom(for: lack, isFull: false) {
      let rest = engine.lackingBytes(for: operations.storedBound)
      // The space of a deleted file is not free while a reader has it open. Evicting more would not
      // change that.
      guard rest < lack else { return }
      lack = rest
    }
  }

  /// Stages a batch; where it puts cached values, evictions that make room are in the same commit.
  ///
  /// While sources are being asked, every batch is looked at for what it says about their keys.
  /// Caches hear of any touch of theirs: compaction drops all touches of a key but the last, and
  /// with it what the entry was known by.
  /// - Parameter answer: the answer to a question that the batch keeps, which says nothing anew.
  /// - Throws: `conflict` where the question was overtaken; what staging throws.
  func attempt(
    _ operations: OperationBatch, _ durability: Durability?, _ waitsForRoom: Bool,
    _ answer: CacheQuestion.Answer? = nil
  ) throws(TidemarkError) -> CommitResult {
    guard operations.hasCached || operations.hasTouches || !questions.isEmpty else {
      return try engine.stage(operations, durability: durability, waitsForRoom: waitsForRoom)
    }
    return try caches.withLock { (regions: inout [CacheRegion]) throws(TidemarkError) in
      if let answer { try answer.check() } else { noteSaid(by: operations, in: regions) }
      var batch = operations
      var changes: [(region: CacheRegion, change: CacheRegion.Change)] = []
      for region in regions {
        guard var change = try change(of: operations, in: region) else { continue }
        // A batch that only gives entries up takes no others along: its caller hears how many.
        if !change.puts.isEmpty {
          try region.expire(with: &change)
          try region.makeRoom(for: &change)
        }
        for victim in change.victims where !victim.key.isEmpty {
          try batch.addEviction(of: victim.key.rawSpan, at: victim.sequence)
        }
        try forgetCollection(of: region, after: change, operations, &batch)
        changes.append((region, change))
      }
      let result = try engine.stage(batch, durability: durability, waitsForRoom: waitsForRoom)
      answer?.noteCommit()
      for (region, change) in changes { region.settle(change) }
      return result
    }
  }

  /// Evictions of one certain entry make room, and say nothing. A switch to another generation says
  /// something about all keys of its cache.
  private func noteSaid(by batch: OperationBatch, in regions: [CacheRegion]) {
    guard !questions.isEmpty else { return }
    let said = batch.operations.filter { $0.kind != .evict || $0.condition < 0 }
    questions.say(said.lazy.map { [UInt8](copying: batch.key(of: $0)) })
    for operation in said where ReservedKeys.contains(batch.key(of: operation)) {
      let key = [UInt8](copying: batch.key(of: operation))
      for region in regions where key == ReservedKeys.collection(region.prefix) {
        questions.say(prefix: region.prefix)
      }
    }
  }

  /// A cache that gives entries up is not the collection any more that it was to equal, so that the
  /// next sync must not believe it by its hash; a switch says itself what the cache shows.
  private func forgetCollection(
    of region: CacheRegion, after change: CacheRegion.Change, _ operations: OperationBatch,
    _ batch: inout OperationBatch
  ) throws(TidemarkError) {
    guard change.givesUp || !change.victims.isEmpty else { return }
    guard try hasCollection(region) else { return }
    let key = ReservedKeys.collection(region.prefix)
    let isSwitch = operations.operations.contains {
      $0.kind == .put && $0.keyLength == key.count
        && operations.key(of: $0).isEqual(to: key.rawSpan)
    }
    if !isSwitch { try batch.addEviction(of: key.rawSpan, at: 0) }
  }

  /// Whether a cache equals a server's collection.
  func hasCollection(_ region: CacheRegion) throws(TidemarkError) -> Bool {
    let key = ReservedKeys.collection(region.prefix)
    return try engine.slot(ofKey: key.rawSpan)?.isLiveCached == true
  }

  /// Bytes that an attachment takes on the disk, in blocks of 4 KiB; 0 for none.
  static func diskBytes(ofAttachment length: Int) -> Int {
    let block = 4_096
    return length == 0 ? 0 : min(length, .max / 2) / block * block + block
  }

  /// The part of a batch that is a cache's; nil for none.
  private func change(
    of batch: OperationBatch, in region: CacheRegion
  ) throws(TidemarkError) -> CacheRegion.Change? {
    var change = CacheRegion.Change()
    for operation in batch.operations where operation.isCached || operation.kind == .touch {
      guard region.contains(batch.key(of: operation)) else { continue }
      let key = [UInt8](copying: batch.key(of: operation))
      let slot = try engine.slot(ofKey: key.rawSpan).flatMap { $0.isLiveCached ? $0 : nil }
      // Touches of what is the user's are none of the cache's business.
      guard operation.isCached || slot != nil else { continue }
      try region.load()
      if change.former[key] == nil, change.puts[key] == nil { change.keys.append(key) }
      if let slot { change.former[key] = slot.sequence }
      switch operation.kind {
      case .put:
        change.puts[key] =
          operation.keyLength + operation.valueLength + batch.labelLength(of: operation)
          + Self.diskBytes(ofAttachment: batch.attachmentLength(of: operation))
      case .evict:
        change.puts[key] = nil
        change.givesUp = change.givesUp || change.former[key] != nil
      case .touch where operation.isCached:
        if let former = change.former[key], change.puts[key] == nil {
          change.puts[key] = region.use(of: former)?.bytes ?? 0
        }
      case .touch, .delete, .record: break
      }
    }
    return change.keys.isEmpty ? nil : change
  }
}
