internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Handles a mark, which has the peer's verdicts on the batch in flight if it is that batch's.
  func settle(_ mark: ReplicaMark) throws {
    // The next hello handles a mark of another batch.
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
    // A peer that numbers batches repeats the verdicts until the next batch, whose durable commit
    // saves them too.
    let isRepeated = capabilities.isNumbered
    try commit(
      isRepeated ? .buffered : .durable, keepsNextBatch: true, mayWait: isRepeated,
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
        try tx.apply(verdict, to: item.sequence, change)
        if let double = judged.doubles[index] { try tx.unite(double, with: change, verdict) }
      }
    }
    // Changes that waited for these verdicts may be sent now.
    deferred.blocked = SequenceSet()
    totals.count(verdicts)
    let namesContent = sent?.contains { $0.content.attachment != nil } ?? true
    if namesContent { try releaseContent(of: batch, verdicts) }
    try resolveWaiting()
  }

  /// The peer has applied the empty batch instead: the changes of the one in flight are pending.
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
  /// verdicts may date from a wider authorization.
  func hasLostChanges(_ batch: OutgoingBatch) -> Bool {
    batch.items.contains { $0.sequence <= progress.possiblyKnownThrough }
  }

  /// Whether a verdict cannot be handled without its change, which most batches need not read: all
  /// of their changes are applied, and no key has a remote state or an entry that waits.
  fileprivate func needsChange(_ verdict: PushVerdict) -> Bool {
    guard case .applied = verdict, !PlantedSyncBug.isOn(.ackDropsLaterEdit) else { return true }
    return records.hasRemoteStates || !outbox.waiting.isEmpty
  }

  /// The feed's end, if only the batch in flight lies between the cursor and the end: then the
  /// cursor can skip the batch; else nil.
  fileprivate func endOfBatch(_ verdicts: [PushVerdict]) -> FeedPosition? {
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
  /// Changes the outbox and the records by the verdict on one change.
  /// - Parameter change: nil if compaction has dropped it, since a newer one of its key has
  ///   replaced it.
  fileprivate mutating func apply(
    _ verdict: PushVerdict, to sequence: UInt64, _ change: LoggedChange?
  ) throws {
    var reason: WaitReason?
    switch verdict {
    case .applied(let position), .duplicate(let position):
      acknowledged.add(sequence, at: position)
      // A delete of an absent key gets the position `beginning`.
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
      // A conflict at `beginning`: the feed has no entry of the key, not even a delete.
      reason = .conflict(position == .beginning ? range?.headPosition ?? position : position)
    case .lost(let position): reason = .lost(position)
    case .rejected(let rejection): reason = .parked(rejection)
    case .aborted: outbox.resend(sequence)
    }
    guard let change else { return }
    guard let reason else {
      // An older change of the key that waits is superseded.
      outbox.supersede(change.key, by: sequence)
      return
    }
    outbox.wait(change, for: reason)
    if reason.isParked { try keepBase(of: change) }
  }

  /// Ends a batch that has all its verdicts.
  fileprivate mutating func pass(_ batch: OutgoingBatch, _ end: FeedPosition?) {
    inFlight = nil
    progress.count(batch.number, batch.batchID)
    // The feed has only this batch after the cursor, so nothing need be pulled.
    if let end, progress.resync == nil { progress.cursor = end }
    // A halved batch has passed, so the next one may be twice as large.
    outbox.batchLimit =
      outbox.batchLimit > UInt64(session.limits.changes) ? 0 : outbox.batchLimit * 2
    if hasLostChanges(batch) { compareReach() }
  }

  /// Evicts a key that has the same record at the back end as another key's change.
  /// - Parameter change: nil if compaction has dropped it, since a newer one has replaced it.
  fileprivate mutating func unite(
    _ double: LoggedChange, with change: LoggedChange?, _ verdict: PushVerdict
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
    let asked = requestedKeys
    disconnect()
    switch error.kind {
    case .unavailable, .busy, .unauthorized: break
    case .cursorGone, .leaseExpired:
      try beginResync(seenThrough: progress.cursor.offset, canRead: error.kind == .leaseExpired)
    case .forbidden, .malformed, .failed:
      if error.kind != .forbidden, !asked.isEmpty, progress.resync == nil {
        return try valuesFailed(asked, error)
      }
      guard hadRange, progress.resync == nil else { return }
      inFlight?.failures += 1
      inFlight?.lastFailure = error
    }
  }

  /// After a failed values request keys are requested singly, and a change is parked if the peer
  /// keeps failing on its key: it must not hold up all others.
  private func valuesFailed(_ keys: [[UInt8]], _ error: PeerError) throws {
    valuesFailures += 1
    guard keys.count == 1, valuesFailures >= BatchInFlight.mostFailures else { return }
    // The next key is parked after one failure.
    valuesFailures -= 1
    try commit { tx in
      guard let waiting = tx.outbox.waiting.entry(ofKey: keys[0]), waiting.reason.position != nil,
        let change = try log.change(at: waiting.sequence)
      else { return }
      tx.outbox.wait(change, for: .parked(SyncRejection(code: "conflict", message: error.message)))
    }
  }
}

extension SyncTransaction {
  /// After `mostFailures`: halves the next batches, or parks the batch's only change or group.
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
      // Compaction drops only changes that a newer one has replaced.
      guard let change else { continue }
      let message = inFlight.lastFailure?.message ?? "the peer fails on it"
      outbox.wait(change, for: .parked(SyncRejection(code: "failed", message: message)))
    }
    outbox.batchLimit = 1
  }
}
