extension Engine {
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
      let turn = try writer.withLock {
        (state: inout WriterState) throws(TidemarkError) -> SyncTurn in
        let own = epoch ?? state.manifest.epoch(of: sequence)
        epoch = own
        // The sequence may be somebody else's by now.
        guard sequence <= state.sequence, state.manifest.epoch(of: sequence) == own else {
          throw Self.lostBeforeSync(sequence)
        }
        if state.durable >= sequence { return .done }
        // Somebody else's failure leaves the outcome of everything unsynced unknown.
        if let poison = state.poison, poison.code == .unknownOutcome, sequence <= state.sequence {
          throw poison
        }
        try checkWritable(state)
        if state.isSyncing { return .wait }
        try writeStaged(&state, mayCompress: false)
        guard let appender = state.appender else { return .done }
        state.isSyncing = true
        return .lead(appender, goal: state.written, bytes: state.unsyncedBytes)
      }
      switch turn {
      case .done: return
      case .wait:
        writer.wait { !$0.isSyncing || $0.durable >= sequence || $0.isClosed }
      case .lead(let appender, let goal, let bytes):
        try lead(appender, goal: goal, bytes: bytes)
      }
    }
  }

  /// Whether everything up to a sequence of an epoch is on the disk.
  package func isDurable(_ sequence: UInt64, of epoch: UInt64) -> Bool {
    reading.withLock { sequence <= $0.durable && $0.hasKept(sequence, of: epoch) }
  }

  private static func lostBeforeSync(_ sequence: UInt64) -> TidemarkError {
    TidemarkError(
      .unknownOutcome,
      "the store was suspended before the entry was on the disk, and resumed without it",
      sequences: sequence...sequence)
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
    defer { writer.broadcast() }
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      state.isSyncing = false
      if let failed {
        // A sync is never retried and believed: the kernel may have dropped what it could not
        // write, and the next sync would answer for nothing.
        throw poison(
          &state, TidemarkError(failed, while: "syncing the log"), reason: "syncing the log failed")
      }
      try checkLock(&state)
      state.unsyncedBytes -= min(bytes, state.unsyncedBytes)
      state.unsyncedSince = environment.clock.monotonicNanoseconds()
      advanceDurable(to: goal, &state)
    }
    notifyObservers()
  }

  /// Takes note that everything up to a sequence is on the disk.
  func advanceDurable(to sequence: UInt64, _ state: inout WriterState) {
    guard sequence > state.durable else { return }
    state.durable = sequence
    // Also when a segment was sealed: then nothing waits for a sync any more.
    if sequence >= state.written { state.unsyncedBytes = 0 }
    reading.withLock { $0.durable = sequence }
  }

  /// Makes everything written so far durable.
  package func flush() throws(TidemarkError) {
    let (last, epoch) = try writer.withLock {
      (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      return (state.sequence, state.manifest.epoch(of: state.sequence))
    }
    try sync(through: last, of: epoch)
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
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
      throw poison(&state, describe(error), reason: "writing to the log failed midway")
    }
    state.durableInLog = state.durable
  }

  /// Through which sequence the log must be synced before more is written; nil while there is
  /// room.
  package func goalForRoom() -> (sequence: UInt64, epoch: UInt64)? {
    writer.withLock { state in state.goalForRoom }
  }

  /// The work that is due after a commit, where no thread does it.
  func afterCommit() {
    // The commit is done, whatever becomes of this: a failed sync poisons the writer, which the
    // next write reports, and an image that could not be written is tried again.
    if configuration.doesBackgroundWorkInline { try? doBackgroundWork() }
    notifyObservers()
  }

  /// Does what is due and nobody waits for; called by a thread of the store's, about twenty
  /// times a second, or inline in simulations.
  package func doBackgroundWork() throws(TidemarkError) {
    let now = environment.clock.monotonicNanoseconds()
    var syncGoal: UInt64?
    var runIsDue = false
    var ballastIsDue = false
    var mergeIsDue = false
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      guard state.canWrite, !state.isClosed, !state.isSuspended, state.poison == nil else {
        return
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
      guard !state.ballast.isInUse else { return }
      runIsDue = state.runs.isDue(every: configuration.imageEveryBytes)
      ballastIsDue = state.ballast.isDue(from: configuration.ballastFromLogBytes)
      // A store in which nobody writes stays closed cleanly.
      mergeIsDue = state.compactor.mergeIsDue && state.appender != nil
      if mergeIsDue { state.compactor.noteMerge() }
      if state.appender != nil, state.runs.takeTurnToEven() {
        let least = configuration.smallRunKeys
        runIsDue = runIsDue || reading.withLock { $0.index.runs.isUneven(least: least) }
      }
    }
    if let syncGoal { try sync(through: syncGoal) }
    if ballastIsDue { provideBallast() }
    if mergeIsDue { try mergeSmallSegments() }
    if runIsDue { try writeRun(.asDue) }
    // With threads, one of the store's own does that.
    if configuration.doesBackgroundWorkInline {
      try compactIfWorthwhile()
      try sweepAttachmentsIfDue()
    }
  }

  /// Calls `body` after every change of the durable or the visible sequence.
  /// - Returns: what to pass to `stopObserving`.
  package func observe(_ body: @escaping @Sendable () -> Void) -> Int { observers.observe(body) }

  package func stopObserving(_ token: Int) { observers.stopObserving(token) }

  func notifyObservers() { observers.notify() }
}

extension WriterState {
  /// Through which sequence the log must be synced before more is written.
  var goalForRoom: (sequence: UInt64, epoch: UInt64)? {
    guard unsyncedBytes >= Limits.unsyncedBytesBeforeWait, poison == nil, !isClosed,
      durable < written
    else { return nil }
    return (written, manifest.epoch(of: written))
  }
}
