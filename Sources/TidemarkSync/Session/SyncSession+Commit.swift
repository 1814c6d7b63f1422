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

extension SyncSession {
  /// A pin is written again when it is so old, so that it does not run out.
  private static let millisecondsToRenew: UInt64 = 86_400_000

  /// Keeps what is kept for a peer that answers, though nothing is there to be written for it.
  func renewPin() throws {
    let now = UInt64(clamping: max(0, log.now.milliseconds))
    guard let pin, now &- pin.renewed >= Self.millisecondsToRenew else { return }
    try commit(keepsPrepared: true) { _ in }
  }

  /// The pin of what the peer has yet to hear of: pending deletes, and what pending changes were
  /// made upon. And of deletes that stand in the feed, as long as what stands before own ones
  /// there has yet to come; of all of them, while a restored feed is read once more: of a key
  /// without any version it was compared that it is gone.
  /// - Parameter unread: the first own change in the feed behind what was read of it.
  /// - Returns: the pin, which counts once it is committed.
  func newPin(unread: UInt64?) -> RetentionPin {
    let now = UInt64(clamping: max(0, log.now.milliseconds))
    var pending = progress.again
    pending.formUnion(sequencesInFlight)
    // The base of a refused change lies beside its key, and a put is its key's value. A change that
    // lay outside of a scope is decided, too, and not in the feed.
    var isQuiet = pending.isEmpty && scope.isEverything && progress.scope == 0
    for entry in progress.waiting.entries.values {
      if !entry.reason.isParked { isQuiet = false }
      if !entry.reason.isParked || entry.isDelete { pending.insert(entry.sequence) }
    }
    if PlantedSyncBug.isOn(.pinNotMoved), let pin { return pin }
    let renewed = RetentionPin(
      frontier: progress.frontier, ahead: progress.ahead, pending: pending,
      settledThrough: isQuiet ? progress.frontier : settledThrough,
      unread: progress.readsAgain ? 1 : unread, renewed: now)
    if let pin, pin.keepsSame(as: renewed), now &- pin.renewed < Self.millisecondsToRenew {
      return pin
    }
    return renewed
  }
}
