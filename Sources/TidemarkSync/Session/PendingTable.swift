internal import Tidemark
internal import TidemarkEngine
public import TidemarkSyncProtocol

/// The own entries without a verdict of a peer, newest of their keys: what programs see as pending.
///
/// It is derived from the log and the peer's progress, and updated when it is asked, so that it
/// costs writers nothing: each refresh reads the entries added since. It has 16 bytes an entry.
struct PendingTable: Sendable {
  struct Row: Sendable {
    var sequence: UInt64
    var bytes: UInt32
    var labelSet: UInt32

    static let dead = UInt32.max
    var isLive: Bool { bytes != Self.dead }
  }

  /// Ascending by sequence. Decided rows are marked dead, and removed when they are many.
  private(set) var rows: [Row] = []
  /// How many rows are live.
  private(set) var count = 0
  /// The bytes of live rows.
  private(set) var bytes = 0
  /// How many live rows have each label set, by its number.
  private(set) var perLabelSet: [UInt32: Int] = [:]
  /// All rows before this one are dead.
  private var first = 0
  private var through: UInt64
  /// The label sets by number, and the reverse.
  private var labelSets: [[EntryLabel]] = [[]]
  private var numbers: [[EntryLabel]: UInt32] = [[]: 0]
  /// Pending entries by the touches that renew them, which later versions have as `previous`.
  private var touched: [UInt64: UInt64] = [:]
  /// The undecided changes as of the last refresh.
  private var seen = SequenceSet()

  /// - Parameter frontier: that of the outbox, which lists the pending changes up to it.
  init(after frontier: UInt64) { through = frontier }

  var liveRows: some Sequence<Row> { rows[first...].lazy.filter(\.isLive) }

  func labels(ofSet number: UInt32) -> [EntryLabel] { labelSets[Int(number)] }

  /// The row of an entry; nil when it is not pending.
  func row(_ sequence: UInt64) -> Row? { place(of: sequence).map { rows[$0] } }

  private func place(of sequence: UInt64) -> Int? {
    let place = index(after: sequence) - 1
    guard place >= 0, rows[place].sequence == sequence, rows[place].isLive else { return nil }
    return place
  }

  /// The index of the first row after a sequence.
  func index(after sequence: UInt64) -> Int {
    rows.partitioningIndex { $0.sequence > sequence }
  }

  // MARK: Bringing it up to date

  mutating func refresh(_ session: SyncSession) throws(TidemarkError) {
    let now = session.undecided(through: through)
    for run in seen.subtracting(now).ranges {
      for place in index(after: run.lowerBound - 1)..<index(after: run.upperBound)
      where rows[place].isLive {
        kill(place)
      }
    }
    // Pending again: a batch was aborted, or the peer was restored.
    for run in now.subtracting(seen).ranges { try add(run, session) }
    let head = session.log.head
    if through < head {
      var cursor = session.log.entries(from: through + 1, through: head, includesRecords: true)
      while let entry = try cursor.next() {
        try take(entry, session)
        through = entry.sequence
      }
      through = head
    }
    seen = session.undecided(through: through)
    if rows.count > 64, rows.count > 2 * count {
      rows.removeAll { !$0.isLive }
      first = 0
    }
    while first < rows.count, !rows[first].isLive { first += 1 }
  }

  private mutating func take(_ entry: LogEntry, _ session: SyncSession) throws(TidemarkError) {
    switch entry.head.kind {
    case .record:
      // A remote state shows that the peer has the key, so a delete of it must be sent after all.
      guard try entry.attributes().recordType == RecordType.remoteState.rawValue,
        let newest = try session.log.newestChange(ofKey: entry.key),
        newest.sequence <= through, newest.kind == .delete
      else { return }
      guard session.isPending(newest) else { return }
      try add(newest.sequence...newest.sequence, session)
    case .touch:
      let value = entry.head.valueSequence
      if isLive(value) { touched[entry.sequence] = value }
    default:
      let replaced = touched.removeValue(forKey: entry.head.previous) ?? entry.head.previous
      if let place = place(of: replaced) { kill(place) }
      let change = try LoggedChange(entry)
      guard session.isPending(change), try session.isWorthSending(change) else { return }
      let row = row(change)
      rows.append(row)
      note(row)
    }
  }

  private mutating func note(_ row: Row) {
    count += 1
    bytes += Int(row.bytes)
    perLabelSet[row.labelSet, default: 0] += 1
  }

  private mutating func row(_ change: LoggedChange) -> Row {
    let labelSet = numbers[change.labels] ?? UInt32(clamping: labelSets.count)
    if labelSet == labelSets.count {
      labelSets.append(change.labels)
      numbers[change.labels] = labelSet
    }
    return Row(
      sequence: change.sequence,
      bytes: UInt32(clamping: min(change.key.count + change.valueLength, Int(Row.dead) - 1)),
      labelSet: labelSet)
  }

  /// Adds changes that are the newest of their keys, out of order.
  private mutating func add(
    _ run: ClosedRange<UInt64>, _ session: SyncSession
  ) throws(TidemarkError) {
    var found: [Row] = []
    var cursor = session.log.entries(from: run.lowerBound, through: run.upperBound)
    while let entry = try cursor.next() {
      guard !isLive(entry.sequence) else { continue }
      let change = try LoggedChange(entry)
      guard change.isOwn,
        try session.log.newestChange(ofKey: change.key)?.sequence == change.sequence,
        try session.isWorthSending(change)
      else { continue }
      found.append(row(change))
      if let slot = try session.log.slot(ofKey: change.key), slot.sequence != change.sequence {
        touched[slot.sequence] = change.sequence
      }
    }
    let place = index(after: run.lowerBound - 1)..<index(after: run.upperBound)
    let kept = rows[place].filter(\.isLive)
    rows.replaceSubrange(place, with: (kept + found).sorted { $0.sequence < $1.sequence })
    first = min(first, place.lowerBound)
    for row in found { note(row) }
  }

  private func isLive(_ sequence: UInt64) -> Bool { place(of: sequence) != nil }

  private mutating func kill(_ index: Int) {
    count -= 1
    bytes -= Int(rows[index].bytes)
    perLabelSet[rows[index].labelSet, default: 1] -= 1
    rows[index].bytes = Row.dead
  }
}

extension PeerView {
  /// The runs with all own changes up to a sequence that have no verdict or decision.
  func undecided(through last: UInt64) -> SequenceSet {
    var runs = outbox.unsent(through: last)
    runs.formUnion(sequencesInFlight)
    for sequence in outbox.waiting.keys.sorted() { runs.insert(sequence) }
    return runs.intersection(SequenceSet(0...last))
  }

  /// Whether an own entry is within the scope and changes anything at the peer: a key that was put
  /// and deleted before it was sent needs no call.
  func isWorthSending(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.kind == .delete else { return try isWithin(change) }
    if try base(of: change) != .absent { return true }
    guard let inFlight else { return false }
    return try versions(from: log.change(at: change.previous)).lacking
      .contains { inFlight.sequences.contains($0.sequence) }
  }
}

/// Why a peer does not have one of this store's entries yet.
@nonexhaustive
public enum PendingState: Sendable, Hashable {
  /// The entry waits to be sent.
  case pending
  /// The replicator has sent the entry in a batch, and the peer has not answered yet.
  case inFlight
  /// The peer has another version of the key. The replicator will give both versions to the
  /// resolver.
  case conflict
  /// The peer has refused the entry, for this reason. The entry waits until you write its key
  /// again, retry it or discard it.
  case parked(SyncRejection)
  /// Both sides have changed the key, and the resolver leaves the decision to the user.
  case needsDecision
  /// The entry was written `after` the entry with this sequence, which waits for the user, or
  /// `after` other blocked entries.
  case blocked(by: UInt64)

  /// Whether the entry needs no decision of the user, so that it syncs once the peer can be
  /// reached.
  public var goesOn: Bool {
    switch self {
    case .pending, .inFlight, .conflict: true
    case .parked, .needsDecision, .blocked: false
    }
  }
}

extension WaitReason {
  /// The position of the remote state that the entry waits for, or of a later one.
  var position: FeedPosition? {
    switch self {
    case .conflict(let position), .lost(let position): position
    case .parked, .needsDecision: nil
    }
  }

  /// The same with the peer's message cut to the length that is stored.
  var bounded: Self {
    if case .parked(let rejection) = self { .parked(rejection.bounded) } else { self }
  }

  /// The same for a version at another position.
  func at(_ position: FeedPosition) -> Self { isLost ? .lost(position) : .conflict(position) }

  var isLost: Bool { if case .lost = self { true } else { false } }

  var isParked: Bool { if case .parked = self { true } else { false } }

  /// The code of the rejection; nil for other reasons.
  var code: String? { if case .parked(let rejection) = self { rejection.code } else { nil } }

  var state: PendingState {
    switch self {
    case .conflict, .lost: .conflict
    case .parked(let rejection): .parked(rejection)
    case .needsDecision: .needsDecision
    }
  }
}
