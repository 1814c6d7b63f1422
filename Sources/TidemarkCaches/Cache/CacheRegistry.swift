public import TidemarkEngine

extension Store {
  /// Returns the cache of the keys that begin with a prefix, for a server's data that may be
  /// removed.
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

  /// Returns the cache of the keys that begin with a prefix, with a coding of your own for the
  /// values.
  /// - Parameters:
  ///   - prefix: see ``cache(prefix:policy:)``.
  ///   - policy: its rules.
  ///   - coding: how values become bytes.
  public func cache<Value: Sendable>(
    prefix: some BytesConvertible, policy: CachePolicy = CachePolicy(), coding: CacheCoding<Value>
  ) throws(TidemarkError) -> Cache<Value> {
    let prefix = prefix.withBytes { [UInt8](copying: $0) }
    try ReservedKeys.refuse(prefix: prefix)
    return Cache(store: self, region: try registry.region(prefix, policy), coding: coding)
  }

  /// Its caches and the questions to their sources.
  var registry: CacheRegistry { participant() }
}

/// The caches of a store, the questions to the sources behind them, and their part in its commits.
package final class CacheRegistry: CacheParticipant {
  let engine: Engine
  /// Held while cached values are staged, so that evictions are in the same commit.
  let regions = Lock<[CacheRegion]>([])
  let questions: Questions
  private let usesThreads: Bool
  /// Nil where nothing is read ahead.
  private let warmer: WarmUpThread?

  package init(_ engine: Engine, _ configuration: Store.Configuration) {
    self.engine = engine
    questions = Questions(engine)
    let (warmUp, budget) = (configuration.warmUp, configuration.cacheBytes / 2)
    usesThreads = configuration.usesThreads
    let warms = usesThreads && warmUp != .none
    warmer = warms ? WarmUpThread(engine, warmUp, budget: budget) : nil
    warmer?.start()
  }

  package var warmed: Int { warmer?.warmed ?? 0 }

  package func close(waits: Bool) {
    for region in regions.withLock({ $0 }) {
      region.flights.cancelAll()
      region.saveIfUsed()
    }
    warmer?.stop()
    if waits { warmer?.join() }
  }

  fileprivate func region(
    _ prefix: [UInt8], _ policy: CachePolicy
  ) throws(TidemarkError) -> CacheRegion {
    guard !prefix.isEmpty, prefix.count <= 1_024 else {
      throw TidemarkError(
        .invalidArgument, "a cache's prefix of \(prefix.count) bytes; it has 1 to 1024")
    }
    return try regions.withLock { (regions: inout [CacheRegion]) throws(TidemarkError) in
      defer {
        engine.autoCompactor.noteCacheBound(regions.reduce(0) { $0 + ($1.policy.bytes ?? 0) })
      }
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
      let region = CacheRegion(
        engine, prefix: prefix, policy: policy, questions: questions, usesThreads: usesThreads)
      regions.append(region)
      return region
    }
  }

  package func hasQuestion(about key: RawSpan) -> Bool { questions.contains(key) }

  package func contains(_ key: RawSpan) -> Bool {
    ReservedKeys.contains(key) || regions.withLock { $0.contains { $0.contains(key) } }
  }

  package func noteUse(of key: [UInt8], _ sequence: UInt64) {
    let region = regions.withLock { $0.first { $0.contains(key.rawSpan) } }
    if let region { region.noteUse(of: sequence, at: region.now) }
  }

  /// Is called before keys are written: of those that are absent no commit tells.
  func willWrite(_ keys: some Sequence<[UInt8]>) { regions.withLock { _ in questions.say(keys) } }

  package func willWrite(prefix: [UInt8], _ labels: LabelFilter) {
    regions.withLock { _ in questions.say(prefix: prefix, labels) }
  }

  /// Stages a batch; where it puts cached values, evictions that make room are in the same commit.
  ///
  /// While sources are being asked, every batch is looked at for what it says about their keys.
  /// Caches hear of any touch of theirs: compaction drops all touches of a key but the last, and
  /// with it what the entry was known by.
  /// - Parameter check: the answer to a question that the batch keeps, which says nothing anew.
  /// - Throws: `conflict` where the question was overtaken; what staging throws.
  package func stage(
    _ operations: OperationBatch, _ durability: Durability?, waitsForRoom: Bool,
    answering check: (any CommitCheck)?
  ) throws(TidemarkError) -> CommitResult {
    guard operations.hasCached || operations.hasTouches || !questions.isEmpty else {
      return try engine.stage(operations, durability: durability, waitsForRoom: waitsForRoom)
    }
    return try regions.withLock { (regions: inout [CacheRegion]) throws(TidemarkError) in
      if let check { try check.check() } else { noteSaid(by: operations, in: regions) }
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
      check?.noteCommit()
      for (region, change) in changes { region.settle(change) }
      return result
    }
  }

  /// Evictions of one certain entry make room, and say nothing. A switch to another generation says
  /// something about all keys of its cache.
  private func noteSaid(by batch: OperationBatch, in regions: [CacheRegion]) {
    guard !questions.isEmpty else { return }
    let said = batch.operations.lazy.filter { $0.kind != .evict || $0.condition < 0 }
    let keys: [[UInt8]] = said.map { [UInt8](copying: batch.key(of: $0)) }
    questions.say(keys)
    for key in keys where ReservedKeys.contains(key.rawSpan) {
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
    guard change.givesUp || !change.victims.isEmpty, try hasCollection(region) else { return }
    let key = ReservedKeys.collection(region.prefix)
    let isSwitch = operations.operations.contains {
      $0.kind == .put && operations.key(of: $0).isEqual(to: key.rawSpan)
    }
    if !isSwitch { try batch.addEviction(of: key.rawSpan, at: 0) }
  }

  /// Whether a cache equals a server's collection.
  private func hasCollection(_ region: CacheRegion) throws(TidemarkError) -> Bool {
    let key = ReservedKeys.collection(region.prefix)
    return try engine.reader.slot(ofKey: key.rawSpan)?.isLiveCached == true
  }

  /// The part of a batch that is a cache's; nil for none.
  private func change(
    of batch: OperationBatch, in region: CacheRegion
  ) throws(TidemarkError) -> CacheRegion.Change? {
    var change = CacheRegion.Change()
    for operation in batch.operations where operation.isCached || operation.kind == .touch {
      guard region.contains(batch.key(of: operation)) else { continue }
      let key = [UInt8](copying: batch.key(of: operation))
      let slot = try engine.reader.slot(ofKey: key.rawSpan).flatMap { $0.isLiveCached ? $0 : nil }
      // Touches of what is the user's are none of the cache's business.
      guard operation.isCached || slot != nil else { continue }
      try region.load()
      if change.former[key] == nil, change.puts[key] == nil { change.keys.append(key) }
      if let slot { change.former[key] = slot.sequence }
      switch operation.kind {
      case .put:
        change.puts[key] =
          operation.keyLength + operation.valueLength + batch.labelLength(of: operation)
          + CacheRegion.diskBytes(ofAttachment: batch.attachmentLength(of: operation))
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

  package func heldBytes(upTo goal: Int) throws(TidemarkError) -> Int {
    var bytes = 0
    for region in regions.withLock({ $0 }) where bytes < goal {
      if try !hasCollection(region) { bytes += try region.heldBytes() }
    }
    return bytes
  }

  /// Gives up cached entries, those that were used least recently first. A cache that equals a
  /// server's collection keeps what it has.
  package func evict(_ bytes: Int) throws(TidemarkError) -> Bool {
    var batch = OperationBatch()
    var freed = 0
    var evicted: [CacheRegion] = []
    for region in regions.withLock({ $0 }) where freed < bytes {
      guard try !hasCollection(region) else { continue }
      for use in try region.leastRecent() where freed < bytes {
        guard let use = region.use(of: use.sequence),
          let entry = try engine.reader.entryIfKept(at: use.sequence),
          let slot = try engine.reader.slot(ofKey: entry.key.rawSpan), slot.isLiveCached
        else { continue }
        try batch.addEviction(of: entry.key.rawSpan, at: slot.sequence)
        freed += max(1, use.bytes)
        evicted.append(region)
      }
    }
    guard freed > 0 else { return false }
    let stage = { [batch] () throws(TidemarkError) in
      try self.stage(batch, nil, waitsForRoom: true, answering: nil)
    }
    do throws(TidemarkError) { _ = try stage() } catch {
      guard error.code == .noSpace, engine.writer.releaseBallast(Store.leastEvicted) else {
        throw error
      }
      _ = try stage()
    }
    for region in evicted { region.count { $0.evictions += 1 } }
    engine.store.tell(.evicted, entries: evicted.count, bytes: freed)
    return true
  }
}
