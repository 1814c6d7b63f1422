internal import Tidemark
internal import TidemarkEngine

/// Pending changes that the batch builder has read and not sent, to save reading them again for
/// each batch. In memory only; each session builds it anew.
struct DeferredChanges {
  /// The most entries searched for urgent changes for one batch: the log may be long.
  static let lookAhead: UInt64 = 65_536
  /// The number of urgent changes at which the search stops until these are sent.
  private let mostUrgent: Int

  /// Changes left out of the last batch: they wait for another change, an upload or a delay.
  var blocked = SequenceSet()
  /// Changes of a priority below 0, which are sent last.
  var low = SequenceSet()
  /// Changes that others wait for: they are not put off, whatever their priority.
  var wanted = SequenceSet()
  /// Changes that wait for the targets of their `after`, which the peer must have first.
  private(set) var successors = SequenceSet()
  /// The same, by target.
  private var successorsOf: [UInt64: SequenceSet] = [:]
  /// The urgent changes, of a priority above 0, up to `lookedThrough`.
  private var priorities: [UInt64: Int64] = [:]
  private var lookedThrough: UInt64 = 0

  init(mostUrgent: Int = 65_536) { self.mostUrgent = mostUrgent }

  /// Drops changes that are not pending any more.
  mutating func keep(_ pending: SequenceSet) {
    low = low.intersection(pending)
    wanted = wanted.intersection(pending)
    successors = successors.intersection(pending)
  }

  // MARK: Order

  /// Notes that a change waits for the target of its `after`.
  mutating func put(_ sequence: UInt64, behind target: UInt64) {
    wanted.insert(target)
    successors.insert(sequence)
    successorsOf[target, default: SequenceSet()].insert(sequence)
  }

  /// Targets that are not pending any more.
  func targets(outside pending: SequenceSet) -> [UInt64] {
    successorsOf.keys.filter { !pending.contains($0) }.sorted()
  }

  /// Unblocks the changes that wait for a target, which has its verdict.
  mutating func release(_ target: UInt64) {
    successors = successors.subtracting(successorsOf.removeValue(forKey: target) ?? SequenceSet())
  }

  // MARK: Priority

  /// By falling priority; of the same priority, in the order of the log.
  var urgent: [(sequence: UInt64, priority: Int64)] {
    priorities.map { (sequence: $0.key, priority: $0.value) }
      .sorted { ($1.priority, $0.sequence) < ($0.priority, $1.sequence) }
  }

  mutating func removeUrgent(_ sequence: UInt64) { priorities[sequence] = nil }

  /// Searches the log for urgent changes, from where the last search ended.
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
