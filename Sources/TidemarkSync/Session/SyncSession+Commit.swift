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
    let former = (progress, settled, totals, inFlight)
    for _ in 0..<Self.attempts {
      keysArriving = arriving
      var operations = OperationBatch()
      let (renewed, basis, result): (RetentionPin, PeerProgress.Basis, CommitResult)
      do {
        if let range { progress.note(range) }
        try body(&operations)
        if let changes { try records.write(changes, into: &operations) }
        renewed = newPin(unread: settled.firstUnread(after: progress.cursor.offset))
        basis = try records.write(progress, &settled, formed, renewed, into: &operations)
        result = try log.commit(operations, durability: durability)
      } catch {
        (progress, settled, totals, inFlight) = former
        guard (error as? TidemarkError)?.code == .conflict else { throw error }
        continue
      }
      // It is committed, whatever becomes of what follows.
      progress.waiting.wereWritten()
      (pin, settledThrough) = (renewed, renewed.settledThrough)
      hasUnwritten = false
      records.took(basis)
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

  /// Writes down what was taken and is not written yet, and that nothing need be kept for the peer
  /// of what was looked at since and is not for it.
  package func writeDown() throws {
    let hasPassed = progress.feed != nil && pin.map { $0.frontier < progress.frontier } ?? false
    guard hasUnwritten || hasPassed else { return }
    try commit(.buffered, keepsPrepared: true) { _ in }
  }
}
