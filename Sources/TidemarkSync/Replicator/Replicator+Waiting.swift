internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension Replicator {
  // MARK: Nothing to do

  /// Waits for news, here or there.
  /// - Parameter asked: when the peer has last said how far it is, in nanoseconds of the monotonic
  ///   clock. Local writes, whoever they are for, put off the next time no further than the poll
  ///   interval.
  /// - Returns: whether the peer is to be asked anew how far it is, be there a poke or not.
  func idle(_ seen: UInt64, pokes poked: UInt64, asked: inout UInt64) async throws -> Bool {
    let clock = store.engine.environment.clock
    let start = clock.monotonicNanoseconds()
    let left = pollInterval - .nanoseconds(Int64(clamping: start &- asked))
    // Also where local writes never end.
    if configuration.direction.pulls, left <= .zero { return true }
    // Something came meanwhile, if only from this replicator's own commits.
    guard news.count == seen else { return false }
    try await host.perform { state in try state.recordStatus() }
    await countPending(always: true)
    change { $0.phase = .idle }
    guard configuration.direction.pulls else {
      await news.wait(beyond: seen)
      return false
    }
    guard peer.capabilities.canWait, configuration.longPoll > .zero else {
      // Whichever is first: something written here, a poke, or the time.
      return try await sleep(left, unless: news, beyond: seen)
    }
    guard let (answer, session) = try await longPoll(seen, pokes: poked) else { return false }
    // Nothing was to be sent for as long as the call took.
    try await host.perform { try $0.session().writeDown() }
    asked = clock.monotonicNanoseconds()
    if answer.entries.isEmpty, answer.cursor.offset >= answer.range.head,
      clock.monotonicNanoseconds() &- start < Self.shortestPollNanoseconds
    {
      // A peer that does not wait although it says so must not be asked without end.
      let pause = min(.seconds(1), configuration.pollInterval)
      _ = try await sleep(pause, unless: news, beyond: news.count)
    }
    try await round(fresh: false, pokes: poked, (.pullAnswer(answer), session))
    return false
  }

  private static let shortestPollNanoseconds: UInt64 = 500_000_000

  /// After how long the peer is asked in any case. One that waits by itself need not be asked
  /// often, whatever was set for those that do not.
  private var pollInterval: Duration {
    let waits = peer.capabilities.canWait && configuration.longPoll > .zero
    return max(configuration.pollInterval, waits ? .seconds(1) : .milliseconds(10))
  }

  /// Asks the peer to answer when there is something, and waits for that, for something to be sent
  /// or for a poke, which end the call. What is written here and not to be sent, such as a cached
  /// value, does not: each call that is cancelled may cost a connection.
  /// - Returns: nil when something came here first.
  private func longPoll(
    _ seen: UInt64, pokes poked: UInt64
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
      guard pokes.count == poked,
        try await host.perform({ try $0.hasNothingToDo(direction, budget) })
      else { return nil }
      await countPending(always: true)
    }
  }

  // MARK: Held back

  /// So often a clock that was set is noticed.
  private static let longestHold = Duration.seconds(900)
  /// A clock that does not go on must not keep anybody busy.
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

  /// - Throws: what cannot be mended by trying again.
  func recover(
    from error: any Error, _ seen: UInt64, pokes poked: UInt64, _ backoff: inout Backoff
  ) async throws {
    try Task.checkCancellation()
    await note(error)
    switch error {
    case let error as PeerError where error.kind == .unauthorized || error.kind == .forbidden:
      try await pause(error.kind == .forbidden ? .forbidden : .unauthorized, pokes: poked)
    case let error as UndecidedDeletions:
      try await pause(.deletionsToDecide(keys: error.keys), pokes: poked)
    case let error as TooManyParked:
      try await pause(.tooManyParked(entries: error.entries), pokes: poked)
    case let error as TidemarkError where error.code == .suspended:
      change { $0.phase = .paused(.storeSuspended) }
      try await news.first { store.isSuspended && !store.engine.isClosed ? nil : () }
    case let error as TidemarkError where !error.mayPass: throw error
    default:
      let wait = backoff.next(
        store.engine.environment.random, retryAfter: (error as? PeerError)?.retryAfter)
      try await pause(wait, seen: seen, poked: poked)
    }
  }

  private func pause(_ reason: SyncStatus.PauseReason, pokes poked: UInt64) async throws {
    await countPending(always: true)
    change { $0.phase = .paused(reason) }
    await pokes.wait(beyond: poked)
    try Task.checkCancellation()
  }

  /// Takes note of a failure, in the status and now and then in the log.
  func note(_ error: any Error) async {
    let noted = failure(error)
    change { $0.lastError = noted }
    let isOwn = error is TidemarkError
    _ = try? await host.perform { [owner] state in
      try state.check(owner)
      if isOwn {
        // The session's memory may differ from the log.
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

  private func pause(_ wait: Backoff.Wait, seen: UInt64, poked: UInt64) async throws {
    await countUnlessMuch()
    let now = store.engine.environment.clock.now()
    let end = Timestamp(
      milliseconds: now.milliseconds + Int64(clamping: wait.total.wholeMilliseconds))
    change { $0.phase = .waiting(until: end) }
    try await sleepFirmly(for: wait.firm)
    if wait.quiet > wait.firm,
      try await !sleep(wait.quiet - wait.firm, unless: pokes, beyond: poked)
    {
      return
    }
    if wait.total > wait.quiet {
      _ = try await sleep(wait.total - wait.quiet, unless: news, beyond: seen)
    }
  }

  // MARK: Time

  /// Sleeps, counting what is pending every second as long as somebody looks at it, and whatever
  /// comes meanwhile; only that the store is closed ends it.
  private func sleepFirmly(for duration: Duration) async throws {
    let clock = store.engine.environment.clock
    let start = clock.monotonicNanoseconds()
    var left = duration
    while left > .zero {
      // A store that is closed after this pokes.
      let poked = pokes.count
      guard !store.engine.isClosed, try await !sleep(left, unless: pokes, beyond: poked)
      else { return }
      left = duration - .nanoseconds(Int64(clamping: clock.monotonicNanoseconds() &- start))
    }
  }

  /// Sleeps until a signal is raised more often than that.
  /// - Returns: whether the time was over first.
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
  /// Whether trying again later may help.
  var mayPass: Bool {
    switch code {
    case .closed, .poisoned, .readOnly, .permissionDenied, .damaged, .formatTooNew, .formatTooOld,
      .historyGone, .historyDiverged, .invalidArgument, .possiblyStale, .unknownOutcome:
      false
    default: true
    }
  }
}

/// How long to wait after failures: a random time up to a ceiling that doubles with each of them
/// ("full jitter": Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015).
struct Backoff: Sendable {
  /// Which part of a wait news cannot end.
  struct Wait: Sendable, Hashable {
    /// Not to be ended by anybody.
    var firm: Duration
    /// From here on local writes end it; pokes do so before.
    var quiet: Duration
    /// When it ends by itself.
    var total: Duration
  }

  /// No peer can ask for more patience than this.
  static let longestRequest = Duration.seconds(3600)
  /// Local writes end a wait after this part of its ceiling: a busy program asks a server that is
  /// down so much more often at most.
  static let quietPart = 8

  let first: Duration
  let longest: Duration
  private(set) var failures = 0

  init(first: Duration, longest: Duration) {
    self.first = first
    self.longest = max(first, longest)
  }

  mutating func reset() { failures = 0 }

  /// Something has failed.
  /// - Parameter retryAfter: what the peer has asked for.
  mutating func next(_ random: any RandomSource, retryAfter: Duration?) -> Wait {
    let ceiling = min(longest, first * (1 << min(failures, 20)))
    failures = min(failures + 1, 64)
    let part = Double(random.next() >> 11) / Double(1 << 53)
    let asked = min(Self.longestRequest, retryAfter ?? .zero)
    let firm = max(first / 4, asked)
    let quiet = max(firm, ceiling / Self.quietPart)
    return Wait(firm: firm, quiet: quiet, total: max(quiet, ceiling * part))
  }
}
