internal import Tidemark
internal import TidemarkEngine

/// What the batch builder knows of pending changes that it has read and not sent, so that it need
/// not read all of them again for each batch. It is found out anew when a session begins.
struct DeferredChanges {
  /// So many entries are looked at for one batch: the log may be long.
  static let lookAhead: UInt64 = 65_536
  /// So many urgent changes are kept; those behind them are looked for when these are gone.
  private let mostUrgent: Int

  /// Changes that have to wait for something else than the peer, as of the last batch.
  var blocked = SequenceSet()
  /// Changes of a priority below the usual, which go when nothing else does.
  var low = SequenceSet()
  /// Changes that others wait for: they do not wait for the end.
  var wanted = SequenceSet()
  /// Changes that come after others.
  private(set) var successors = SequenceSet()
  /// The same, by what they come after.
  private var successorsOf: [UInt64: SequenceSet] = [:]
  private var targets = SequenceSet()
  /// Changes of a priority above the usual, as far as the log was looked through for them.
  private var priorities: [UInt64: Int64] = [:]
  private var lookedThrough: UInt64 = 0

  init(mostUrgent: Int = 65_536) { self.mostUrgent = mostUrgent }

  /// Forgets what is not pending any more.
  mutating func keep(_ pending: SequenceSet) {
    low = low.intersection(pending)
    wanted = wanted.intersection(pending)
    successors = successors.intersection(pending)
  }

  // MARK: Order

  /// Takes note of a change that comes after another one.
  mutating func put(_ sequence: UInt64, behind target: UInt64) {
    wanted.insert(target)
    successors.insert(sequence)
    targets.insert(target)
    successorsOf[target, default: SequenceSet()].insert(sequence)
  }

  /// Changes that others come after and that are not pending themselves.
  func targets(outside pending: SequenceSet) -> SequenceSet { targets.subtracting(pending) }

  /// Frees the changes that come after one on which there is a verdict.
  mutating func release(_ target: UInt64) {
    targets.remove(target)
    successors = successors.subtracting(successorsOf.removeValue(forKey: target) ?? SequenceSet())
  }

  // MARK: Priority

  /// The most urgent first; of the same priority, in the order of the log.
  var urgent: [(sequence: UInt64, priority: Int64)] {
    priorities.map { (sequence: $0.key, priority: $0.value) }
      .sorted { ($1.priority, $0.sequence) < ($0.priority, $1.sequence) }
  }

  mutating func removeUrgent(_ sequence: UInt64) { priorities[sequence] = nil }

  /// Looks for urgent changes behind what was looked at before.
  mutating func findUrgent(
    _ outbox: Outbox, in log: ReplicationLog, most entries: UInt64 = .max
  ) throws(TidemarkError) {
    var left = entries
    var unsent = outbox.unsent(through: log.head)
    unsent.removeAll(through: lookedThrough)
    for range in unsent.ranges where priorities.count < mostUrgent && left > 0 {
      let through = range.lowerBound + min(range.upperBound - range.lowerBound, left - 1)
      left -= through - range.lowerBound + 1
      var cursor = log.entries(from: range.lowerBound, through: through)
      while let entry = try cursor.next() {
        guard entry.head.attributesLength > 0 else { continue }
        let change = try LoggedChange(entry)
        guard change.isOwn, change.attributes.priority > 0 else { continue }
        guard priorities.count < mostUrgent else {
          lookedThrough = change.sequence - 1
          return
        }
        priorities[change.sequence] = change.attributes.priority
      }
      lookedThrough = through
    }
  }
}
