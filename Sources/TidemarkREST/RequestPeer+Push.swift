internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension RequestPeer {
  /// Sends the changes of a batch, one request each.
  ///
  /// Outcomes that were answered are remembered when the rest fails, so a batch that is sent again
  /// goes on where it stopped. Changes that are to be tried later are put back (`aborted`), so that
  /// the store can go on with others; when there are no others, the peer asks for patience.
  public func push(_ request: PushRequest) async throws -> PushAnswer {
    guard request.number > 0, request.batchID != .none,
      request.changes.count <= options.changesPerBatch,
      Set(request.changes.map(\.sequence)).count == request.changes.count
    else { throw PeerError(.malformed, "the batch makes no sense") }
    let start = try state.withLock { (memory: inout RequestMemory) throws -> PushStart in
      try memory.checkOpen()
      memory.forgetTold()
      let mark = memory.marks[request.replica] ?? ReplicaMark()
      guard mark.precedes(request) else { return .answered(mark, memory.head) }
      guard memory.pushing.insert(request.replica).inserted else {
        throw PeerError(.busy, "another batch is under way", retryAfter: .seconds(1))
      }
      return .open(memory.open(request))
    }
    switch start {
    case .answered(let mark, let head):
      return PushAnswer(mark: mark, range: places.range(head: head))
    case .open(let indices):
      defer { state.withLock { _ = $0.pushing.remove(request.replica) } }
      try await sendAll(request, indices)
      return try state.withLock { try $0.finish(request, places) }
    }
  }

  private enum PushStart {
    case answered(ReplicaMark, UInt64)
    /// The changes to send.
    case open([Int])
  }

  /// Sends changes, as many at a time as may be.
  private func sendAll(_ request: PushRequest, _ indices: [Int]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      var left = indices.makeIterator()
      func next() -> Bool {
        guard let index = left.next() else { return false }
        group.addTask { [self] in try await sendOne(request, index) }
        return true
      }
      for _ in 0..<options.parallel { guard next() else { break } }
      while try await group.next() != nil {
        try Task.checkCancellation()
        _ = next()
      }
    }
  }

  private func sendOne(_ request: PushRequest, _ index: Int) async throws {
    let pushed = request.changes[index]
    let change = places.request(pushed, of: request.replica, alias: alias(of: pushed, request))
    let outcome: RequestOutcome =
      pushed.atomicGroup == 0 || PlantedSyncBug.isOn(.groupSentInParts)
      ? try await ask { try await send(change) }
      : .rejected(
        Rejection(code: "atomic", message: "the back end takes changes one by one only"))
    try state.withLock { (memory: inout RequestMemory) throws in
      try memory.note(outcome, of: change, canRead: fetch != nil || read != nil, index, places)
    }
  }

  /// The back end's name for the key of a change: as the store knows, or as an answer has said that
  /// the store has not taken yet.
  private func alias(of change: PushedChange, _ request: PushRequest) -> Alias? {
    let known = request.aliases?.alias(ofKey: change.key)
    return state.withLock { memory in
      if known != nil { memory.note(nil, ofKey: change.key, request.replica) }
      return known ?? memory.alias(ofKey: change.key, request.replica)
    }
  }
}

extension RequestMemory {
  /// Begins a batch, or goes on with it.
  /// - Returns: the changes to send now.
  mutating func open(_ request: PushRequest) -> [Int] {
    if partial[request.replica]?.batchID != request.batchID
      || partial[request.replica]?.number != request.number
    {
      partial[request.replica] = Partial(
        number: request.number, batchID: request.batchID,
        verdicts: Array(repeating: nil, count: request.changes.count))
    }
    let verdicts = partial[request.replica]?.verdicts ?? []
    let now = clock.monotonicNanoseconds()
    return verdicts.indices.filter { index in
      let operation = OperationID(
        replica: request.replica, sequence: request.changes[index].sequence)
      return verdicts[index] == nil && retryAt[operation] ?? 0 <= now
    }
  }

  /// Takes the answer to a change.
  mutating func note(
    _ outcome: RequestOutcome, of change: RequestChange, canRead: Bool, _ index: Int,
    _ places: RequestPlaces
  ) throws(PeerError) {
    let replica = change.operation.replica
    retryAt[change.operation] = nil
    let verdict: Verdict
    switch outcome {
    case .applied, .duplicate:
      let position = noteTaken(change, as: change.alias, index, places)
      verdict = outcome == .applied ? .applied(position) : .duplicate(position)
    case .appliedAs(let alias):
      if let fault = alias.fault {
        verdict = .rejected(Rejection(code: Alias.refusal, message: fault))
      } else {
        verdict = .applied(noteTaken(change, as: alias, index, places))
      }
    case .conflict(let state):
      if state != nil || canRead {
        note(state, heldBy: change.key.bytes)
        verdict = .conflict(places.position(nextOffset(isConflict: true)))
      } else {
        verdict = .rejected(
          Rejection(code: "conflict", message: "the back end holds something else"))
      }
    case .rejected(let rejection): verdict = .rejected(rejection.bounded)
    case .retryLater(let pause):
      let seconds = pause.map { UInt32(clamping: $0.wholeSeconds) }
      let rest = min(max(seconds ?? Self.restSeconds, 1), Self.longestRestSeconds)
      if retryAt.count >= Self.mostRests { retryAt = [:] }
      retryAt[change.operation] =
        clock.monotonicNanoseconds() + UInt64(rest) * 1_000_000_000
      return
    }
    partial[replica]?.verdicts[index] = verdict
  }

  /// The back end has taken a change.
  private mutating func noteTaken(
    _ change: RequestChange, as alias: Alias?, _ index: Int, _ places: RequestPlaces
  ) -> Position {
    let replica = change.operation.replica
    note(change)
    note(nil, heldBy: change.key.bytes)
    let kept = change.kind == .put && !PlantedSyncBug.isOn(.aliasForgotten) ? alias : nil
    note(kept, ofKey: change.key.bytes, replica)
    partial[replica]?.aliases[index] = kept
    return places.position(nextOffset())
  }

  /// For how many seconds a change rests that is to be tried later.
  private static let restSeconds: UInt32 = 30
  private static let longestRestSeconds: UInt32 = 86_400
  private static let mostRests = 65_536

  /// Ends a batch all of whose changes have an answer or are to be tried later.
  /// - Throws: `busy` when all are to be tried later, but once a batch only.
  mutating func finish(
    _ request: PushRequest, _ places: RequestPlaces
  ) throws(PeerError) -> PushAnswer {
    guard var batch = partial[request.replica], batch.batchID == request.batchID else {
      throw PeerError(.busy, "another batch came in between", retryAfter: .seconds(1))
    }
    if !batch.wasDeferred, !batch.verdicts.isEmpty, batch.verdicts.allSatisfy({ $0 == nil }) {
      batch.wasDeferred = true
      partial[request.replica] = batch
      let now = clock.monotonicNanoseconds()
      let first = request.changes.compactMap { change in
        retryAt[OperationID(replica: request.replica, sequence: change.sequence)]
      }.min()
      let seconds = ((first ?? now) - min(now, first ?? now) + 999_999_999) / 1_000_000_000
      throw PeerError(
        .busy, "the back end wants these changes later",
        retryAfter: .seconds(max(1, seconds)))
    }
    var mark = ReplicaMark(
      number: request.number, batchID: request.batchID,
      verdicts: batch.verdicts.map { $0 ?? .aborted })
    mark.aliases = batch.aliases
    setMark(mark, of: request.replica)
    partial[request.replica] = nil
    return PushAnswer(mark: mark, range: places.range(head: head))
  }
}
