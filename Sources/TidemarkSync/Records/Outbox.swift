package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The own changes that a peer has yet to decide on: the one owner of what is sent, waits or is
/// done with.
///
/// Changes behind the frontier are pending. Up to it they are decided, except those in `pending`,
/// those in `waiting`, and the batch in flight.
package struct Outbox: Sendable, Hashable {
  package private(set) var frontier: UInt64 = 0
  /// All pending changes up to the frontier. A run may also cover entries that are nothing to send:
  /// the batch builder drops those when it comes to them.
  package private(set) var pending = SequenceSet()
  package private(set) var waiting = WaitingEntries()
  /// Most changes of a batch, while it is sought which of them the peer fails on; 0 for no limit.
  package var batchLimit: UInt64 = 0

  package init() {}

  /// What was read from the log.
  init(frontier: UInt64, pending: SequenceSet, batchLimit: UInt64 = 0) {
    (self.frontier, self.pending, self.batchLimit) = (frontier, pending, batchLimit)
  }

  // MARK: Reading

  /// Whether the own change at a sequence is to be sent.
  func isUnsent(_ sequence: UInt64) -> Bool { sequence > frontier || pending.contains(sequence) }

  /// The runs with all changes up to a sequence that are to be sent.
  func unsent(through last: UInt64) -> SequenceSet {
    var runs = pending
    if last > frontier { runs.insert(frontier + 1...last) }
    return runs
  }

  // MARK: Changing

  /// Takes entries out that are decided, or about to be. What lies between the frontier and them
  /// stays pending.
  mutating func remove(_ range: ClosedRange<UInt64>) {
    pending.remove(range)
    guard range.upperBound > frontier else { return }
    if range.lowerBound > frontier + 1 { pending.insert(frontier + 1...range.lowerBound - 1) }
    frontier = range.upperBound
  }

  /// Entries up to here were looked at; of those beyond the frontier nothing is pending but what
  /// `resend` has been told of.
  mutating func advance(through sequence: UInt64) { frontier = max(frontier, sequence) }

  /// A change is not pending any more.
  mutating func decide(_ sequence: UInt64) {
    waiting.remove(sequence)
    remove(sequence...sequence)
  }

  /// A change is to be sent, whatever was decided on it before.
  mutating func resend(_ sequence: UInt64) {
    waiting.remove(sequence)
    pending.insert(sequence)
  }

  mutating func resend(_ sequences: SequenceSet) { pending.formUnion(sequences) }

  /// Lets a change wait, which is not sent before it is decided.
  mutating func wait(_ change: LoggedChange, for reason: WaitReason) {
    let former = waiting.insert(change, for: reason)
    remove(change.sequence...change.sequence)
    if let former { passOn(former) }
  }

  /// A newer change of a key has taken the place of what waited.
  /// - Returns: whether what waited is to be sent all the same.
  @discardableResult
  mutating func supersede(_ key: [UInt8], by sequence: UInt64) -> Bool {
    guard let former = waiting.entry(ofKey: key), former.sequence < sequence,
      !PlantedSyncBug.isOn(.olderWaitsForEver)
    else { return false }
    waiting.remove(former.sequence)
    return passOn(former)
  }

  /// A change that belongs to a write that applies as a whole goes with that, before what has taken
  /// its place, unless it was refused or given up.
  @discardableResult
  private mutating func passOn(_ former: WaitingEntries.Entry) -> Bool {
    guard former.isOfGroup else { return false }
    switch former.reason {
    case .conflict, .needsDecision:
      pending.insert(former.sequence)
      return true
    case .lost, .parked: return false
    }
  }

  /// Nothing waits, and all is pending: the peer is another one.
  mutating func removeAll() {
    waiting.removeAll()
    (frontier, pending, batchLimit) = (0, SequenceSet(), 0)
  }

  // MARK: The log's records

  /// Takes over that a change waits, as a record says.
  mutating func restore(_ change: LoggedChange?, _ sequence: UInt64, _ reason: WaitReason) {
    waiting.restore(change, sequence, reason)
  }

  /// The records are as this is.
  mutating func wereWritten() { waiting.wereWritten() }
}
