internal import Tidemark
internal import TidemarkEngine

extension SyncSession {
  /// A pin is written again when it is so old, so that it does not run out.
  private static let millisecondsToRenew: UInt64 = 86_400_000

  /// Keeps the history that the peer has yet to hear of: pending deletes, and what pending changes
  /// were made upon. And own deletes that the peer has heard of already, as long as what stands
  /// before them there has yet to come.
  /// - Parameter unread: the first own change in the feed behind what was read of it.
  /// - Returns: the pin, which counts once it is committed.
  func writePin(
    _ next: PeerProgress, _ formed: FormedBatch?, _ unread: UInt64?,
    into operations: inout OperationBatch
  ) throws(TidemarkError) -> RetentionPin {
    let now = UInt64(clamping: max(0, engine.environment.clock.now().milliseconds))
    let first = min(try firstNeeded(next, formed), unread ?? .max)
    if let pin, pin.first == first, now &- pin.renewed < Self.millisecondsToRenew { return pin }
    let renewed = RetentionPin(first: first, renewed: now)
    try records.write(renewed, into: &operations)
    return renewed
  }

  /// Keeps what is kept for a peer that answers, though nothing is there to be written for it.
  func renewPin() throws {
    let now = UInt64(clamping: max(0, engine.environment.clock.now().milliseconds))
    guard let pin, now &- pin.renewed >= Self.millisecondsToRenew else { return }
    let prepared = prepared
    try commit { _, _, _ in }
    self.prepared = prepared
  }

  private func firstNeeded(
    _ next: PeerProgress, _ formed: FormedBatch?
  ) throws(TidemarkError) -> UInt64 {
    var first = next.frontier + 1
    var isSettled = next.again.isEmpty && formed == nil
    if let again = next.again.ranges.first { first = min(first, again.lowerBound) }
    for item in formed?.items ?? [] { first = min(first, item.sequence) }
    for (sequence, reason) in next.waiting where sequence < first {
      // A put that is parked is its key's value, and stays without a pin.
      let isDelete = try engine.change(at: sequence)?.kind == .delete
      guard isDelete || reason.position != nil else { continue }
      first = sequence
      isSettled = false
    }
    // What is unsettled may stand for older changes of its keys, and was made upon what was there
    // before those.
    return isSettled ? first : min(first, pin?.first ?? first)
  }
}
