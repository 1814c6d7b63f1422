public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// An entry that is not synced.
public struct PendingEntry: Sendable, Hashable {
  /// The key.
  public var key: Key
  /// The entry's place in the log.
  public var sequence: UInt64
  /// The operation of the change.
  public var kind: ChangeKind
  /// Its labels.
  public var labels: [EntryLabel]
  /// Bytes of key and value.
  public var bytes: Int
  /// When it was committed.
  public var commitTime: Timestamp
  /// How far it has come.
  public var state: PendingState
}

/// Entries that are not synced, a page of them.
public struct PendingPage: Sendable, Hashable {
  /// In the order of their sequences.
  public var entries: [PendingEntry]
  /// The sequence to give for the next page; nil when there is none.
  public var next: UInt64?
}

extension HostState {
  mutating func pendingSummary() throws(TidemarkError) -> PendingSummary {
    let table = try pending()
    let session = try session()
    var summary = PendingSummary()
    summary.entries = table.count
    summary.bytes = table.bytes
    summary.inFlight = session.sequencesInFlight.sequences.count { table.row($0) != nil }
    var waits: Set<UInt64> = []
    for (sequence, reason) in session.progress.waiting where !reason.state.goesOn {
      guard let row = table.row(sequence) else { continue }
      waits.insert(sequence)
      summary.entries -= 1
      summary.bytes -= Int(row.bytes)
      if reason == .needsDecision { summary.needsDecision += 1 } else { summary.parked += 1 }
    }
    if let oldest = table.liveRows.first(where: { !waits.contains($0.sequence) }) {
      summary.oldest = try log.change(at: oldest.sequence).map {
        HybridTime($0.commitTime).timestamp
      }
    }
    return summary
  }

  /// How many of the entries that go on by themselves carry each label.
  mutating func pendingByLabel() throws(TidemarkError) -> [EntryLabel: Int] {
    let table = try pending()
    var sets = table.perLabelSet
    for (sequence, reason) in try session().progress.waiting where !reason.state.goesOn {
      if let row = table.row(sequence) { sets[row.labelSet, default: 1] -= 1 }
    }
    var counts: [EntryLabel: Int] = [:]
    for (set, count) in sets where count > 0 {
      for label in table.labels(ofSet: set) { counts[label, default: 0] += count }
    }
    return counts
  }

  mutating func state(of change: LoggedChange) throws(TidemarkError) -> PendingState {
    let session = try session()
    if let reason = session.progress.waiting[change.sequence] { return reason.state }
    if session.sequencesInFlight.contains(change.sequence) { return .inFlight }
    return try session.stateOfUnsent(change)
  }

  mutating func pendingPage(
    after sequence: UInt64, limit: Int, _ label: EntryLabel? = nil
  ) throws(TidemarkError) -> PendingPage {
    let table = try pending()
    var page = PendingPage(entries: [], next: nil)
    for row in table.rows[table.index(after: sequence)...] where row.isLive {
      if let label, !table.labels(ofSet: row.labelSet).contains(label) { continue }
      guard page.entries.count < max(1, limit) else {
        page.next = page.entries.last?.sequence
        break
      }
      guard let change = try log.change(at: row.sequence) else { continue }
      page.entries.append(
        PendingEntry(
          key: Key(change.key), sequence: change.sequence,
          kind: change.kind == .put ? .put : .delete, labels: change.labels,
          bytes: Int(row.bytes), commitTime: HybridTime(change.commitTime).timestamp,
          state: try state(of: change)))
    }
    return page
  }
}
