internal import TidemarkEngine

// A commit has two steps. Staging, on the calling thread, gives a batch its sequences and makes it
// visible to readers. Below `durable` the commit ends with it; else the caller waits for a sync:
// a thread by `receiptBlocking`, a task by `receipt`, which blocks no thread.
extension Store {
  /// Commits a batch on the calling thread.
  package func commitBlocking(
    _ batch: WriteBatch, _ durability: Durability?, answering check: (any CommitCheck)? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    try commitBlocking(operations(of: batch), durability, answering: check)
  }

  /// Commits the operations of a batch on the calling thread; nil takes the store's durability.
  @discardableResult
  package func commitBlocking(
    _ operations: OperationBatch, _ durability: Durability?,
    answering check: (any CommitCheck)? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    let durability = durability ?? engine.store.configuration.durability
    // Blocks where caches are written faster than their superseded entries are compacted away.
    if operations.hasCached { engine.autoCompactor.keepCachesWithinBound() }
    return try receiptBlocking(of: stage(operations, durability, answering: check), durability)
  }

  /// Most times that a batch evicts cached data on a full disk before it fails with `noSpace`.
  private static let mostAttempts = 32

  /// Stages a batch, by way of the caches, which void answers of their sources and add evictions.
  /// On a full disk it frees the space of evicted cached entries, evicts more, and tries again.
  /// - Parameters:
  ///   - waitsForRoom: whether to block while too much of the log is not synced.
  ///   - check: the condition of a batch that keeps a source's answer; see ``CommitCheck``.
  func stage(
    _ operations: OperationBatch, _ durability: Durability?, waitsForRoom: Bool = true,
    answering check: (any CommitCheck)? = nil
  ) throws(TidemarkError) -> CommitResult {
    var attempts = 0
    // Only puts leave free space to the next compaction; deletes and evictions, small, may use it.
    if operations.operations.contains(where: { $0.kind == .put }) { keepReserve(for: operations) }
    while true {
      do throws(TidemarkError) {
        return try caches.stage(
          operations, durability, waitsForRoom: waitsForRoom, answering: check)
      } catch {
        attempts += 1
        // `noSpace` is thrown before anything is staged, so that the batch can be staged again.
        guard error.code == .noSpace, attempts <= Self.mostAttempts,
          makeRoom(for: operations.storedBound)
        else { throw error }
      }
    }
  }

  /// The receipt of a batch that was staged; where `durable` is asked for, blocks until its sync.
  private func receiptBlocking(
    of result: CommitResult, _ durability: Durability?
  ) throws(TidemarkError) -> WriteReceipt {
    if durability ?? engine.store.configuration.durability == .durable {
      // Also when nothing was written: who hears that a key is gone must not find it after a crash.
      do { try engine.writer.sync(through: result.lastSeen, of: result.epoch) } catch {
        // Readers have seen the entries, and the log may hold them.
        throw TidemarkError.unknownOutcome(of: result.lastSeen, after: error)
      }
    }
    return WriteReceipt(result)
  }

  /// The same for a task, which suspends; without the commit thread it blocks.
  func receipt(
    of result: CommitResult, _ durability: Durability?
  ) async throws(TidemarkError) -> WriteReceipt {
    guard let commits else { return try receiptBlocking(of: result, durability) }
    if durability ?? engine.store.configuration.durability == .durable {
      try await commits.wait(through: result.lastSeen, of: result.epoch)
    }
    return WriteReceipt(result)
  }

  /// Commits a batch for a task: stages on its thread and awaits the sync, if it has to be durable.
  ///
  /// Cancelling the task has no effect once the batch is staged: others may have read it by then.
  /// - Parameter check: see ``stage(_:_:waitsForRoom:answering:)``.
  package func commit(
    _ batch: WriteBatch, _ durability: Durability?, answering check: (any CommitCheck)? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    try TidemarkError.checkCancellation()
    guard let commits else { return try commitBlocking(batch, durability, answering: check) }
    let operations = try operations(of: batch)
    let durability = durability ?? engine.store.configuration.durability
    // Writers wait while too much of the log is unsynced: a task here, suspended, and not in
    // `stage`, which would block its thread. Where the sync fails, staging throws what has failed.
    while let goal = engine.writer.goalForRoom() {
      let start = engine.store.eventStart()
      do { try await commits.wait(through: goal.sequence, of: goal.epoch) } catch { break }
      engine.store.tell(.stalled, from: start)
      try TidemarkError.checkCancellation()
    }
    // Waiting for a compaction blocks, so it is done on a thread of its own.
    if operations.hasCached, engine.autoCompactor.cachesAreFarOverBound {
      try await offPool("tidemark-pack") { (blocking) throws(TidemarkError) in
        blocking.store.engine.autoCompactor.keepCachesWithinBound()
      }
    }
    return try await receipt(
      of: stage(operations, durability, waitsForRoom: false, answering: check), durability)
  }

  /// The operations to be committed. Entries that one of the batch is to be sent after must be in
  /// the log already, so that no two entries wait for each other. A batch that a peer applies as a
  /// whole gets a random number for each commit, which tells it from its neighbours in the log.
  private func operations(of batch: WriteBatch) throws(TidemarkError) -> OperationBatch {
    let last = batch.latestAfter
    guard last == 0 || last <= engine.reader.lastSequence else {
      throw TidemarkError(
        .invalidArgument, "there is no entry \(last) yet that another could come after")
    }
    var operations = batch.operations
    // What a program writes must not repeat a value that a collection's index declares unique.
    operations.mayRepeatUnique = false
    guard batch.atomicAtPeer else { return operations }
    operations.numberGroup(engine.environment.random.next())
    return operations
  }
}

// The fast path: a put or delete of one key without options and conditions is staged without a
// batch, and past the caches, by `engine.stageSingle`. That returns nil, having done nothing, where
// a batch is needed: for instance for long values, and on a full disk.
extension Store {
  /// Writes a value on the calling thread; not generic, so that it is compiled only once.
  @usableFromInline
  func putBlocking(
    _ key: RawSpan, _ value: RawSpan, _ labels: [EntryLabel], _ options: PutOptions,
    _ condition: WriteCondition?, _ durability: Durability?
  ) throws(TidemarkError) -> WriteReceipt {
    try ReservedKeys.refuse(key)
    // An open question to a cache's source must hear of the write, so it goes by way of the caches.
    if condition == nil, options.isEmpty, !caches.hasQuestion(about: key),
      let result = try engine.stageSingle(
        .put, key: key, value: value, labels: labels.map(\.bytes), durability: durability)
    {
      return try receiptBlocking(of: result, durability)
    }
    var batch = WriteBatch()
    try batch.add(put: key, value, labels, options, condition)
    return try commitBlocking(batch, durability)
  }

  /// Deletes a key on the calling thread, as ``putBlocking(_:_:_:_:_:_:)`` writes one.
  /// - Returns: false when there was no such key.
  @usableFromInline
  func deleteBlocking(
    _ key: RawSpan, _ time: Timestamp?, _ condition: WriteCondition?, _ durability: Durability?
  ) throws(TidemarkError) -> Bool {
    try ReservedKeys.refuse(key)
    if time == nil, condition == nil, !caches.hasQuestion(about: key),
      let result = try engine.stageSingle(.delete, key: key, durability: durability)
    {
      return try !receiptBlocking(of: result, durability).sequences.isEmpty
    }
    var batch = WriteBatch()
    try batch.add(delete: key, time: time, if: condition)
    return try !commitBlocking(batch, durability).sequences.isEmpty
  }

  /// Stages a put with its labels, or a delete, for a task, unless it has to wait before.
  /// - Returns: nil when nothing was done and the caller must commit a batch.
  func stageSingle(
    _ kind: EntryKind, _ key: some BytesConvertible, _ value: RawSpan?,
    labels: [EntryLabel] = [], _ durability: Durability?
  ) throws(TidemarkError) -> CommitResult? {
    try TidemarkError.checkCancellation()
    // With too much of the log unsynced the task has to wait, which `commit` does without a thread.
    guard commits == nil || engine.writer.goalForRoom() == nil else { return nil }
    return try key.withBytes { (key) throws(TidemarkError) in
      try ReservedKeys.refuse(key)
      // An open question to a cache's source must hear of the write, so it needs a batch.
      guard !caches.hasQuestion(about: key) else { return nil }
      // With the commit thread a task must not block; without it, it blocks here as in `receipt`.
      return try engine.stageSingle(
        kind, key: key, value: value, labels: labels.map(\.bytes), durability: durability,
        waitsForRoom: commits == nil)
    }
  }
}

extension TidemarkError {
  /// Throws when the task was cancelled; for use before anything is written.
  static func checkCancellation() throws(TidemarkError) {
    guard !Task.isCancelled else {
      throw TidemarkError(.cancelled, "the task was cancelled; nothing was written")
    }
  }
}
