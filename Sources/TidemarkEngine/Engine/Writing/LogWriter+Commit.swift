/// The outcome of a commit.
package struct CommitResult: Sendable, Hashable {
  /// The sequences that the batch took; empty when nothing changed.
  package var sequences: Range<UInt64>
  /// The sequences of the caller's entries; those of derived entries (rows of indexes) follow.
  package var ownSequences: Range<UInt64>
  /// The last sequence that a durable commit promises to be synced. A batch that changed nothing
  /// promises what it saw: who deletes a key and is told that it is gone must not find it again.
  package var lastSeen: UInt64 { sequences.upperBound - 1 }
  /// How many operations made an entry.
  package var applied: Int { sequences.count }
  package var commitTime: UInt64
  /// The epoch of `lastSeen`: a random number drawn when an opening first writes. It tells whether
  /// the sequence still names the same entry after a crash has taken entries back.
  package var epoch: UInt64
}

extension CommitResult {
  /// - Parameter commitTime: nil takes that of the last commit.
  init(
    of sequences: Range<UInt64>, in state: borrowing WriterState, at commitTime: HybridTime? = nil,
    firstDerived: UInt64? = nil
  ) {
    self.init(
      sequences: sequences,
      ownSequences: sequences.lowerBound..<(firstDerived ?? sequences.upperBound),
      commitTime: (commitTime ?? state.commitTime).rawValue,
      epoch: state.manifest.epoch(of: sequences.upperBound - 1))
  }
}

extension LogWriter {
  /// Commits a batch but for the sync: for `durable` the caller then calls `sync(through:of:)`.
  /// *Staging* gives the batch sequences, makes it visible to readers as a whole and puts it into
  /// frames in memory. The durability only decides when the caller is answered.
  func stage(
    _ batch: OperationBatch, _ durability: Durability, waitsForRoom: Bool
  ) throws(TidemarkError) -> CommitResult {
    if waitsForRoom { try waitForRoom() }
    while true {
      // What the batch derives is prepared without the lock, since it reads.
      let version = derivationVersion
      let change = try derivation.object?.prepare(batch)
      let result = try writing.withLock {
        (state: inout WriterState) throws(TidemarkError) -> CommitResult? in
        try state.checkWritable()
        // Indexes declared since, or another process that had the store, make the change outdated.
        guard version == derivationVersion else { return nil }
        if let takeovers = batch.takeovers, takeovers != derivation.object?.takeovers ?? 0 {
          throw TidemarkError(.cancelled, "another process has had the store meanwhile")
        }
        var batch = batch
        if PlantedBug.isOn(.rowsInOwnCommit), let change {  // A bug that tests switch on.
          let first = try stage(batch, .buffered, &state)
          var rows = OperationBatch()
          _ = try change.add(to: &rows)
          _ = try stage(rows, durability, &state)
          return first
        }
        // False: somebody has written since it was prepared, so it is prepared anew.
        guard try change?.add(to: &batch) ?? true else { return nil }
        return try stage(batch, durability, &state)
      }
      if let result { return result }
    }
  }

  var derivationVersion: UInt64 { derivation.object?.version ?? 0 }

  private func stage(
    _ batch: OperationBatch, _ durability: Durability, _ state: inout WriterState
  ) throws(TidemarkError) -> CommitResult {
    guard !batch.operations.isEmpty else {
      return CommitResult(of: (state.sequence + 1)..<(state.sequence + 1), in: state)
    }
    let batch = batch.asksForHashes ? try resolveHashes(batch, &state) : batch
    try makeRoom(for: batch.storedBound, &state)
    let packing = beginPacking(batch, durability)
    defer { if packing != nil { packer?.finish() } }
    let result = try stageLocked(batch, packing, &state)
    if durability != .async || state.stagedBytes >= Limits.stagedBytes {
      try writeStaged(&state, mayCompress: durability != .durable)
    }
    return result
  }

  /// Has a second thread compress blocks of a batch while it is staged: only where `writeStaged`
  /// follows at once and compresses (`async` waits, `durable` is written raw), and for large ones.
  private func beginPacking(_ batch: OperationBatch, _ durability: Durability) -> FramePacking? {
    guard durability == .buffered, batch.count > 1, batch.arena.count >= Limits.compressFromBytes
    else { return nil }
    return packer?.begin()
  }

  /// Turns conditions on validator hashes into conditions on the sequences that carry them now.
  /// The writer's lock is held, so the sequences stay the newest until the batch is staged. Hashes
  /// are in the log only, so frames in memory are written first.
  private func resolveHashes(
    _ batch: OperationBatch, _ state: inout WriterState
  ) throws(TidemarkError) -> OperationBatch {
    try writeStaged(&state, mayCompress: false)
    var batch = batch
    try batch.resolveHashes { (key) throws(TidemarkError) in
      let slot: Slot?
      do throws(IndexError) { slot = try reader.newestSlot(ofKey: key) } catch {
        try reader.rebuildIndex(after: error)
        do throws(IndexError) { slot = try reader.newestSlot(ofKey: key) } catch {
          throw TidemarkError(error)
        }
      }
      guard let slot, !slot.isDeleted else { return nil }
      return (slot.sequence, try reader.info(reader.entry(at: slot.sequence)).attributes.hash)
    }
    return batch
  }

  /// Stages the batch, a second time if the first finds a run of the index damaged; see `Staging`.
  private func stageLocked(
    _ batch: OperationBatch, _ packing: FramePacking?, _ state: inout WriterState
  ) throws(TidemarkError) -> CommitResult {
    let commitTime = state.commitTime.next(wallClock: environment.clock.now())
    let first = state.sequence + 1
    var staging = Staging(
      next: first, commitTime: commitTime, startsOwnFrame: batch.count > 1, packing: packing)
    var attempt = 0
    while true {
      do throws(IndexOrStoreError) {
        try reader.stage(batch, &staging)
        break
      } catch {
        // No staged frame holds a part of the batch, but the index may know one.
        if staging.hasChangedIndex || error.voidsRun { discardFailedBatch(after: error, &state) }
        attempt += 1
        // Once the index is made anew without the damaged run the batch succeeds. Other errors are
        // the caller's, and without an index (`poison`) nothing can be staged.
        guard attempt == 1, error.voidsRun, state.poison == nil else {
          throw TidemarkError(error)
        }
        staging = Staging(
          next: first, commitTime: commitTime, startsOwnFrame: true, packing: packing)
      }
    }
    guard staging.next > first else {
      return CommitResult(of: first..<first, in: state, at: commitTime)
    }
    if state.stagedBytes == 0 { state.stagedSince = environment.clock.monotonicNanoseconds() }
    state.stagedBytes += staging.rawBytes + staging.labelBytes
    state.sequence = staging.next - 1
    state.commitTime = commitTime
    state.appender?.note(
      rawBytes: staging.rawBytes, time: staging.latestTime ?? commitTime.timestamp,
      commitTime: commitTime.rawValue)
    return CommitResult(
      of: first..<staging.next, in: state, at: commitTime, firstDerived: staging.firstDerived)
  }

  /// Writes the staged frames into the active segment, by one call to the kernel; without a sync.
  /// - Parameter keepsFrameMemory: whether the next frame gets the memory of the last one.
  func writeStaged(
    _ state: inout WriterState, mayCompress: Bool, keepsFrameMemory: Bool = false
  ) throws(TidemarkError) {
    guard state.stagedBytes > 0, let appender = state.appender else { return }
    // A write that failed may have left a part of a frame in the log: nothing may be put over it.
    if let poison = state.poison { throw TidemarkError.poisoned(by: poison) }
    if state.unsyncedBytes == 0 { try checkLock(&state) }
    let compresses = mayCompress && state.stagedBytes >= Limits.compressFromBytes
    let before = appender.length
    do {
      try appender.write(
        reader.stagedFrames, durableThrough: state.durable,
        level: compresses ? FrameCodecs.fastLevel : nil)
    } catch {
      throw poison(&state, TidemarkError(error), reason: "writing to the log failed midway")
    }
    reader.noteWritten(keepsFrameMemory: keepsFrameMemory)
    state.stagedBytes = 0
    noteWritten(appender.length - before, &state)
  }

  /// Poisons the writer unless the path still leads to the LOCK file that was locked. Otherwise the
  /// store was removed or replaced, and another process may write to it. Checked before the first
  /// write after a sync, before a finished sync counts, and before MANIFEST is written.
  func checkLock(_ state: inout WriterState) throws(TidemarkError) {
    guard let lock = state.lock, !lock.isCurrent else { return }
    throw poison(
      &state,
      TidemarkError(
        .inputOutput, "\(path)/\(StoreLayout.lock) is no longer the file that was locked"),
      reason: "the store's directory or its LOCK was removed, moved or replaced")
  }

  /// Counts the bytes of a write after which the kernel has everything up to `state.sequence`.
  func noteWritten(_ bytes: Int, _ state: inout WriterState) {
    if state.unsyncedBytes == 0 { state.unsyncedSince = environment.clock.monotonicNanoseconds() }
    state.unsyncedBytes += bytes
    updateIsCrowded(state)
    state.loggedBytes += bytes
    state.written = state.sequence
    if PlantedBug.isOn(.durableTooSoon) { advanceDurable(to: state.written, &state) }
    // The frames just written carry it in their headers.
    state.durableInLog = state.durable
  }

  /// Refuses all writes until the store is reopened, since the outcome of one is unknown.
  func poison(_ state: inout WriterState, _ cause: any Error, reason: String) -> TidemarkError {
    let error = TidemarkError.unknownOutcome(reason, cause)
    state.poison = error
    return error
  }

  /// Makes the index anew after a batch that failed midway: the index may know entries that are in
  /// no frame, and the next batch will take their sequences. Staged frames are written first: the
  /// index is made from the log. If this fails, nothing can be read or written before a reopening.
  private func discardFailedBatch(after error: IndexOrStoreError, _ state: inout WriterState) {
    do {
      try writeStaged(&state, mayCompress: false)
      try reader.rebuildIndex(ignoresRuns: error.voidsRun)
    } catch {
      // If `writeStaged` has failed, the poison that it set says more.
      state.poison =
        state.poison
        ?? TidemarkError(
          .inputOutput,
          "a batch failed midway, and the index could not be made anew; nothing of it is kept",
          cause: error)
      reader.distrustIndex()
    }
  }
}
