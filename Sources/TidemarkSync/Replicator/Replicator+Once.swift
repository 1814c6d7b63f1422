internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension Replicator {
  /// Replicates until every entry that was pending at the call is synced, parked or blocked by one
  /// that is, and the feed is pulled to its end.
  ///
  /// For background tasks and command lines; if the replicator runs already, it does the round.
  /// Before the end of a peer's `Retry-After`, also one from before a restart, the peer is not
  /// called: that counts as a failure, too. Entries written meanwhile may be sent or stay pending.
  /// Entries that a ``SyncBudget`` holds back are not waited for: the report says why.
  /// - Parameter deadline: until when calls that failed are retried; at this time the call ends and
  ///   the report says what is left. Without one the first failure ends it.
  /// - Throws: without a deadline, `peerFailed` when the peer fails; in any case
  ///   `undecidedDeletions`, `tooManyParked`, `cancelled`, and errors of this store.
  public func syncOnce(
    deadline: ContinuousClock.Instant? = nil
  ) async throws(TidemarkError) -> SyncReport {
    try await TidemarkError.asSyncError { try await syncUntil(deadline) }
  }

  private func syncUntil(_ deadline: ContinuousClock.Instant?) async throws -> SyncReport {
    let (goal, retries) = (store.lastSequence, deadline != nil)
    if !retries, let busy = try await host.perform({ try $0.savedRetryAfter() }) { throw busy }
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

  /// Whether an error needs a decision of the user, so that a retry is useless.
  private func needsUser(_ error: any Error) -> Bool {
    error is UndecidedDeletionsError || error is TooManyParkedError
  }

  /// Makes rounds until everything written up to a sequence is decided and the feed is pulled.
  private func once(_ goal: UInt64, retries: Bool) async throws -> HoldReason? {
    var backoff = newBackoff()
    let direction = configuration.direction
    try await waitForRetryAfter()
    try await host.perform { try $0.session().delayed.forgetFaults() }
    while true {
      let retryRequests = retryRequests.count
      do {
        let held = try await round(fresh: true, retryRequests: retryRequests) { state in
          try state.session().isSettled(through: goal, direction)
        }
        // Waits for changes that the peer asked to have resent later.
        guard retries, held == nil, direction.pushes,
          let rest = try await host.perform({ try $0.session().timeToRetry })
        else { return held }
        _ = try await sleep(rest, unless: self.retryRequests, beyond: retryRequests)
      } catch {
        try Task.checkCancellation()
        guard retries, !needsUser(error) else {
          await note(error)
          throw error
        }
        try await recover(from: error, retryRequests: retryRequests, &backoff)
      }
    }
  }

  /// Has the running replicator do a round at once, and waits for the end of the round.
  /// - Returns: nil when the replicator was stopped first.
  private func joinRun(retries: Bool) async throws -> HoldReason?? {
    retryNow()
    let wanted = retryRequests.count
    let round = try await rounds.first { () -> Round?? in
      let (round, driver) = state.withLock { ($0.lastRound, $0.driver) }
      if let round, round.retryRequests >= wanted {
        // If it was stopped or will retry, another round may still succeed.
        guard case .failure(let error) = round.heldBack,
          error is CancellationError || retries && !needsUser(error)
        else { return round }
      }
      return driver == .run ? nil : .some(nil)
    }
    return try round.map { try $0.heldBack.get() }
  }
}

extension SyncSession {
  /// Whether everything up to a sequence is synced, parked or left to the user, and the feed is
  /// pulled to its end as known; later writes do not count.
  func isSettled(through sequence: UInt64, _ direction: SyncDirection) -> Bool {
    guard let range, batchInFlight == nil else { return false }
    if direction.pulls, progress.cursor.offset < range.head || isFetching { return false }
    guard !outbox.waiting.values.contains(where: { $0.state == .conflict }) else { return false }
    guard direction.pushes else { return true }
    // Changes that a resolver has written are sent as well.
    return outbox.frontier >= max(sequence, resolvedThrough)
      && outbox.pending.first.map { $0 > sequence } ?? true
  }
}
