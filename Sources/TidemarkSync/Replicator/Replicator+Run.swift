internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension Replicator {
  /// Replicates in this task, with waits and retries, until it is cancelled or the store is closed.
  /// - Throws: `cancelled` when the task is cancelled; errors of this store that no retry can mend,
  ///   such as `closed`; `invalidArgument` when the replicator runs already.
  public func run() async throws(TidemarkError) {
    try await TidemarkError.asSyncError { try await runRounds() }
  }

  private func runRounds() async throws {
    _ = try await drive(.run) { (replicator) -> Never in
      var backoff = replicator.newBackoff()
      let clock = replicator.store.engine.environment.clock
      var isFresh = true
      var requested: UInt64 = 0
      try await replicator.waitForRetryAfter()
      var asked = clock.monotonicNanoseconds()
      while true {
        try Task.checkCancellation()
        let seen = replicator.news.count
        let retryRequests = replicator.retryRequests.count
        do {
          // After a retry request the round starts with a hello, as the feed may have grown since
          // its last answer.
          isFresh = isFresh || retryRequests != requested
          let held = try await replicator.round(fresh: isFresh, retryRequests: retryRequests)
          if isFresh { asked = clock.monotonicNanoseconds() }
          (isFresh, requested) = (false, retryRequests)
          backoff.succeeded(at: clock.monotonicNanoseconds())
          if let held {
            try await replicator.hold(held, seen)
          } else {
            isFresh = try await replicator.idle(seen, retryRequests: retryRequests, asked: &asked)
          }
        } catch {
          try await replicator.recover(from: error, retryRequests: retryRequests, &backoff)
          isFresh = true
        }
      }
    }
    throw TidemarkError(.invalidArgument, "the replicator runs already")
  }

  /// Replicates in a task of its own until ``stop()``; does nothing if that runs already.
  ///
  /// The task retains the replicator, and so the store. An error that ends it is in ``status``.
  public func start() {
    retryNow()
    state.withLock { state in
      guard state.task == nil else { return }
      state.task = Task {
        do { try await runRounds() } catch is CancellationError {
        } catch { change { $0.lastError = failure(error) } }
        self.state.withLock { $0.task = nil }
      }
    }
  }

  /// Ends the task of ``start()`` and returns once it has ended. A call in flight is cancelled; its
  /// outcome is known when the replicator is started again.
  public func stop() async {
    guard let task = state.withLock({ $0.task }) else { return }
    task.cancel()
    await task.value
  }

  // MARK: One driver at a time

  /// Runs `body` as the only driver: of several `run` and `syncOnce` calls one makes the requests.
  /// - Returns: nil if `run` or `start` drives the replicator already.
  func drive<R: Sendable>(
    _ driver: State.Driver, _ body: (Replicator) async throws -> R
  ) async throws -> R? {
    let other = try await rounds.first {
      let other = state.withLock { state in
        defer { if state.driver == .nobody { state.driver = driver } }
        return state.driver
      }
      return other == .once ? nil : other
    }
    if other == .run { return nil }
    let engine = store.engine
    let token = engine.observe { [news, retryRequests, weak engine] in
      // A closed store ends the sleeps that wait for a retry request.
      if engine?.reader.isClosed ?? true { retryRequests.raise() }
      news.raise()
    }
    let network = configuration.budget?.network
    let watch = network?.observe { [weak self] in self?.retryNow() }
    defer {
      store.engine.stopObserving(token)
      if let watch { network?.stopObserving(watch) }
      state.withLock { $0.driver = .nobody }
      change { $0.phase = .stopped }
      rounds.raise()
      host.changed.raise()
    }
    let result = await Result(of: { try await body(self) })
    await endSession()
    return try result.get()
  }

  private func endSession() async {
    _ = try? await host.perform { [owner] state in
      try state.check(owner)
      // The next driver starts with a hello.
      try state.session().disconnect()
      try state.session().writeDown()
      // The exact use, at the end of the replicator's work: before it is saved rounded up.
      state.status.budget = state.ledger
      try state.recordStatus()
    }
  }

  func newBackoff() -> Backoff {
    Backoff(first: configuration.firstRetry, longest: configuration.longestRetry)
  }

  // MARK: Rounds

  /// A round: makes calls until there is nothing to do.
  /// - Parameters:
  ///   - isFresh: whether the round starts with a hello, which gives the feed's end.
  ///   - retryRequests: the number of retry requests when the round began, which it answers.
  ///   - answer: the answer of a long poll, to be handled first.
  ///   - isDone: called after every answer: whether to end the round early.
  /// - Returns: why the budget held something back; nil if it did not.
  @discardableResult
  func round(
    fresh isFresh: Bool, retryRequests: UInt64, _ answer: Heard? = nil,
    until isDone: @Sendable @escaping (inout HostState) throws -> Bool = { _ in false }
  ) async throws -> HoldReason? {
    let isPoked = state.withLock { $0.lastRound.map { $0.retryRequests < retryRequests } ?? false }
    if isPoked { try await host.perform { try $0.session().delayed.forgetFaults() } }
    let (start, before) = (store.engine.store.eventStart(), statusFeed.current.totals)
    let held = await Result(of: { try await calls(fresh: isFresh, answer, until: isDone) })
    tell(held, since: before, start)
    state.withLock { $0.lastRound = Round(retryRequests: retryRequests, heldBack: held) }
    rounds.raise()
    return try held.get()
  }

  private func tell(
    _ held: Result<HoldReason?, any Error>, since before: SyncTotals, _ start: UInt64
  ) {
    let (events, now) = (store.engine.store, statusFeed.current.totals)
    if now.parked > before.parked {
      events.tell(.refused, entries: now.parked - before.parked, subject: name)
    }
    switch held {
    case .success:
      events.tell(
        .synced, from: start, entries: now.pushed + now.pulled - before.pushed - before.pulled,
        bytes: now.attachmentBytesSent + now.attachmentBytesTaken - before.attachmentBytesSent
          - before.attachmentBytesTaken, subject: name)
    case .failure(let error) where error is CancellationError: break
    case .failure(let error): events.tell(.failed, from: start, subject: name, error: error)
    }
  }

  private func calls(
    fresh isFresh: Bool, _ first: Heard?,
    until isDone: @Sendable @escaping (inout HostState) throws -> Bool
  ) async throws -> HoldReason? {
    let (direction, budget) = (configuration.direction, configuration.budget)
    var hasAnswer = false
    if isFresh {
      try await host.perform { state in
        state.repeats = CallRepeats()
        try state.session().disconnect()
      }
    }
    var answer = first
    while true {
      try Task.checkCancellation()
      let received = answer
      hasAnswer = hasAnswer || received != nil
      let (next, session, totals, left, failure) = try await host.perform { [owner] state in
        try state.check(owner)
        let next = try state.advance(received, direction, budget, until: isDone)
        let session = try state.session()
        let failure = session.delayed.failure(of: session.outbox.pending)
        return (next, state.sessions, state.totals, session.entriesToTake, failure)
      }
      change {
        $0.totals = totals
        $0.entriesToTake = left
      }
      if received != nil { host.changed.raise() }
      guard let call = next.call else {
        if hasAnswer || next.held == nil {
          let time = store.engine.environment.clock.now()
          // The peer's last failure on a change is shown as long as that change is pending.
          let rest = failure.map { SyncStatus.Failure(message: $0, kind: .unavailable, time: time) }
          change { ($0.lastError, $0.lastSuccess) = (rest, time) }
        }
        return next.held
      }
      change { $0.phase = call.phase }
      await countPending(always: false)
      if call.kind == .pushRequest, direction.pushes {
        // The next batch is formed while this one is in flight. An error here occurs again later.
        host.performLater { [peer] state in
          if let next = try? state.session().prepareBatch() { peer.prepare(next) }
        }
      }
      do { answer = (try await peer.answer(to: call), session) } catch {
        try await giveUp(error)
      }
    }
  }

  /// Passes a failed call to the session, and throws.
  func giveUp(_ error: any Error) async throws -> Never {
    // A peer may throw any error. An unknown one counts as temporary, so that no batch is given up.
    let failure = error as? PeerError ?? PeerError(.unavailable, "\(error)")
    try await host.perform { [owner] state in
      try state.check(owner)
      try state.session().failed(failure)
    }
    try Task.checkCancellation()
    throw failure
  }
}

/// An answer, and the number of the session that made the request.
typealias Heard = (answer: WireMessage, session: Int)

extension Result where Failure == any Error {
  /// The outcome of an asynchronous call.
  init(of body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}

extension HostState {
  /// Handles an answer and forms the next request.
  /// - Returns: nil for the call at the end of the round; and why the budget then holds something
  ///   back.
  fileprivate mutating func advance(
    _ heard: Heard?, _ direction: SyncDirection, _ budget: SyncBudget?,
    until isDone: (inout HostState) throws -> Bool
  ) throws -> (call: WireMessage?, held: HoldReason?) {
    // A session with nothing to read or write would not notice these.
    if engine.reader.isClosed { throw TidemarkError(.closed, "the store is closed") }
    if engine.reader.isSuspended { throw TidemarkError(.suspended, "the store is suspended") }
    let session = try session()
    if let heard, heard.session == sessions {
      let answer = heard.answer
      try charge(taken: answer.takenBytes, budget)
      do { try session.receive(answer) } catch let error as PeerError {
        try session.failed(error)
        throw error
      }
      recordAnswer(answer, session)
      if try isDone(&self) { return (nil, nil) }
    }
    let (allowed, reason) = try permit(budget)
    guard let gate = allowed else { return (nil, reason) }
    guard let call = try session.next(direction, through: gate) else {
      repeats = CallRepeats()
      if let keys = session.undecidedDeletions { throw UndecidedDeletionsError(keys: keys) }
      if let entries = session.tooManyWaiting, direction.pushes {
        throw TooManyParkedError(entries: entries)
      }
      // With pulls allowed, entries of other replicas may be held back as well.
      let isHeldBack = try reason != nil && (direction.pulls || pendingSummary().entries > 0)
      return (nil, isHeldBack ? reason : nil)
    }
    do throws(PeerError) { try repeats.note(call) } catch {
      try session.failed(error)
      throw error
    }
    try charge(sent: call.sentBytes(after: chargedBatch), budget)
    if case .pushRequest(let request) = call { chargedBatch = request.batchID }
    return (call, nil)
  }

  /// Whether a round would end at once without a call or an error.
  mutating func hasNothingToDo(_ direction: SyncDirection, _ budget: SyncBudget?) throws -> Bool {
    guard !engine.reader.isClosed, !engine.reader.isSuspended,
      case (let gate?, nil) = try permit(budget)
    else { return false }
    let session = try session()
    guard session.range != nil, try session.next(direction, through: gate) == nil else {
      return false
    }
    return session.undecidedDeletions == nil && session.tooManyWaiting == nil
  }
}

extension WireMessage {
  fileprivate var phase: SyncStatus.Phase {
    switch kind {
    case .helloRequest: .connecting
    case .pushRequest, .attachRequest: .pushing
    default: .pulling
    }
  }
}
