extension Engine {
  /// The write path: check, make space, stage (make visible), hand to the kernel, sync.
  /// - Parameter durability: nil takes the store's.
  /// - Throws: `conflict`, `noSpace` and the like with nothing committed; `unknownOutcome` when
  ///   a write or sync failed midway.
  @discardableResult
  package func commit(
    _ batch: OperationBatch, durability: Durability? = nil
  ) throws(TidemarkError) -> CommitResult {
    let result = try stage(batch, durability: durability)
    if (durability ?? configuration.durability) == .durable {
      try writer.sync(through: result.lastSeen, of: result.epoch)
    }
    return result
  }

  /// Commits without a sync: for `durable` the caller awaits `sync(through:of:)`, without a lock.
  /// - Parameter waitsForRoom: whether to block while too much of the log is not synced; who must
  ///   not block asks `goalForRoom` and waits in another way.
  package func stage(
    _ batch: OperationBatch, durability: Durability? = nil, waitsForRoom: Bool = true
  ) throws(TidemarkError) -> CommitResult {
    let durability = durability ?? configuration.durability
    let result: CommitResult
    if batch.attachments.isEmpty {
      result = try writer.stage(batch, durability, waitsForRoom: waitsForRoom)
    } else {
      // Holds the attachments: until an entry names them a sweep would remove their files.
      result = try stageHolding(batch) { () throws(TidemarkError) in
        try writer.stage(batch, durability, waitsForRoom: waitsForRoom)
      }
    }
    listener.object?.note(batch)
    afterCommit()
    return result
  }

  /// Commits one put (value and labels) or one delete without building a batch, which is faster.
  /// - Returns: nil where it takes a batch: see
  ///   ``LogWriter/stage(_:key:value:labels:_:waitsForRoom:)``.
  package func stageSingle(
    _ kind: EntryKind, key: RawSpan, value: RawSpan? = nil, labels: [[UInt8]] = [],
    durability: Durability? = nil, waitsForRoom: Bool = true
  ) throws(TidemarkError) -> CommitResult? {
    let result = try writer.stage(
      kind, key: key, value: value, labels: labels, durability ?? configuration.durability,
      waitsForRoom: waitsForRoom)
    guard let result else { return nil }
    listener.object?.note(key)
    afterCommit()
    return result
  }

  /// Tells observers of a commit; a store without threads does its background work here.
  private func afterCommit() {
    // The commit is done, whatever becomes of this: a failed sync poisons the writer, which the
    // next write reports, and a run that could not be written is tried again.
    if configuration.doesBackgroundWorkInline { try? doBackgroundWork() }
    store.observers.notify()
  }

  /// Does what is due: called by a thread of the store 20 times a second, or inline in simulations.
  package func doBackgroundWork() throws(TidemarkError) {
    if try writer.doTimedWork() {
      if writer.ballast.isDue(at: writer.loggedBytes) { writer.provideBallast() }
      // Not before the first write of this opening: until then MANIFEST says "closed cleanly".
      if writer.active != nil, compactor.takeMerge() { try compactor.mergeSmallSegments() }
      try checkpointer.writeRunIfDue()
    }
    // With threads, the store's own one for compactions does the rest.
    if configuration.doesBackgroundWorkInline {
      try autoCompactor.compactIfWorthwhile()
      try sweepAttachmentsIfDue()
    }
  }

  /// Rewrites the log; see ``Compactor``. Attachments that no entry names any more go with it.
  @discardableResult
  package func compact(
    _ options: CompactionOptions = CompactionOptions()
  ) throws(TidemarkError) -> CompactionReport {
    try compactor.compact(options) { (report) throws(TidemarkError) in
      if !options.dryRun {
        let swept = try sweepAttachments()
        report.attachmentsRemoved = swept.removed
        report.attachmentBytesFreed = swept.removedBytes
      }
      // Once more: content that was begun under the former key may have been finished meanwhile.
      if options.newKey != nil, let failure = try attachments.rewriteWithCurrentKey() {
        throw failure
      }
    }
  }

  /// Leaves nothing on the disk of cached data that was given up, but for what open views show. The
  /// attachments come last: by then no entry names them any more.
  package func eraseGivenUp() throws(TidemarkError) {
    try autoCompactor.erase()
    try compactor.whileIdle { () throws(TidemarkError) in try compactor.removeReplaced() }
    try Quarantine(fileSystem, storePath: path).removeAll()
    try sweepAttachments()
  }

  /// Sets what derives entries from others (rows of indexes), once.
  package func derive(by derivation: IndexMaintenance) { _ = writer.derivation.set(derivation) }

  /// What was set by ``derive(by:)``.
  package var derivation: IndexMaintenance? { writer.derivation.object }

  /// How often another process has had the store.
  package var takeovers: UInt64 { derivation?.takeovers ?? 0 }
}
