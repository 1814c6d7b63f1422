internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Commits entries together with what they change in the peer's records.
  ///
  /// - Parameters:
  ///   - durability: of what the peer would say again, it need not be on the disk at once.
  ///   - keepsPrepared: whether the batch that is prepared may still be what is to be sent next.
  ///   - changes: those of the peer's names for keys.
  ///   - arriving: the keys whose remote states are entered.
  ///   - body: adds entries and changes the session, which is as it was before where that fails;
  ///     runs again when somebody else wrote one of the keys in between.
  func commit(
    _ durability: Durability = .durable, keepsPrepared: Bool = false,
    aliases changes: AliasChanges? = nil, arriving: Set<[UInt8]> = [],
    _ body: (inout OperationBatch) throws -> Void
  ) throws {
    let kept = keepsPrepared ? prepared : nil
    prepared = nil
    let former = (progress, settled, totals)
    let (batch, sent) = (formed, sending)
    for _ in 0..<Self.attempts {
      keysArriving = arriving
      var operations = OperationBatch()
      let (written, result): (PeerRecords.Written, CommitResult)
      do {
        if let range { progress.note(range) }
        try body(&operations)
        if let changes { try records.write(changes, into: &operations) }
        let pin = newPin(unread: settled.firstUnread(after: progress.cursor.offset))
        written = try records.write(progress, &settled, formed, pin, into: &operations)
        result = try log.commit(operations, durability: durability)
      } catch {
        (progress, settled, totals) = former
        formed = batch
        sending = sent
        guard (error as? TidemarkError)?.code == .conflict else { throw error }
        continue
      }
      // It is committed, whatever becomes of what follows.
      progress.waiting.wereWritten()
      pin = written.pin
      settledThrough = written.pin.settledThrough
      hasUnwritten = false
      records.took(written)
      try records.note(operations, result)
      if let changes { aliases?.apply(changes) }
      if totals.resolved > former.2.resolved { resolvedThrough = log.head }
      prepared = kept
      return
    }
    throw TidemarkError(
      .conflict, "others write the same keys all the time; the replicator tries again later")
  }

  private static let attempts = 64

  /// Writes down what was taken and is not written yet.
  package func writeDown() throws {
    guard hasUnwritten || hasPassed else { return }
    try commit(.buffered, keepsPrepared: true) { _ in }
  }
}
