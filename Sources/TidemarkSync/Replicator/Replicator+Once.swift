internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension Replicator {
  /// Replicates until everything that was pending at the call is settled or parked, or comes after
  /// what is, and what stood in the feed is taken.
  ///
  /// For background tasks and command lines; where the replicator runs already, that one does it.
  /// As long as a busy peer has asked for patience, also before a restart, it is not called: that
  /// is a failure, too. What is written meanwhile may go along or stay. What a ``SyncBudget`` does
  /// not let through is not waited for either: the report says why.
  /// - Parameter deadline: until when failures of the peer are tried again; at this time the call
  ///   ends and the report says what is left. Without one the first failure ends it.
  /// - Throws: without a deadline, `peerFailed` when the peer fails; in any case
  ///   `undecidedDeletions`, `tooManyParked`, `cancelled`, and what the own store throws when it
  ///   fails.
  public func syncOnce(
    deadline: ContinuousClock.Instant? = nil
  ) async throws(TidemarkError) -> SyncReport {
    try await TidemarkError.asSyncError { try await syncUntil(deadline) }
  }

  private func syncUntil(_ deadline: ContinuousClock.Instant?) async throws -> SyncReport {
    let (goal, retries) = (store.lastSequence, deadline != nil)
    if !retries, let busy = try await host.perform({ try $0.patience() }) { throw busy }
    let before = try await host.perform { $0.totals }
    let end = deadline ?? .now + .seconds(1 << 31)
    let outcome = try await withDeadline({ end }) { [self] () async throws -> HoldReason? in
      while true {
        if let held = try await drive(.once, { try await $0.once(goal, retries: retries) }) {
          return held
        }
        if let held = try await joinRun(retries: retries) { return held }
      }
    }
    let through = store.lastSequence
    let (totals, pending, isBlocked) = try await host.perform { state in
      let isBlocked = try state.session().isBlocked(through: goal)
      return (state.totals, try state.pendingSummary(), isBlocked)
    }
    note(pending, through: through)
    let (isLate, held) = (outcome == nil, outcome ?? nil)
    return SyncReport(
      totals: totals - before, pending: pending,
      isComplete: !isLate && !isBlocked && held == nil, heldBack: held,
      lastError: isLate ? status.lastError : nil)
  }

  /// Whether waiting does not mend it.
  private func needsSomebody(_ error: any Error) -> Bool {
    error is UndecidedDeletions || error is TooManyParked
  }

  /// Makes rounds until everything that was written up to a sequence is settled.
  private func once(_ goal: UInt64, retries: Bool) async throws -> HoldReason? {
    var backoff = newBackoff()
    let direction = configuration.direction
    try await heedPatience()
    try await host.perform { try $0.session().delayed.forgetFaults() }
    while true {
      let pokes = pokes.count
      do {
        let held = try await round(fresh: true, pokes: pokes) { state in
          try state.session().isSettled(through: goal, direction)
        }
        // A change on which the peer has failed, or that it wants later, goes then.
        guard retries, held == nil, direction.pushes,
          let rest = try await host.perform({ try $0.session().timeToRetry })
        else { return held }
        _ = try await sleep(rest, unless: self.pokes, beyond: pokes)
      } catch {
        try Task.checkCancellation()
        guard retries, !needsSomebody(error) else {
          await note(error)
          throw error
        }
        try await recover(from: error, pokes: pokes, &backoff)
      }
    }
  }

  /// Lets the replicator that runs do a round at once, and waits for its end.
  /// - Returns: nil when the replicator was stopped first.
  private func joinRun(retries: Bool) async throws -> HoldReason?? {
    poke()
    let wanted = pokes.count
    let round = try await rounds.first { () -> Round?? in
      let (round, driver) = state.withLock { ($0.lastRound, $0.driver) }
      if let round, round.pokes >= wanted {
        // A replicator that is stopped stops no other round.
        guard case .failure(let error) = round.heldBack,
          error is CancellationError || retries && !needsSomebody(error)
        else { return round }
      }
      return driver == .run ? nil : .some(nil)
    }
    return try round.map { try $0.heldBack.get() }
  }
}

extension SyncSession {
  /// Whether everything up to a sequence is settled, parked or left to the user, and all of the
  /// feed was taken; what others go on writing does not count.
  func isSettled(through sequence: UInt64, _ direction: SyncDirection) -> Bool {
    guard let range, batchInFlight == nil else { return false }
    if direction.pulls, progress.cursor.offset < range.head || isFetching { return false }
    guard !outbox.waiting.values.contains(where: { $0.state == .conflict }) else { return false }
    guard direction.pushes else { return true }
    // Changes that a resolver has made in answer to a conflict go along.
    return outbox.frontier >= max(sequence, resolvedThrough)
      && outbox.pending.first.map { $0 > sequence } ?? true
  }
}
