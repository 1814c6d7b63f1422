extension LogWriter {
  /// Returns once everything up to a sequence is on the disk.
  ///
  /// One caller syncs for all that have written by then; the others wait for it.
  /// - Parameters:
  ///   - sequence: the last that is to be on the disk.
  ///   - epoch: the one that its commit names; nil is the one of now.
  /// - Throws: `unknownOutcome` when resuming has found that it was lost before the sync.
  package func sync(through sequence: UInt64, of epoch: UInt64? = nil) throws(TidemarkError) {
    var epoch = epoch
    while true {
      let turn = try writing.withLock {
        (state: inout WriterState) throws(TidemarkError) -> SyncTurn in
        let own = epoch ?? state.manifest.epoch(of: sequence)
        epoch = own
        // The sequence may be somebody else's by now.
        guard sequence <= state.sequence, state.manifest.epoch(of: sequence) == own else {
          throw .lostBeforeSync(sequence)
        }
        if state.durable >= sequence { return .done }
        // Somebody else's failure leaves the outcome of everything unsynced unknown.
        if let poison = state.poison, poison.code == .unknownOutcome, sequence <= state.sequence {
          throw poison
        }
        try state.checkWritable()
        if state.isSyncing { return .wait }
        try writeStaged(&state, mayCompress: false)
        guard let appender = state.appender else { return .done }
        state.isSyncing = true
        return .lead(appender, goal: state.written, bytes: state.unsyncedBytes)
      }
      switch turn {
      case .done: return
      case .wait:
        writing.wait { !$0.isSyncing || $0.durable >= sequence || $0.isClosed }
      case .lead(let appender, let goal, let bytes):
        try lead(appender, goal: goal, bytes: bytes)
      }
    }
  }

  private enum SyncTurn {
    case done
    case wait
    case lead(SegmentAppender, goal: UInt64, bytes: Int)
  }

  private func lead(
    _ appender: SegmentAppender, goal: UInt64, bytes: Int
  ) throws(TidemarkError) {
    var failure: FileSystemError?
    do { try appender.sync() } catch { failure = error }
    let failed = failure
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
      state.unsyncedBytes -= min(bytes, state.unsyncedBytes)
      lookForRoom(state)
      state.unsyncedSince = environment.clock.monotonicNanoseconds()
      advanceDurable(to: goal, &state)
    }
    store.observers.notify()
  }

  /// Takes note that everything up to a sequence is on the disk.
  func advanceDurable(to sequence: UInt64, _ state: inout WriterState) {
    guard sequence > state.durable else { return }
    state.durable = sequence
    // Also when a segment was sealed: then nothing waits for a sync any more.
    if sequence >= state.written { state.unsyncedBytes = 0 }
    lookForRoom(state)
    reader.noteDurable(sequence)
  }

  /// Makes everything written so far durable.
  package func flush() throws(TidemarkError) {
    let (last, epoch) = try writing.withLock {
      (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      return (state.sequence, state.manifest.epoch(of: state.sequence))
    }
    try sync(through: last, of: epoch)
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try carryDurableForward(&state)
    }
  }

  /// Lets the log itself say how far it is synced.
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

  /// Through which sequence the log must be synced before more is written; nil while there is
  /// room.
  package func goalForRoom() -> (sequence: UInt64, epoch: UInt64)? {
    // Every write asks.
    guard isCrowded.isSet else { return nil }
    return writing.withLock { state in state.goalForRoom }
  }

  /// Says whether those who write must wait.
  func lookForRoom(_ state: borrowing WriterState) {
    isCrowded.isSet = state.unsyncedBytes >= Limits.unsyncedBytesBeforeWait
  }

  /// Blocks while too much of the log is not synced.
  func waitForRoom() throws(TidemarkError) {
    if let goal = goalForRoom() { try sync(through: goal.sequence, of: goal.epoch) }
  }

  /// Writes and syncs what has waited for long enough.
  /// - Returns: whether there is space on the disk for work that nobody waits for.
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
      let isFull = (state.appender?.length ?? 0) >= segmentBytes(state)
      let most = isFull ? Limits.unsyncedBytesAtSealing + 1 : Limits.unsyncedBytesBeforeSync
      if state.unsyncedBytes >= most
        || (state.unsyncedBytes > 0 && age >= Limits.unsyncedNanoseconds)
      {
        syncGoal = state.written
      } else if state.unsyncedBytes == 0, age >= Limits.unsyncedNanoseconds {
        try carryDurableForward(&state)
      }
      // The last space of a full disk is for those who have asked for it.
      return !ballast.isInUse.isSet
    }
    if let syncGoal { try sync(through: syncGoal) }
    return hasSpace
  }
}
