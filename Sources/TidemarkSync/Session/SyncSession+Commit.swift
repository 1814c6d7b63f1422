internal import Tidemark
internal import TidemarkEngine

/// Commits: entries with what they change in the peer's records.
extension SyncSession {
  /// Commits entries together with what they change in the peer's records.
  ///
  /// - Parameters:
  ///   - durability: of what the peer would say again, it need not be on the disk at once.
  ///   - keepsPrepared: whether the batch that is prepared may still be what is to be sent next.
  ///   - body: adds entries and changes the progress; runs again from the same state when somebody
  ///     else wrote one of the keys in between.
  func commit(
    _ durability: Durability = .durable, keepsPrepared: Bool = false,
    _ body: (inout OperationBatch, inout PeerProgress, inout SettledRuns) throws -> Void
  ) throws {
    let kept = keepsPrepared ? prepared : nil
    prepared = nil
    for _ in 0..<Self.attempts {
      keysChosen = []
      counted = SyncTotals()
      aliasChanges = nil
      var batch = OperationBatch()
      var next = progress
      var runs = settled
      if let range { next.note(range) }
      try body(&batch, &next, &runs)
      do throws(TidemarkError) {
        if let aliasChanges { try records.write(aliasChanges, into: &batch) }
        try commit(&batch, next, &runs, formed, durability)
        if let aliasChanges { aliases?.apply(aliasChanges) }
        if counted.resolved > 0 { resolvedThrough = log.head }
        totals = totals + counted
        prepared = kept
        return
      } catch {
        guard error.code == .conflict else { throw error }
      }
    }
    throw TidemarkError(
      .conflict, "others write the same keys all the time; the replicator tries again later")
  }

  private static let attempts = 64

  /// Commits a batch with what the session has come to, which counts from then on.
  func commit(
    _ batch: inout OperationBatch, _ next: PeerProgress, _ runs: inout SettledRuns,
    _ formed: FormedBatch?, _ durability: Durability
  ) throws(TidemarkError) {
    let unread = runs.firstUnread(after: next.cursor.offset)
    let written = try records.write(
      next, &runs, formed, newPin(next, formed, unread), into: &batch)
    let result = try log.commit(batch, durability: durability)
    // It is committed, whatever becomes of what follows.
    progress = next
    progress.waiting.wereWritten()
    settled = runs
    pin = written.pin
    settledThrough = written.pin.settledThrough
    hasUnwritten = false
    records.took(written)
    try records.note(batch, result)
  }

  /// Takes what has become of a batch without writing it down: until the next one is formed, which
  /// is made durable with all that came before it, the peer says the same again.
  func take(_ next: PeerProgress, _ runs: SettledRuns) {
    settledThrough = newPin(next, formed, nil).settledThrough
    progress = next
    settled = runs
    hasUnwritten = true
  }

  /// Writes down what was taken and is not written yet.
  package func writeDown() throws {
    guard hasUnwritten || hasPassed else { return }
    try commit(.buffered, keepsPrepared: true) { _, _, _ in }
  }
}
