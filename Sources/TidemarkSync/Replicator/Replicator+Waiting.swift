internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension Replicator {
  // MARK: Nothing to do

  /// Waits for news, a local write or a longer feed, with a long poll if the peer supports it.
  /// - Parameter asked: when the peer last gave its feed's end, in monotonic nanoseconds. Frequent
  ///   local writes delay the next hello no longer than the poll interval.
  /// - Returns: whether the next round starts with a hello even without a retry request.
  func idle(_ seen: UInt64, retryRequests requested: UInt64, asked: inout UInt64) async throws
    -> Bool
  {
    let clock = store.engine.environment.clock
    let start = clock.monotonicNanoseconds()
    let left = pollInterval - .nanoseconds(Int64(clamping: start &- asked))
    // Checked first, since local writes may never pause.
    if configuration.direction.pulls, left <= .zero { return true }
    // A write or retry request came meanwhile, perhaps only this replicator's own commit.
    guard news.count == seen else { return false }
    try await host.perform { state in try state.recordStatus() }
    await countPending(always: true)
    change { $0.phase = .idle }
    let rest = try await host.perform { state in try state.session().timeToRetry }
    guard configuration.direction.pulls else {
      if let rest { return try await sleep(rest, unless: news, beyond: seen) }
      await news.wait(beyond: seen)
      return false
    }
    guard peer.capabilities.canWait, configuration.longPoll > .zero else {
      // Ended by a local write, a retry request, or the time.
      return try await sleep(min(left, rest ?? left), unless: news, beyond: seen)
    }
    guard let (answer, session) = try await longPoll(seen, retryRequests: requested) else {
      return false
    }
    // Saves verdicts that are in memory only: no next batch was formed during the long poll.
    try await host.perform { try $0.session().writeDown() }
    asked = clock.monotonicNanoseconds()
    if answer.entries.isEmpty, answer.cursor.offset >= answer.range.head,
      clock.monotonicNanoseconds() &- start < Self.shortestPollNanoseconds
    {
      // A peer that answers long polls at once must not be called in a tight loop.
      let pause = min(.seconds(1), configuration.pollInterval)
      _ = try await sleep(pause, unless: news, beyond: news.count)
    }
    try await round(fresh: false, retryRequests: requested, (.pullAnswer(answer), session))
    return false
  }

  private static let shortestPollNanoseconds: UInt64 = 500_000_000

  /// The interval of the hellos that are a safety net. With long polls at least a second, whatever
  /// is configured for peers without them.
  private var pollInterval: Duration {
    let waits = peer.capabilities.canWait && configuration.longPoll > .zero
    return max(configuration.pollInterval, waits ? .seconds(1) : .milliseconds(10))
  }

  /// Makes a pull that the peer answers when its feed has grown. A retry request or a local write
  /// to be sent cancels it; a write that is not sent, such as a cached value, does not, since each
  /// cancelled call may cost a connection.
  /// - Returns: nil if a retry request or a local write came first.
  private func longPoll(
    _ seen: UInt64, retryRequests requested: UInt64
  ) async throws -> (PullAnswer, session: Int)? {
    let (direction, budget) = (configuration.direction, configuration.budget)
    let wait = UInt32(clamping: configuration.longPoll.wholeMilliseconds)
    let (request, session) = try await host.perform { [owner] state in
      try state.check(owner)
      return (try state.session().pullRequest(waitMilliseconds: wait), state.sessions)
    }
    let result = Lock<Result<PullAnswer, any Error>?>(nil)
    let call = Task { [peer, news] in
      let outcome = await Result(of: { try await peer.pull(request) })
      result.withLock { $0 = outcome }
      news.raise()
    }
    defer { call.cancel() }
    var seen = seen
    while true {
      await news.wait(beyond: seen)
      try Task.checkCancellation()
      seen = news.count
      if let outcome = result.withLock({ $0 }) {
        do { return (try outcome.get(), session) } catch { try await giveUp(error) }
      }
      guard retryRequests.count == requested,
        try await host.perform({ try $0.hasNothingToDo(direction, budget) })
      else { return nil }
      await countPending(always: true)
    }
  }

  // MARK: Held back

  /// The longest sleep, so that a clock that was set is noticed.
  private static let longestHold = Duration.seconds(900)
  /// The shortest sleep, so that a clock that stands still causes no tight loop.
  private static let shortestHoldMilliseconds: Int64 = 1_000

  func hold(_ reason: HoldReason, _ seen: UInt64) async throws {
    guard news.count == seen else { return }
    try await host.perform { state in try state.recordStatus() }
    await countPending(always: true)
    change { $0.phase = .heldBack(reason) }
    var wait = Self.longestHold
    if case .budget(let until) = reason {
      let left = until.milliseconds - store.engine.environment.clock.now().milliseconds
      wait = min(wait, .milliseconds(max(Self.shortestHoldMilliseconds, left)))
    }
    _ = try await sleep(wait, unless: news, beyond: seen)
  }

  // MARK: After a failure

  /// Waits until the next retry, as long as the error and the backoff say.
  /// - Throws: the error, if no retry can mend it.
  func recover(
    from error: any Error, retryRequests requested: UInt64, _ backoff: inout Backoff
  ) async throws {
    try Task.checkCancellation()
    await note(error)
    let environment = store.engine.environment
    if let error = error as? TidemarkError {
      if error.code == .suspended {
        change { $0.phase = .paused(.storeSuspended) }
        return try await news.first {
          store.isSuspended && !store.engine.reader.isClosed ? nil : ()
        }
      }
      guard error.mayPass else { throw error }
    }
    let asked = (error as? PeerError)?.retryAfter
    let reason = pauseReason(error)
    let wait = backoff.next(
      environment.random, at: environment.clock.monotonicNanoseconds(),
      retryAfter: reason == nil ? asked : configuration.longestRetry)
    // A retry request means that the reason for the pause may be gone, so it ends the pause at
    // once.
    let firm = reason == nil ? wait.firm : .zero
    if let reason {
      await countPending(always: true)
      change { $0.phase = .paused(reason) }
    } else {
      if asked ?? .zero > .zero {
        _ = try? await host.perform { try $0.recordRetryAfter(wait.total) }
      }
      await countPending(always: true)
      showWaiting(for: wait.total)
    }
    try await sleepFirmly(for: firm)
    // Local writes do not end the wait: after an outage all clients in use would retry at the same
    // time.
    _ = try await sleep(wait.total - firm, unless: retryRequests, beyond: requested)
  }

  private func pauseReason(_ error: any Error) -> SyncStatus.PauseReason? {
    switch error {
    case let error as PeerError where error.kind == .unauthorized: .unauthorized
    case let error as PeerError where error.kind == .forbidden: .forbidden
    case let error as UndecidedDeletionsError: .deletionsToDecide(keys: error.keys)
    case let error as TooManyParkedError: .tooManyParked(entries: error.entries)
    default: nil
    }
  }

  /// Waits for the end of a `Retry-After` that was saved before this replicator was started.
  func waitForRetryAfter() async throws {
    guard let busy = try await host.perform({ try $0.savedRetryAfter() }) else { return }
    let left = busy.retryAfter ?? .zero
    showWaiting(for: left)
    try await sleepFirmly(for: left)
  }

  private func showWaiting(for time: Duration) {
    let now = store.engine.environment.clock.now().milliseconds
    let end = Timestamp(milliseconds: now + Int64(clamping: time.wholeMilliseconds))
    change { $0.phase = .waiting(until: end) }
  }

  /// Records a failure in the status, and now and then in the log.
  func note(_ error: any Error) async {
    let noted = failure(error)
    change { $0.lastError = noted }
    let isOwn = error is TidemarkError
    _ = try? await host.perform { [owner] state in
      try state.check(owner)
      if isOwn {
        // After a failed commit the session's memory may differ from the log.
        state.reopen()
      } else {
        (state.status.error, state.status.errorTime) = (noted.message, noted.time.sinceEpoch)
        try state.recordStatus()
      }
    }
    host.changed.raise()
  }

  func failure(_ error: any Error) -> SyncStatus.Failure {
    let ofPeer = error as? PeerError
    return SyncStatus.Failure(
      message: ofPeer?.message ?? (error as? TidemarkError)?.message ?? "\(error)",
      kind: ofPeer?.kind, time: store.engine.environment.clock.now())
  }

  // MARK: Time

  /// Sleeps through retry requests and writes; only closing the store ends it. Observers get the
  /// pending count every second.
  private func sleepFirmly(for duration: Duration) async throws {
    let clock = store.engine.environment.clock
    let start = clock.monotonicNanoseconds()
    var left = duration
    while left > .zero {
      // Read before the check: closing the store requests a retry, and so ends the sleep.
      let requested = retryRequests.count
      guard !store.engine.reader.isClosed,
        try await !sleep(left, unless: retryRequests, beyond: requested)
      else { return }
      left = duration - .nanoseconds(Int64(clamping: clock.monotonicNanoseconds() &- start))
    }
  }

  /// Sleeps until the time is over or a signal's count exceeds `count`.
  /// - Returns: whether the time was over.
  func sleep(
    _ duration: Duration, unless signal: Signal, beyond count: UInt64
  ) async throws -> Bool {
    let isOver = try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask { [configuration] in
        try await configuration.sleep(duration)
        return true
      }
      group.addTask {
        await signal.wait(beyond: count)
        return false
      }
      group.addTask { try await self.keepCounting() }
      defer { group.cancelAll() }
      return try await group.next() ?? true
    }
    try Task.checkCancellation()
    return isOver
  }
}

extension TidemarkError {
  /// Whether a later retry may succeed.
  var mayPass: Bool {
    switch code {
    case .closed, .poisoned, .readOnly, .permissionDenied, .damaged, .formatTooNew, .formatTooOld,
      .historyGone, .historyDiverged, .invalidArgument, .possiblyStale, .unknownOutcome:
      false
    default: true
    }
  }
}
