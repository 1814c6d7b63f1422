extension LogWriter {
  /// Returns once everything up to a sequence is on the disk. One caller, the leader, syncs for all
  /// that have written by then; the others wait. The leader holds no lock during the sync.
  /// - Parameters:
  ///   - sequence: the last that is to be on the disk.
  ///   - epoch: the epoch that its commit names; nil takes the sequence's epoch at the call.
  /// - Throws: `unknownOutcome` when resuming has found that it was lost before the sync.
  package func sync(through sequence: UInt64, of epoch: UInt64? = nil) throws(TidemarkError) {
    var epoch = epoch
    while true {
      let turn = try writing.withLock {
        (state: inout WriterState) throws(TidemarkError) -> SyncTurn in
        let expected = epoch ?? state.manifest.epoch(of: sequence)
        epoch = expected
        // After a suspension the sequence may be gone, or given out again in another epoch.
        guard sequence <= state.sequence, state.manifest.epoch(of: sequence) == expected else {
          throw TidemarkError(
            .unknownOutcome,
            "the store was suspended before the entry was on the disk, and resumed without it",
            sequences: sequence...sequence)
        }
        if state.durable >= sequence { return .done }
        // A failure of any writer leaves the outcome of everything unsynced unknown.
        if let poison = state.poison, poison.code == .unknownOutcome, sequence <= state.sequence {
          throw poison
        }
        try state.checkWritable()
        if state.isSyncing { return .wait }
        try writeStaged(&state, mayCompress: false)
        // No active segment: what is visible was synced when it was sealed or recovered.
        guard let appender = state.appender else { return .done }
        state.isSyncing = true
        return .lead(appender, goal: state.written, bytes: state.unsyncedBytes)
      }
      switch turn {
      case .done: return
      case .wait: writing.wait { !$0.isSyncing || $0.durable >= sequence || $0.isClosed }
      case .lead(let appender, let goal, let bytes): try lead(appender, goal: goal, bytes: bytes)
      }
    }
  }

  private enum SyncTurn {
    case done
    case wait
    case lead(SegmentAppender, goal: UInt64, bytes: Int)
  }

  private func lead(_ appender: SegmentAppender, goal: UInt64, bytes: Int) throws(TidemarkError) {
    var failure: FileSystemError?
    do { try appender.sync() } catch { failure = error }
    let failed = failure
    // Also after a failure: whoever waits must see the poison.
    defer { writing.broadcast() }
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      state.isSyncing = false
      if let failed {
        // A sync is never retried and believed: the kernel may have dropped what it could not
        // write, and the next sync would answer for nothing.
        throw poison(
          &state, TidemarkError(failed, while: "syncing the log"), reason: "syncing the log failed")
      }
      try checkLock(&state)
      // Others may have written during the sync, and sealing a segment may have set it to 0.
      state.unsyncedBytes -= min(bytes, state.unsyncedBytes)
      updateIsCrowded(state)
      state.unsyncedSince = environment.clock.monotonicNanoseconds()
      advanceDurable(to: goal, &state)
    }
    store.observers.notify()
  }

  /// Notes that everything up to a sequence is on the disk; a lower one than before is ignored.
  func advanceDurable(to sequence: UInt64, _ state: inout WriterState) {
    guard sequence > state.durable else { return }
    state.durable = sequence
    if sequence >= state.written { state.unsyncedBytes = 0 }
    updateIsCrowded(state)
    reader.noteDurable(sequence)
  }

  /// Makes everything written so far durable.
  package func flush() throws(TidemarkError) {
    let (last, epoch) = try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      return (state.sequence, state.manifest.epoch(of: state.sequence))
    }
    try sync(through: last, of: epoch)
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try carryDurableForward(&state)
    }
  }

  /// Writes a frame without entries whose header says how far the log is synced, so that recovery
  /// knows it: every frame header carries the `durable` of the moment when it was written.
  func carryDurableForward(_ state: inout WriterState) throws(TidemarkError) {
    guard state.durableInLog < state.durable, state.poison == nil, state.stagedBytes == 0,
      let appender = state.appender, !appender.isEmpty
    else { return }
    try checkLock(&state)
    do { try appender.writeEmptyFrame(durableThrough: state.durable) } catch {
      // The frame holds nothing that anybody wrote: a full disk just leaves it out.
      if case .system(let cause) = error, cause.operation == .allocate { return }
      throw poison(&state, TidemarkError(error), reason: "writing to the log failed midway")
    }
    state.durableInLog = state.durable
  }

  /// Through which sequence the log must be synced before more is written; nil while all is well.
  package func goalForRoom() -> (sequence: UInt64, epoch: UInt64)? {
    // Every write asks, so the lock is only taken when the flag is set.
    guard isCrowded.isSet else { return nil }
    return writing.withLock { state in state.goalForRoom }
  }

  /// Sets the flag that lets writers wait; called with every change of `unsyncedBytes`.
  func updateIsCrowded(_ state: borrowing WriterState) {
    isCrowded.isSet = state.unsyncedBytes >= Limits.unsyncedBytesBeforeWait
  }

  /// Blocks while too much of the log is not synced.
  func waitForRoom() throws(TidemarkError) {
    guard let goal = goalForRoom() else { return }
    let start = store.eventStart()
    try sync(through: goal.sequence, of: goal.epoch)
    store.tell(.stalled, from: start)
  }

  /// Writes and syncs what has waited for long enough; called by a background thread.
  /// - Returns: whether the disk has space for more background work.
  func doTimedWork() throws(TidemarkError) -> Bool {
    let now = environment.clock.monotonicNanoseconds()
    var syncGoal: UInt64?
    let hasSpace = try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      guard state.canWrite, !state.isClosed, !state.isSuspended, state.poison == nil else {
        return false
      }
      if state.stagedBytes > 0, now &- state.stagedSince >= Limits.stagedNanoseconds {
        try writeStaged(&state, mayCompress: true)
      }
      let age = now &- state.unsyncedSince
      // A full segment is synced early, so that sealing it, which blocks writers, has less to sync.
      let isFull = (state.appender?.length ?? 0) >= segmentBytes(state)
      let most = isFull ? Limits.unsyncedBytesAtSealing + 1 : Limits.unsyncedBytesBeforeSync
      if state.unsyncedBytes >= most
        || (state.unsyncedBytes > 0 && age >= Limits.unsyncedNanoseconds)
      {
        syncGoal = state.written
      } else if state.unsyncedBytes == 0, age >= Limits.unsyncedNanoseconds {
        try carryDurableForward(&state)
      }
      // The ballast, the last space of a full disk, is for closing and compaction.
      return !ballast.isInUse.isSet
    }
    if let syncGoal { try sync(through: syncGoal) }
    return hasSpace
  }
}
