internal import Tidemark
internal import TidemarkEngine
public import TidemarkSyncProtocol

/// The own entries that a peer has not decided yet and that are the newest of their keys.
///
/// It is derived from the log and the peer's progress, and brought up to date when it is asked:
/// every entry is looked at once. 16 bytes an entry, and no work for writers.
struct PendingTable: Sendable {
  struct Row: Sendable {
    var sequence: UInt64
    var bytes: UInt32
    var labelSet: UInt32

    static let dead = UInt32.max
    var isLive: Bool { bytes != Self.dead }
  }

  /// Ascending by sequence. Decided rows stay, dead, until they are many.
  private(set) var rows: [Row] = []
  /// How many are live.
  private(set) var count = 0
  /// Bytes of what is live.
  private(set) var bytes = 0
  /// How many live rows have a label set, by its number.
  private(set) var perLabelSet: [UInt32: Int] = [:]
  /// All rows before this one are dead.
  private var first = 0
  private var through: UInt64
  /// Label sets by number, and their numbers.
  private var labelSets: [[EntryLabel]] = [[]]
  private var numbers: [[EntryLabel]: UInt32] = [[]: 0]
  /// Touches of pending entries: what comes after a touch names it as the version before.
  private var touched: [UInt64: UInt64] = [:]
  /// The undecided changes as of the last refresh.
  private var seen = SequenceSet()

  /// - Parameter frontier: that of the outbox; few changes up to it are pending.
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

  /// The first row behind a sequence.
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
    // These came back: a batch was aborted, or the peer restored.
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
      // A remote state beside a key may make sendable what was not worth sending.
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
      let former = touched.removeValue(forKey: entry.head.previous) ?? entry.head.previous
      if let place = place(of: former) { kill(place) }
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
  /// The runs with all own changes up to a sequence that are not decided.
  func undecided(through last: UInt64) -> SequenceSet {
    var runs = outbox.unsent(through: last)
    runs.formUnion(sequencesInFlight)
    for sequence in outbox.waiting.keys.sorted() { runs.insert(sequence) }
    return runs.intersection(SequenceSet(0...last))
  }

  /// Whether an own entry is within the scope and the peer could have any use for it: a key that
  /// was put and deleted before anybody heard of it sends nothing.
  func isWorthSending(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.kind == .delete else { return try isWithin(change) }
    if try base(of: change) != .absent { return true }
    guard let batchInFlight else { return false }
    var previous = change.previous
    while previous > 0, let version = try log.change(at: previous) {
      if batchInFlight.items.contains(where: { $0.sequence == previous }) { return true }
      previous = version.previous
    }
    return false
  }
}

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

extension WaitReason {
  /// Where the remote state stands that is waited for.
  var position: Position? {
    switch self {
    case .conflict(let position), .lost(let position): position
    case .parked, .needsDecision: nil
    }
  }

  /// The same with the peer's words cut to what is kept of them.
  var bounded: Self {
    if case .parked(let rejection) = self { .parked(rejection.bounded) } else { self }
  }

  /// The same for what stands at another position.
  func at(_ position: Position) -> Self { isLost ? .lost(position) : .conflict(position) }

  var isLost: Bool { if case .lost = self { true } else { false } }

  var isParked: Bool { if case .parked = self { true } else { false } }

  /// The code of the rejection; nil for what waits otherwise.
  var code: String? { if case .parked(let rejection) = self { rejection.code } else { nil } }

  var state: PendingState {
    switch self {
    case .conflict, .lost: .conflict
    case .parked(let rejection): .parked(rejection)
    case .needsDecision: .needsDecision
    }
  }
}
