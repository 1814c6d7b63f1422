internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension RequestPeer {
  /// Sends the changes of a batch, one request each.
  ///
  /// Answered outcomes are kept in memory when the rest fails, so that a retried batch resumes.
  /// Changes on which the back end fails, or that it wants later, get `aborted` and wait for a
  /// while, so that the store goes on with others.
  /// - Throws: what `send` throws if that concerns not only one change: `unauthorized` and
  ///   `forbidden`, and any error if no change of the batch was answered.
  public func push(_ request: PushRequest) async throws -> PushAnswer {
    // Not `options.changesPerBatch`: the batch may have been formed under other options.
    guard request.number > 0, request.batchID != .none,
      request.changes.count <= SyncLimits().changes,
      Set(request.changes.map(\.sequence)).count == request.changes.count
    else { throw PeerError(.malformed, "the batch has no valid number, id, count or sequences") }
    let start = try state.withLock { (memory: inout RequestMemory) throws -> PushStart in
      try memory.checkOpen()
      memory.forgetTold()
      memory.listing = nil
      let mark = memory.marks[request.replica] ?? ReplicaMark()
      guard mark.precedes(request) else { return .answered(mark, memory.head) }
      guard memory.pushing.insert(request.replica).inserted else {
        throw PeerError(.busy, "another batch is in flight", retryAfter: .seconds(1))
      }
      return .open(memory.open(request))
    }
    switch start {
    case .answered(let mark, let head):
      return PushAnswer(mark: mark, range: positions.range(head: head))
    case .open(let indices):
      defer { state.withLock { _ = $0.pushing.remove(request.replica) } }
      try await sendAll(request, indices)
      return try state.withLock { try $0.finish(request, positions) }
    }
  }

  private enum PushStart {
    case answered(ReplicaMark, UInt64)
    /// The changes to send.
    case open([Int])
  }

  private enum Sent {
    case answered
    /// Not sent, as an earlier change of its key has no answer yet.
    case skipped
    case failed(OperationID, Int, PeerError)
  }

  /// After this many failures in a row nothing more is sent: the back end itself may have failed.
  private static let mostFaults = 3

  /// The outcome of sending some changes.
  private struct Round {
    var hasAnswer = false
    /// How many of the last answers in a row were failures.
    var inARow = 0
    var faults: [(operation: OperationID, index: Int, error: PeerError)] = []

    var isOutage: Bool { inARow >= RequestPeer.mostFaults }
  }

  /// Sends changes. One that fails for the first time may have been applied, so it is sent again
  /// before others: at once, or with the whole batch if the back end seems to be down.
  private func sendAll(_ request: PushRequest, _ indices: [Int]) async throws {
    let round = try await sendEach(request, indices)
    let (fresh, isOutage) = state.withLock { memory in
      let hasNew = round.faults.contains { !memory.hasFailed(on: $0.operation) }
      let isOutage =
        round.isOutage && (!round.hasAnswer || hasNew) || !round.hasAnswer && hasNew
      return (memory.noteFaults(round.faults, isOutage: isOutage), isOutage)
    }
    if isOutage, let last = round.faults.last?.error { throw last }
    guard !fresh.isEmpty else { return }
    let again = try await sendEach(request, fresh)
    _ = state.withLock { $0.noteFaults(again.faults, isOutage: false) }
  }

  /// Sends each change once, `options.parallel` at a time.
  private func sendEach(_ request: PushRequest, _ indices: [Int]) async throws -> Round {
    let previous = request.previousOfKey
    return try await withThrowingTaskGroup(of: Sent.self) { group in
      defer { group.cancelAll() }
      var left = indices.makeIterator()
      var round = Round()
      func next() {
        guard !round.isOutage, let index = left.next() else { return }
        group.addTask { [self] in try await sendOne(request, index, after: previous[index]) }
      }
      for _ in 0..<options.parallel { next() }
      while let sent = try await group.next() {
        try Task.checkCancellation()
        switch sent {
        case .answered: (round.hasAnswer, round.inARow) = (true, 0)
        case .skipped: break
        case .failed(let operation, let index, let error):
          round.inARow += 1
          round.faults.append((operation, index, error))
        }
        next()
      }
      return round
    }
  }

  /// - Parameter previous: the index of the previous change of the same key.
  private func sendOne(
    _ request: PushRequest, _ index: Int, after previous: Int?
  ) async throws -> Sent {
    let pushed = request.changes[index]
    let replica = request.replica
    if let previous, !state.withLock({ $0.isAnswered(previous, of: replica) }) { return .skipped }
    let known = request.aliases?.alias(ofKey: pushed.key)
    let alias = state.withLock { $0.alias(ofKey: pushed.key, known, replica) }
    let change = positions.request(pushed, of: replica, store: request.store, alias: alias)
    do {
      let outcome: RequestOutcome =
        pushed.atomicGroup == 0 || PlantedSyncBug.isOn(.groupSentInParts)
        ? try await outcome(of: change)
        : .rejected(
          SyncRejection(code: "atomic", message: "the back end takes changes one by one only"))
      try state.withLock { (memory: inout RequestMemory) throws in
        try memory.note(outcome, of: change, canRead: fetch != nil || read != nil, index, positions)
      }
      return .answered
    } catch let error as PeerError {
      let isOfAll = error.kind == .unauthorized || error.kind == .forbidden
      if isOfAll || PlantedSyncBug.isOn(.faultEndsBatch) { throw error }
      return .failed(change.operation, index, error)
    }
  }

  /// Sends a change. If the answer has the alias of a record that a list has reported as deleted,
  /// it may repeat an earlier answer: then `read`, where given, tells whether the record exists.
  private func outcome(of change: RequestChange) async throws -> RequestOutcome {
    let outcome = try await ask { try await send(change) }
    guard case .appliedAs(let alias) = outcome, state.withLock({ $0.isGone(alias) }) else {
      return outcome
    }
    let held = try await ask { try await read?(change.key, alias) } ?? .absent
    return held == .absent ? .conflict(.absent) : outcome
  }
}

extension RequestMemory {
  /// Begins or resumes a batch.
  /// - Returns: the changes to send now.
  mutating func open(_ request: PushRequest) -> [Int] {
    if partial[request.replica]?.batchID != request.batchID
      || partial[request.replica]?.number != request.number
    {
      partial[request.replica] = Partial(
        number: request.number, batchID: request.batchID,
        verdicts: Array(repeating: nil, count: request.changes.count))
    }
    guard let batch = partial[request.replica] else { return [] }
    return batch.verdicts.indices.filter { batch.verdicts[$0] == nil && batch.later[$0] == nil }
  }

  /// Whether a change of a batch has an answer.
  func isAnswered(_ index: Int, of replica: ReplicaID) -> Bool {
    partial[replica]?.verdicts[index] != nil
  }

  /// Notes the outcome of a change as its verdict.
  mutating func note(
    _ outcome: RequestOutcome, of change: RequestChange, canRead: Bool, _ index: Int,
    _ positions: RequestPositions
  ) throws(PeerError) {
    let replica = change.operation.replica
    forgetFaults(on: change.operation)
    let verdict: PushVerdict
    switch outcome {
    case .applied, .duplicate:
      let position = noteTaken(change, as: change.alias, index, positions)
      verdict = outcome == .applied ? .applied(position) : .duplicate(position)
    case .appliedAs(let alias):
      if let fault = alias.fault {
        verdict = .rejected(SyncRejection(code: KeyAlias.refusal, message: fault))
      } else {
        verdict = .applied(noteTaken(change, as: alias, index, positions))
      }
    case .conflict(let state):
      if state != nil || canRead {
        note(state, heldBy: change.key.bytes)
        if state == .absent { forgetAlias(ofKey: change.key.bytes) }
        verdict = .conflict(positions.position(nextOffset(isOfOther: true)))
      } else {
        verdict = .rejected(
          SyncRejection(code: "conflict", message: "the back end holds something else"))
      }
    case .rejected(let rejection): verdict = .rejected(rejection.bounded)
    case .retryLater(let pause):
      // Up to as much again is added, by a hash (jitter): clients that were told the same pause
      // must not retry all at once.
      let pause = max(pause ?? Self.rest, .zero)
      let spread = min(pause, Self.longestSpread).wholeMilliseconds
      let chance = IdempotencyKey.hash(of: change.operation) % max(1, spread)
      partial[replica]?.later[index] = pause + .milliseconds(Int64(clamping: chance))
      return
    }
    partial[replica]?.verdicts[index] = verdict
  }

  /// Notes a change that the back end has applied.
  private mutating func noteTaken(
    _ change: RequestChange, as alias: KeyAlias?, _ index: Int, _ positions: RequestPositions
  ) -> FeedPosition {
    let replica = change.operation.replica
    let kept = change.kind == .put && !PlantedSyncBug.isOn(.aliasForgotten) ? alias : nil
    note(change, kept)
    note(nil, heldBy: change.key.bytes)
    partial[replica]?.aliases[index] = kept
    return positions.position(nextOffset())
  }

  /// How long a change waits if the back end names no time.
  private static let rest = Duration.seconds(30)
  private static let longestSpread = Duration.seconds(3600)

  /// Ends a batch and makes its mark: changes without an answer are `aborted`.
  mutating func finish(
    _ request: PushRequest, _ positions: RequestPositions
  ) throws(PeerError) -> PushAnswer {
    guard let batch = partial[request.replica], batch.batchID == request.batchID else {
      throw PeerError(.busy, "another batch was pushed meanwhile", retryAfter: .seconds(1))
    }
    var mark = ReplicaMark(
      number: request.number, batchID: request.batchID,
      verdicts: batch.verdicts.map { $0 ?? .aborted })
    mark.aliases = batch.aliases
    setMark(mark, of: request.replica)
    partial[request.replica] = nil
    var answer = PushAnswer(mark: mark, range: positions.range(head: head))
    (answer.later, answer.faulty) = (batch.later, batch.faulty)
    answer.failure = batch.fault?.message
    return answer
  }
}

extension PushRequest {
  /// By change, the index of the previous one of the same key.
  fileprivate var previousOfKey: [Int?] {
    var last: [[UInt8]: Int] = [:]
    return changes.enumerated().map { index, change in
      last.updateValue(index, forKey: change.key)
    }
  }

  /// The id of the store that sends it, which is hashed into idempotency keys.
  fileprivate var store: [UInt8] { aliases?.store ?? replica.bytes }
}
