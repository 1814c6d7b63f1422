internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Takes what a peer says of our batches.
  /// - Parameter current: what stands at keys where a change has come to a conflict.
  func settle(_ mark: ReplicaMark, _ current: [FeedEntry] = []) throws {
    // Other numbers are for the next hello to find out about.
    guard let inFlight, mark.number == inFlight.batch.number else { return }
    let batch = inFlight.batch
    if mark.batchID == batch.batchID.ofEmpty { return try settleEmpty(inFlight) }
    guard mark.batchID == batch.batchID else { return }
    guard mark.verdicts.count == batch.items.count else {
      throw PeerError(.malformed, "\(mark.verdicts.count) verdicts on \(batch.items.count)")
    }
    let sent = inFlight.content?.changes
    let judged = try judgeAliases(batch, mark, sent)
    let (verdicts, named) = (judged.verdicts, judged.changes)
    let end = endOfBatch(verdicts)
    if try named.isEmpty && areExpected(verdicts, of: batch) {
      // It is not written down: until the next batch is formed, which is made durable with all that
      // came before it, the peer says the same again.
      if let range { progress.note(range) }
      pass(batch, end)
      for (item, verdict) in zip(batch.items, verdicts) {
        guard case .applied(let position) = verdict else { continue }
        settled.add(item.sequence, at: position)
        if position.offset > progress.furthest.offset { progress.furthest = position }
      }
      settledThrough = newPin(unread: nil).settledThrough
      hasUnwritten = true
    } else {
      try settle(batch, judged, end, current)
    }
    count(verdicts)
    let namesContent = sent?.contains { $0.content.attachment != nil } ?? true
    if namesContent { try releaseContent(of: batch, verdicts) }
    try resolveWaiting()
  }

  /// Whether a batch has changes that a restored peer had lost. If it has them again, their
  /// verdicts may be of a time when the authorization reached further.
  func isHeardOf(_ batch: FormedBatch) -> Bool {
    batch.items.contains { $0.sequence <= progress.heardThrough }
  }

  /// Whether verdicts say no more of a batch than that all of it applied.
  private func areExpected(
    _ verdicts: [Verdict], of batch: FormedBatch
  ) throws(TidemarkError) -> Bool {
    if PlantedSyncBug.isOn(.ackDropsLaterEdit) { return false }
    guard capabilities.isNumbered,
      verdicts.allSatisfy({ if case .applied = $0 { true } else { false } })
    else { return false }
    guard records.hasRemoteStates else { return true }
    for item in batch.items {
      if let change = try log.change(at: item.sequence), records.hasRemote(ofKey: change.key) {
        return false
      }
    }
    return true
  }

  /// The batch is done with, and its keys are not under way any more.
  private func pass(_ batch: FormedBatch, _ end: Position?) {
    inFlight = nil
    // Entries held behind changes of this batch may go, now that there are verdicts.
    held = SequenceSet()
    progress.number = batch.number
    progress.batchID = batch.batchID
    // There is nothing behind the cursor but what was sent.
    if let end, progress.resync == nil { progress.cursor = end }
    // Halves that pass grow again.
    progress.batchLimit =
      progress.batchLimit > UInt64(limits.changes) ? 0 : progress.batchLimit * 2
    if isHeardOf(batch) { compareReach() }
  }

  private func settle(
    _ batch: FormedBatch, _ judged: JudgedAliases, _ end: Position?, _ current: [FeedEntry]
  ) throws {
    let there = Dictionary(current.map { ($0.key, $0) }) { $1 }
    // Until the next batch is formed, which is made durable with all that came before it, the peer
    // says the same again, if it counts batches.
    let durability: Durability = capabilities.isNumbered ? .buffered : .durable
    try commit(durability, keepsPrepared: true, aliases: judged.changes) { operations in
      pass(batch, end)
      for (index, item) in batch.items.enumerated() {
        let verdict = judged.verdicts[index]
        let change = try log.change(at: item.sequence)
        if PlantedSyncBug.isOn(.ackDropsLaterEdit), let change,
          let newest = try log.newestChange(ofKey: change.key),
          newest.sequence > progress.frontier
        {
          progress.ahead.insert(newest.sequence)
        }
        if PlantedSyncBug.isOn(.refusedForgotten), case .rejected = verdict { continue }
        try settle(item.sequence, change, verdict, there, into: &operations)
        if let double = judged.doubles[index] {
          try merge(double, into: change, verdict, &operations)
        }
      }
    }
  }

  /// Ends a key whose record is the one that a change of another key has created.
  /// - Parameter change: nil for one that a newer one has replaced, and compaction dropped.
  private func merge(
    _ double: LoggedChange, into change: LoggedChange?, _ verdict: Verdict,
    _ operations: inout OperationBatch
  ) throws {
    switch verdict {
    case .applied(let position), .duplicate(let position):
      if let change, try log.content(of: double) != log.content(of: change) {
        try meet(change.key, remoteState(of: double, at: position), into: &operations)
      }
    case .conflict, .lost, .rejected, .aborted: break
    }
    try purge(.nothing(double.key, at: .beginning, .left), into: &operations)
  }

  /// Takes what a peer says of one change.
  /// - Parameters:
  ///   - change: nil for one that compaction has dropped: a newer one of its key has replaced it.
  ///   - there: what stands at keys where a change has come to a conflict.
  private func settle(
    _ sequence: UInt64, _ change: LoggedChange?, _ verdict: Verdict,
    _ there: [[UInt8]: FeedEntry], into operations: inout OperationBatch
  ) throws {
    var reason: PeerProgress.Waiting?
    switch verdict {
    case .applied(let position), .duplicate(let position):
      settled.add(sequence, at: position)
      // A delete that is gone there has no place in the feed.
      if let change, position != .beginning, let found = try beside(ofKey: change.key) {
        if found.state.position.offset > position.offset {
          // Somebody has built on our operation before we heard that it counts.
          try meet(change.key, found.state, into: &operations)
        } else {
          // The change took its place there.
          try records.forgetRemote(ofKey: change.key, into: &operations)
        }
      }
    case .conflict(let position):
      // One with nothing means that a delete is gone there: what is known of it counts no more.
      reason = .conflict(position == .beginning ? range?.headPosition ?? position : position)
    case .lost(let position): reason = .lost(position)
    case .rejected(let rejection): reason = .parked(rejection)
    case .aborted: progress.again.insert(sequence)
    }
    guard let change else { return }
    guard let reason else {
      // Only the last of several changes of a key has anything to wait for.
      progress.supersede(change.key, by: sequence)
      return
    }
    progress.wait(change, for: reason)
    if reason.isParked {
      try keepBase(of: change, into: &operations)
    } else if let entry = there[change.key], range?.contains(entry.position) ?? false {
      let state = try remoteState(entry)
      // Something later may lie there.
      let known = try beside(ofKey: entry.key)?.state.position.offset
      if known.map({ $0 < entry.position.offset }) ?? true {
        try records.write(state, ofKey: entry.key, into: &operations)
      }
    }
  }

  /// The feed's end, when nothing but the batch under way lies between it and the cursor.
  private func endOfBatch(_ verdicts: [Verdict]) -> Position? {
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

  private func count(_ verdicts: [Verdict]) {
    totals.batches += 1
    totals.pushed += verdicts.count
    for verdict in verdicts {
      switch verdict {
      case .applied: totals.applied += 1
      case .duplicate: totals.duplicates += 1
      case .conflict, .lost: totals.conflicts += 1
      case .rejected: totals.parked += 1
      case .aborted: break
      }
    }
  }

  /// The peer holds an empty batch in the place of ours: its entries are sent again.
  private func settleEmpty(_ inFlight: BatchInFlight) throws {
    try commit { _ in
      sendAgain()
      progress.number = inFlight.batch.number
      progress.batchID = inFlight.batch.batchID.ofEmpty
      try giveUp(inFlight)
    }
  }
}

extension SyncSession {
  /// A call has failed; see ``disconnect()``.
  ///
  /// A batch on which the peer fails again and again is replaced by an empty one, and its changes
  /// are sent again in halves; one that fails alone is parked.
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
    try commit { _ in
      guard let waiting = progress.waiting.entry(ofKey: keys[0]), waiting.reason.position != nil,
        let change = try log.change(at: waiting.sequence)
      else { return }
      progress.wait(change, for: .parked(Rejection(code: "conflict", message: error.message)))
    }
  }

  /// Halves or parks what the peer has failed on, once it has an empty batch in its place.
  func giveUp(_ inFlight: BatchInFlight) throws {
    guard inFlight.isGivenUp else { return }
    let changes = try inFlight.batch.items.map { try log.change(at: $0.sequence) }
    let group = changes.first??.attributes.atomicGroup ?? 0
    let isGroup = group != 0 && changes.allSatisfy { $0?.attributes.atomicGroup == group }
    guard isGroup || changes.count < 2 else {
      return progress.batchLimit = UInt64(changes.count / 2)
    }
    for (item, change) in zip(inFlight.batch.items, changes) {
      progress.again.remove(item.sequence)
      // One that compaction has dropped was replaced by a newer one of its key.
      guard let change else { continue }
      let message = inFlight.lastFailure?.message ?? "the peer fails on it"
      progress.wait(change, for: .parked(Rejection(code: "failed", message: message)))
    }
    progress.batchLimit = 1
  }
}
