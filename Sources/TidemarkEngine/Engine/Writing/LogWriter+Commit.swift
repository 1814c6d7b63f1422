/// The outcome of a commit.
package struct CommitResult: Sendable, Hashable {
  /// The sequences that it took; empty when nothing changed.
  package var sequences: Range<UInt64>
  /// The part of them that the caller has asked for: derived entries stand behind them.
  package var ownSequences: Range<UInt64>
  /// The last sequence that a durable commit promises. A batch that changed nothing promises what
  /// it saw: who deletes a key and hears that it is gone already must not find it again.
  package var lastSeen: UInt64 { sequences.upperBound - 1 }
  /// How many operations made an entry.
  package var applied: Int { sequences.count }
  package var commitTime: UInt64
  /// The epoch of the last that it promises.
  package var epoch: UInt64
}

extension CommitResult {
  /// - Parameter commitTime: nil takes that of the last commit.
  init(
    of sequences: Range<UInt64>, in state: borrowing WriterState, at commitTime: HybridTime? = nil,
    ownEnd: UInt64? = nil
  ) {
    self.init(
      sequences: sequences, ownSequences: sequences.lowerBound..<(ownEnd ?? sequences.upperBound),
      commitTime: (commitTime ?? state.commitTime).rawValue,
      epoch: state.manifest.epoch(of: sequences.upperBound - 1))
  }
}

extension LogWriter {
  /// Commits up to `buffered`; `durable` remains to be awaited by `sync(through:of:)`.
  ///
  /// Staging makes the batch visible to readers as a whole; the durability only decides when the
  /// caller is answered.
  /// - Parameter waitsForRoom: whether to block while too much of the log is not synced.
  func stage(
    _ batch: OperationBatch, _ durability: Durability, waitsForRoom: Bool
  ) throws(TidemarkError) -> CommitResult {
    if waitsForRoom { try waitForRoom() }
    while true {
      let version = derivationVersion
      let change = try derivation.object?.prepare(batch)
      let result = try writing.withLock {
        (state: inout WriterState) throws(TidemarkError) -> CommitResult? in
        try state.checkWritable()
        // Other indexes may have been declared meanwhile, or another process have had the store.
        guard version == derivationVersion else { return nil }
        if let takeovers = batch.takeovers, takeovers != derivation.object?.takeovers ?? 0 {
          throw TidemarkError(.cancelled, "another process has had the store meanwhile")
        }
        var batch = batch
        if PlantedBug.isOn(.rowsInOwnCommit), let change {
          let first = try stage(batch, .buffered, &state)
          var rows = OperationBatch()
          _ = try change.add(to: &rows)
          _ = try stage(rows, durability, &state)
          return first
        }
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

  /// Lets a thread compress blocks of a batch while it is being staged, if it goes to the kernel
  /// compressed right after that.
  private func beginPacking(_ batch: OperationBatch, _ durability: Durability) -> BatchPacking? {
    guard durability == .buffered, batch.count > 1,
      batch.arena.count >= Limits.compressFromBytes
    else { return nil }
    return packer?.begin()
  }

  /// Turns conditions on validator hashes into conditions on the sequences that carry them now.
  ///
  /// Nobody else can write meanwhile. Hashes are in the log only, so what is staged goes there.
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

  /// Takes sequences, makes the entries visible and leaves them in frames to be written.
  private func stageLocked(
    _ batch: OperationBatch, _ packing: BatchPacking?, _ state: inout WriterState
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
        // Nothing of the batch is in a frame of the log yet, but the index may know a part.
        if staging.hasChangedIndex || error.voidsImage { discardFailedBatch(after: error, &state) }
        attempt += 1
        guard attempt == 1, error.voidsImage, state.poison == nil else {
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
      of: first..<staging.next, in: state, at: commitTime, ownEnd: staging.ownEnd)
  }

  /// Writes what is staged into the active segment.
  /// - Parameter keepsFrameMemory: whether single puts go on, which use a frame's memory again.
  func writeStaged(
    _ state: inout WriterState, mayCompress: Bool, keepsFrameMemory: Bool = false
  ) throws(TidemarkError) {
    guard state.stagedBytes > 0, let appender = state.appender else { return }
    // A write that failed has left something unknown in the log: nothing may be put over it.
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

  /// Makes sure that the store's directory and LOCK are those that were opened: else the files may
  /// have no names any more, or another process may write to them. It is looked at before the first
  /// bytes after a sync are written, before a sync is believed, and before MANIFEST is.
  func checkLock(_ state: inout WriterState) throws(TidemarkError) {
    guard let lock = state.lock, !lock.isCurrent else { return }
    throw poison(
      &state,
      TidemarkError(
        .inputOutput, "\(path)/\(StoreLayout.lock) is no longer the file that was locked"),
      reason: "the store's directory or its LOCK was removed, moved or replaced")
  }

  /// Books that everything staged is with the kernel, in so many bytes.
  func noteWritten(_ bytes: Int, _ state: inout WriterState) {
    if state.unsyncedBytes == 0 {
      state.unsyncedSince = environment.clock.monotonicNanoseconds()
    }
    state.unsyncedBytes += bytes
    lookForRoom(state)
    state.loggedBytes += bytes
    state.written = state.sequence
    if PlantedBug.isOn(.durableTooSoon) { advanceDurable(to: state.written, &state) }
    state.durableInLog = state.durable
  }

  /// Refuses all writes until the store is reopened, since the outcome of one is unknown.
  func poison(
    _ state: inout WriterState, _ cause: any Error, reason: String
  ) -> TidemarkError {
    let error = TidemarkError.unknownOutcome(reason, cause)
    state.poison = error
    return error
  }

  /// Sets the index right after a batch that failed midway: it may know entries that are in no
  /// frame, whose sequences the next batch will take.
  ///
  /// If that fails, too, nothing can be read or written until the store is reopened.
  private func discardFailedBatch(
    after error: IndexOrStoreError, _ state: inout WriterState
  ) {
    do {
      try writeStaged(&state, mayCompress: false)
      try reader.rebuildIndex(ignoresRuns: error.voidsImage)
    } catch {
      // An error of writing the log, if there was one, is what counts.
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
