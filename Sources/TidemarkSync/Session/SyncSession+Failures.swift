internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

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
