internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Handles the peer's verdicts on the batch in flight.
  /// - Parameter current: the feed's versions at keys with a conflict, as far as they are small.
  func settle(_ mark: ReplicaMark, _ current: [FeedEntry] = []) throws {
    // A mark of another batch is left to the next hello.
    guard let inFlight, mark.number == inFlight.batch.number else { return }
    let batch = inFlight.batch
    if mark.batchID == batch.batchID.ofEmpty { return try settleEmpty(inFlight) }
    guard mark.batchID == batch.batchID else { return }
    guard mark.verdicts.count == batch.items.count else {
      throw PeerError(.malformed, "\(mark.verdicts.count) verdicts on \(batch.items.count)")
    }
    let sent = inFlight.content?.changes
    let judged = try judgeAliases(batch, mark, sent)
    let verdicts = judged.verdicts
    let end = endOfBatch(verdicts)
    let there = Dictionary(current.map { ($0.key, $0) }) { $1 }
    // A peer that numbers batches tells the same verdicts again until the next batch, which is
    // durable with all before it.
    let isToldAgain = capabilities.isNumbered
    try commit(
      isToldAgain ? .buffered : .durable, keepsNextBatch: true, mayWait: isToldAgain,
      aliases: judged.changes
    ) { tx in
      tx.pass(batch, end)
      for (item, (index, verdict)) in zip(batch.items, verdicts.enumerated()) {
        if PlantedSyncBug.isOn(.refusedForgotten), case .rejected = verdict { continue }
        let change = try tx.needsChange(verdict) ? log.change(at: item.sequence) : nil
        if PlantedSyncBug.isOn(.ackDropsLaterEdit), let change,
          let newest = try log.newestChange(ofKey: change.key),
          newest.sequence > tx.outbox.frontier
        {
          tx.outbox.decide(newest.sequence)
        }
        try tx.apply(verdict, to: item.sequence, change, there)
        if let double = judged.doubles[index] { try tx.unite(double, with: change, verdict) }
      }
    }
    // Changes that come after those of this batch may be sent now.
    deferred.blocked = SequenceSet()
    totals.count(verdicts)
    let namesContent = sent?.contains { $0.content.attachment != nil } ?? true
    if namesContent { try releaseContent(of: batch, verdicts) }
    try resolveWaiting()
  }

  /// The peer has applied the empty batch in place of the one in flight: its changes are pending.
  private func settleEmpty(_ inFlight: BatchInFlight) throws {
    try commit { tx in
      tx.resendBatch()
      tx.progress.count(inFlight.batch.number, inFlight.batch.batchID.ofEmpty)
      try tx.giveUp(inFlight)
    }
  }
}

extension PeerView {
  /// Whether a batch has changes that a restored peer had lost. If it has them again, their
  /// verdicts may be of a time when the authorization reached further.
  func isHeardOf(_ batch: OutgoingBatch) -> Bool {
    batch.items.contains { $0.sequence <= progress.heardThrough }
  }

  /// Whether it matters to a verdict which change it is on: most apply where nothing waits.
  fileprivate func needsChange(_ verdict: Verdict) -> Bool {
    guard case .applied = verdict, !PlantedSyncBug.isOn(.ackDropsLaterEdit) else { return true }
    return records.hasRemoteStates || !outbox.waiting.isEmpty
  }

  /// The feed's end, when nothing but the batch under way lies between it and the cursor.
  fileprivate func endOfBatch(_ verdicts: [Verdict]) -> Position? {
    guard capabilities.hasMarkBehindBatch, let range, range.contains(progress.cursor),
      range.head == progress.cursor.offset + UInt64(verdicts.count) + 1
    else { return nil }
    var offset = progress.cursor.offset
    for verdict in verdicts {
      offset += 1
      guard case .applied(let position) = verdict, position.offset == offset else { return nil }
    }
    return range.headPosition
  }
}

extension SyncTransaction {
  /// Applies the verdict on one change.
  /// - Parameters:
  ///   - change: nil for one that compaction has dropped: a newer one of its key has replaced it.
  ///   - there: the feed's versions at keys with a conflict.
  fileprivate mutating func apply(
    _ verdict: Verdict, to sequence: UInt64, _ change: LoggedChange?, _ there: [[UInt8]: FeedEntry]
  ) throws {
    var reason: WaitReason?
    switch verdict {
    case .applied(let position), .duplicate(let position):
      settled.add(sequence, at: position)
      // A delete of what the feed does not have gets no position.
      if let change, position != .beginning, let found = try conflicting(ofKey: change.key) {
        if found.state.position.offset > position.offset {
          // Another replica has changed the key after this change was applied.
          try merge(change.key, found.state)
        } else {
          // The change has replaced that version in the feed.
          try forgetRemote(ofKey: change.key)
        }
      }
    case .conflict(let position):
      // A conflict without a position: the feed has nothing at the key, not even a delete.
      reason = .conflict(position == .beginning ? range?.headPosition ?? position : position)
    case .lost(let position): reason = .lost(position)
    case .rejected(let rejection): reason = .parked(rejection)
    case .aborted: outbox.resend(sequence)
    }
    guard let change else { return }
    guard let reason else {
      // What waited on an older change of the key is superseded.
      outbox.supersede(change.key, by: sequence)
      return
    }
    outbox.wait(change, for: reason)
    if reason.isParked {
      try keepBase(of: change)
    } else if let entry = there[change.key], range?.contains(entry.position) ?? false {
      let state = try remoteState(entry)
      // A later version may have come meanwhile.
      let known = try conflicting(ofKey: entry.key)?.state.position.offset
      if known.map({ $0 < entry.position.offset }) ?? true {
        try writeRemote(state, ofKey: entry.key)
      }
    }
  }

  /// The batch has all its verdicts.
  fileprivate mutating func pass(_ batch: OutgoingBatch, _ end: Position?) {
    inFlight = nil
    progress.count(batch.number, batch.batchID)
    // The batch is all that is behind the cursor, so it need not be pulled.
    if let end, progress.resync == nil { progress.cursor = end }
    // After a batch that was halved passes, the next one may be larger.
    outbox.batchLimit =
      outbox.batchLimit > UInt64(session.limits.changes) ? 0 : outbox.batchLimit * 2
    if isHeardOf(batch) { compareReach() }
  }

  /// Ends a key whose record is the one that a change of another key has created.
  /// - Parameter change: nil for one that a newer one has replaced, and compaction dropped.
  fileprivate mutating func unite(
    _ double: LoggedChange, with change: LoggedChange?, _ verdict: Verdict
  ) throws {
    switch verdict {
    case .applied(let position), .duplicate(let position):
      if let change, try log.content(of: double) != log.content(of: change) {
        try merge(change.key, remoteState(of: double, at: position))
      }
    case .conflict, .lost, .rejected, .aborted: break
    }
    try purge(.nothing(double.key, at: .beginning, .left))
  }
}

extension SyncSession {
  /// Handles a failed call.
  ///
  /// A batch on which the peer keeps failing is replaced by an empty one, and its changes are sent
  /// again in halves, until the change that fails is alone and is parked.
  package func failed(_ error: PeerError) throws {
    let hadRange = range != nil
    let asked = keysAsked
    disconnect()
    switch error.kind {
    case .unavailable, .busy, .unauthorized: break
    case .cursorGone, .leaseExpired:
      try beginResync(seenThrough: progress.cursor.offset, canRead: error.kind == .leaseExpired)
    case .forbidden, .malformed, .failed:
      if error.kind != .forbidden, !asked.isEmpty, progress.resync == nil {
        return try failedToTell(asked, error)
      }
      guard hadRange, progress.resync == nil else { return }
      inFlight?.failures += 1
      inFlight?.lastFailure = error
    }
  }

  /// A peer that fails again and again on what a key holds keeps one change waiting, and not all
  /// others: they are asked for alone, and what still cannot be told is parked.
  private func failedToTell(_ keys: [[UInt8]], _ error: PeerError) throws {
    failuresToTell += 1
    guard keys.count == 1, failuresToTell >= BatchInFlight.mostFailures else { return }
    // The next one need not fail as often.
    failuresToTell -= 1
    try commit { tx in
      guard let waiting = tx.outbox.waiting.entry(ofKey: keys[0]), waiting.reason.position != nil,
        let change = try log.change(at: waiting.sequence)
      else { return }
      tx.outbox.wait(change, for: .parked(Rejection(code: "conflict", message: error.message)))
    }
  }
}

extension SyncTransaction {
  /// Halves the batch that the peer has failed on, or parks its only change or group.
  mutating func giveUp(_ inFlight: BatchInFlight) throws {
    guard inFlight.isGivenUp else { return }
    let changes = try inFlight.batch.items.map { try log.change(at: $0.sequence) }
    let group = changes.first??.attributes.atomicGroup ?? 0
    let isGroup = group != 0 && changes.allSatisfy { $0?.attributes.atomicGroup == group }
    guard isGroup || changes.count < 2 else {
      return outbox.batchLimit = UInt64(changes.count / 2)
    }
    for (item, change) in zip(inFlight.batch.items, changes) {
      outbox.decide(item.sequence)
      // One that compaction has dropped was replaced by a newer one of its key.
      guard let change else { continue }
      let message = inFlight.lastFailure?.message ?? "the peer fails on it"
      outbox.wait(change, for: .parked(Rejection(code: "failed", message: message)))
    }
    outbox.batchLimit = 1
  }
}
