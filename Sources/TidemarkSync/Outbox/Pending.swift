public import Tidemark
internal import TidemarkEngine

/// How far an own entry has come towards a peer.
public enum PendingState: Sendable, Hashable {
  /// It waits to be sent.
  case pending
  /// It is in the batch that is under way; what becomes of it is not known yet.
  case inFlight
  /// The peer has something else at its key, and the resolver will see both.
  case conflict
  /// The peer will not have it, for the reason given; a new put or delete of its key, a retry or
  /// a discard goes on.
  case parked(Rejection)
  /// The resolver leaves it to the user.
  case needsDecision
  /// It comes after an entry that waits for the user, the one with this sequence, or after others
  /// that do.
  case blocked(by: UInt64)

  /// Whether it will go on by itself once the peer is there.
  public var goesOn: Bool {
    switch self {
    case .pending, .inFlight, .conflict: true
    case .parked, .needsDecision, .blocked: false
    }
  }
}

/// How much is not synced.
///
/// The entries that count: own puts and deletes of class `owned` that are the newest of their key,
/// within the scope, and without a verdict. What came from a peer does not count, nor do touches
/// and entries of class `cache`, nor an entry that a newer one of its key has replaced before it
/// was sent, nor a key that was put and deleted before the peer heard of it. What is in flight
/// counts until its verdict has come. Entries that wait for the user (parked, or to be decided) are
/// counted apart. Those that come after one of them count as if they went on by themselves, which
/// they do when that is settled; ``PendingEntry/state`` tells them from others.
public struct PendingSummary: Sendable, Hashable {
  /// How many entries will go on once the peer is there, and what they come after.
  public var entries = 0
  /// The bytes of their keys and values.
  public var bytes = 0
  /// When the oldest of them was committed.
  public var oldest: Timestamp?
  /// How many are in the batch that is under way.
  public var inFlight = 0
  /// How many the peer has refused.
  public var parked = 0
  /// How many the user is to decide.
  public var needsDecision = 0

  /// Nothing.
  public init() {}

  /// Whether nothing waits for the peer, nor for the user.
  public var isEmpty: Bool { entries == 0 && parked == 0 && needsDecision == 0 }
}

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

extension PeerProgress.Waiting {
  var state: PendingState {
    switch self {
    case .conflict, .lost: .conflict
    case .parked(let rejection): .parked(rejection)
    case .needsDecision: .needsDecision
    }
  }
}

extension HostState {
  /// How much is pending.
  mutating func pendingSummary() throws(TidemarkError) -> PendingSummary {
    let table = try pending()
    let session = try session()
    var summary = PendingSummary()
    summary.entries = table.count
    summary.bytes = table.bytes
    for item in session.formed?.items ?? [] where table.row(item.sequence) != nil {
      summary.inFlight += 1
    }
    var waits: Set<UInt64> = []
    for (sequence, reason) in session.progress.waiting where !reason.state.goesOn {
      guard let row = table.row(sequence) else { continue }
      waits.insert(sequence)
      summary.entries -= 1
      summary.bytes -= Int(row.bytes)
      if reason == .needsDecision { summary.needsDecision += 1 } else { summary.parked += 1 }
    }
    if let oldest = table.liveRows.first(where: { !waits.contains($0.sequence) }) {
      summary.oldest = try engine.change(at: oldest.sequence).map {
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

  mutating func state(
    of change: LoggedChange, _ inFlight: Set<UInt64>
  ) throws(TidemarkError) -> PendingState {
    let session = try session()
    if let reason = session.progress.waiting[change.sequence] { return reason.state }
    return inFlight.contains(change.sequence) ? .inFlight : try session.stateOfUnsent(change)
  }

  /// A page of what is pending.
  mutating func pendingPage(
    after sequence: UInt64, limit: Int, _ label: EntryLabel? = nil
  ) throws(TidemarkError) -> PendingPage {
    let table = try pending()
    let session = try session()
    let inFlight = Set(session.formed?.items.map(\.sequence) ?? [])
    var page = PendingPage(entries: [], next: nil)
    for row in table.rows[table.index(after: sequence)...] where row.isLive {
      if let label, !table.labels(ofSet: row.labelSet).contains(label) { continue }
      guard page.entries.count < max(1, limit) else {
        page.next = page.entries.last?.sequence
        break
      }
      guard let change = try engine.change(at: row.sequence) else { continue }
      page.entries.append(
        PendingEntry(
          key: Key(change.key), sequence: change.sequence,
          kind: change.kind == .put ? .put : .delete, labels: change.labels,
          bytes: Int(row.bytes), commitTime: HybridTime(change.commitTime).timestamp,
          state: try state(of: change, inFlight)))
    }
    return page
  }
}
