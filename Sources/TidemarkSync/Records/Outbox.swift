package import TidemarkEngine
internal import TidemarkSyncProtocol

/// Tracks which own changes are pending towards a peer, which wait, and which are decided. It holds
/// their sequences in the log, and no copies.
///
/// Changes after the frontier are pending. Up to it they are decided, except those in `pending`,
/// those in `waiting`, and the batch in flight.
package struct Outbox: Sendable, Hashable {
  package private(set) var frontier: UInt64 = 0
  /// All pending changes up to the frontier. A run may also cover entries with nothing to send; the
  /// batch builder drops them.
  package private(set) var pending = SequenceSet()
  package internal(set) var waiting = WaitingEntries()
  /// The most changes of a batch while halving finds the change that fails; 0 for no limit.
  package var batchLimit: UInt64 = 0

  package init() {}

  /// The state as read from the log.
  init(frontier: UInt64, pending: SequenceSet, batchLimit: UInt64 = 0) {
    (self.frontier, self.pending, self.batchLimit) = (frontier, pending, batchLimit)
  }

  // MARK: Reading

  /// Whether the own change at a sequence is pending: not decided, in flight or waiting.
  func isUnsent(_ sequence: UInt64) -> Bool { sequence > frontier || pending.contains(sequence) }

  /// The runs of all pending changes up to a sequence.
  func unsent(through last: UInt64) -> SequenceSet {
    var runs = pending
    if last > frontier { runs.insert(frontier + 1...last) }
    return runs
  }

  // MARK: Changing

  /// Removes entries that are decided or will be. Those between the frontier and them stay pending.
  mutating func remove(_ range: ClosedRange<UInt64>) {
    pending.remove(range)
    guard range.upperBound > frontier else { return }
    if range.lowerBound > frontier + 1 { pending.insert(frontier + 1...range.lowerBound - 1) }
    frontier = range.upperBound
  }

  /// Moves the frontier past entries that were read; those of them that are pending were added by
  /// `resend`.
  mutating func advance(through sequence: UInt64) { frontier = max(frontier, sequence) }

  /// Records that a change is decided.
  mutating func decide(_ sequence: UInt64) {
    waiting.remove(sequence)
    remove(sequence...sequence)
  }

  /// Makes a change pending, even if it was decided.
  mutating func resend(_ sequence: UInt64) {
    waiting.remove(sequence)
    pending.insert(sequence)
  }

  mutating func resend(_ sequences: SequenceSet) { pending.formUnion(sequences) }

  /// Lets a change wait: it is not sent until a decision or a newer change of its key.
  mutating func wait(_ change: LoggedChange, for reason: WaitReason) {
    let older = waiting.insert(change, for: reason)
    remove(change.sequence...change.sequence)
    if let older { passOn(older) }
  }

  /// Ends the waiting of a key's older change, since a newer one has replaced it.
  /// - Returns: whether the older change is to be sent all the same, with its atomic group.
  @discardableResult
  mutating func supersede(_ key: [UInt8], by sequence: UInt64) -> Bool {
    guard let older = waiting.entry(ofKey: key), older.sequence < sequence,
      !PlantedSyncBug.isOn(.olderWaitsForEver)  // A fault that only tests switch on.
    else { return false }
    waiting.remove(older.sequence)
    return passOn(older)
  }

  /// Makes a member of an atomic group pending again, since the group is sent as a whole and before
  /// the newer change, unless the member was refused or given up.
  @discardableResult
  private mutating func passOn(_ older: WaitingEntries.Entry) -> Bool {
    guard older.isOfGroup else { return false }
    switch older.reason {
    case .conflict, .needsDecision:
      pending.insert(older.sequence)
      return true
    case .lost, .parked: return false
    }
  }

  /// Resets all: nothing waits and everything is pending, for another feed.
  mutating func removeAll() {
    waiting.removeAll()
    (frontier, pending, batchLimit) = (0, SequenceSet(), 0)
  }
}
