internal import TidemarkEngine

extension Store {
  package func commitBlocking(
    _ batch: WriteBatch, _ durability: Durability?, answering check: (any CommitCheck)? = nil
  ) throws(TidemarkError) -> Receipt {
    try commitBlocking(operations(of: batch), durability, answering: check)
  }

  /// Commits operations that were checked, on the calling thread.
  @discardableResult
  package func commitBlocking(
    _ operations: OperationBatch, _ durability: Durability?,
    answering check: (any CommitCheck)? = nil
  ) throws(TidemarkError) -> Receipt {
    let durability = durability ?? engine.store.configuration.durability
    if operations.hasCached { engine.autoCompactor.keepCachesWithinBound() }
    return try receiptBlocking(of: stage(operations, durability, answering: check), durability)
  }

  /// How often one batch on a full disk makes caches evict before it fails with `noSpace`.
  private static let mostAttempts = 32

  /// Stages a batch; on a full disk what caches have given up goes first, and what they would give
  /// up next.
  func stage(
    _ operations: OperationBatch, _ durability: Durability?, waitsForRoom: Bool = true,
    answering check: (any CommitCheck)? = nil
  ) throws(TidemarkError) -> CommitResult {
    var attempts = 0
    if operations.operations.contains(where: { $0.kind == .put }) { keepReserve(for: operations) }
    while true {
      do throws(TidemarkError) {
        return try caches.stage(
          operations, durability, waitsForRoom: waitsForRoom, answering: check)
      } catch {
        attempts += 1
        guard error.code == .noSpace, attempts <= Self.mostAttempts,
          makeRoom(for: operations.storedBound)
        else { throw error }
      }
    }
  }

  /// Waits on the calling thread until what was staged is as safe as asked for.
  private func receiptBlocking(
    of result: CommitResult, _ durability: Durability?
  ) throws(TidemarkError) -> Receipt {
    if durability ?? engine.store.configuration.durability == .durable {
      do { try engine.writer.sync(through: result.lastSeen, of: result.epoch) } catch {
        throw TidemarkError.unknownOutcome(of: result.lastSeen, after: error)
      }
    }
    return Receipt(result)
  }

  /// The same for a task.
  func receipt(
    of result: CommitResult, _ durability: Durability?
  ) async throws(TidemarkError) -> Receipt {
    guard let commits else { return try receiptBlocking(of: result, durability) }
    if durability ?? engine.store.configuration.durability == .durable {
      try await commits.wait(through: result.lastSeen, of: result.epoch)
    }
    return Receipt(result)
  }

  /// Stages on the calling thread and awaits the sync, if there has to be one.
  ///
  /// Cancellation counts before anything is staged only: from then on others may have read it.
  /// - Parameter check: see ``stage(_:_:waitsForRoom:answering:)``.
  package func commit(
    _ batch: WriteBatch, _ durability: Durability?, answering check: (any CommitCheck)? = nil
  ) async throws(TidemarkError) -> Receipt {
    try TidemarkError.checkCancellation()
    guard let commits else { return try commitBlocking(batch, durability, answering: check) }
    let operations = try operations(of: batch)
    let durability = durability ?? engine.store.configuration.durability
    // While too much is unsynced writers wait; a task does so without its thread. What makes
    // the wait fail is told by staging, in its own words.
    while let goal = engine.writer.goalForRoom() {
      do { try await commits.wait(through: goal.sequence, of: goal.epoch) } catch { break }
      try TidemarkError.checkCancellation()
    }
    if operations.hasCached, engine.autoCompactor.cachesAreFarOverBound {
      try await offPool("tidemark-pack") { (blocking) throws(TidemarkError) in
        blocking.store.engine.autoCompactor.keepCachesWithinBound()
      }
    }
    return try await receipt(
      of: stage(operations, durability, waitsForRoom: false, answering: check), durability)
  }

  /// The operations to be committed.
  ///
  /// An entry that another one comes after must be there: so there are no circles. And what is to
  /// apply together at a peer is told from the batches before and behind it in the log, also when
  /// the same batch is committed twice.
  private func operations(of batch: WriteBatch) throws(TidemarkError) -> OperationBatch {
    guard batch.lastTarget == 0 || batch.lastTarget <= engine.reader.lastSequence else {
      throw TidemarkError(
        .invalidArgument, "there is no entry \(batch.lastTarget) yet that another could come after")
    }
    var operations = batch.operations
    operations.mayRepeatUnique = false
    guard batch.atomicAtPeer else { return operations }
    operations.numberGroup(engine.environment.random.next())
    return operations
  }
}

/// Puts and deletes of one key: those that say nothing besides go past the batch.
extension Store {
  /// Writes a value on the calling thread; not generic, so that the compiler makes one of it.
  @usableFromInline
  func putBlocking(
    _ key: RawSpan, _ value: RawSpan, _ labels: [EntryLabel], _ options: PutOptions,
    _ condition: WriteCondition?, _ durability: Durability?
  ) throws(TidemarkError) -> Receipt {
    try ReservedKeys.refuse(key)
    if labels.isEmpty, condition == nil, options.isEmpty, !caches.hasQuestion(about: key),
      let result = try engine.stageSingle(.put, key: key, value: value, durability: durability)
    {
      return try receiptBlocking(of: result, durability)
    }
    var batch = WriteBatch()
    try batch.add(put: key, value, labels, options, condition)
    return try commitBlocking(batch, durability)
  }

  /// Deletes a key on the calling thread.
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

  /// Stages a put or delete of bytes alone where no task has to wait before it.
  /// - Returns: nil when a batch has to be made of it.
  func stageSingle(
    _ kind: EntryKind, _ key: some BytesConvertible, _ value: RawSpan?, _ durability: Durability?
  ) throws(TidemarkError) -> CommitResult? {
    try TidemarkError.checkCancellation()
    guard commits == nil || engine.writer.goalForRoom() == nil else { return nil }
    return try key.withBytes { (key) throws(TidemarkError) in
      try ReservedKeys.refuse(key)
      // A put of an absent key commits past the caches, so that an open question about the key
      // would not learn that its answer is out of date.
      guard !caches.hasQuestion(about: key) else { return nil }
      return try engine.stageSingle(
        kind, key: key, value: value, durability: durability, waitsForRoom: commits == nil)
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
