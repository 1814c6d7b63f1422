internal import Tidemark
internal import TidemarkEngine

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
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.pinNotMoved), let pin { return pin }
    #endif
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
