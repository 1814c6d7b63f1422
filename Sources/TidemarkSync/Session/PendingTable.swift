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

  /// In the order of their sequences; those that are decided stay, dead, until they are many.
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
  /// The explicit sets when they were looked at last.
  private var seen: (again: SequenceSet, waiting: Set<UInt64>, formed: UInt64)?

  /// - Parameter frontier: the peer's; all before it that is pending is in explicit sets.
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
    try addExplicit(session)
    let head = session.log.head
    if through < head {
      var cursor = session.log.entries(from: through + 1, through: head, includesRecords: true)
      while let entry = try cursor.next() {
        try take(entry, session)
        through = entry.sequence
      }
      through = head
    }
    removeDecided(session)
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
      try consider(newest, session)
    case .touch:
      let value = entry.head.valueSequence
      if isLive(value) { touched[entry.sequence] = value }
    default:
      let former = touched.removeValue(forKey: entry.head.previous) ?? entry.head.previous
      if let place = place(of: former) { kill(place) }
      let change = try LoggedChange(entry)
      guard change.isOwn, try session.isWorthSending(change) else { return }
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

  /// Adds an entry out of order, unless it is there.
  private mutating func consider(
    _ change: LoggedChange, _ session: SyncSession
  ) throws(TidemarkError) {
    guard !isLive(change.sequence), session.isPending(change, in: session.progress),
      try session.isWorthSending(change)
    else { return }
    let row = row(change)
    let place = index(after: change.sequence - 1)..<index(after: change.sequence)
    rows.replaceSubrange(place, with: CollectionOfOne(row))
    first = 0
    note(row)
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

  /// Entries that were looked at and have come back: a batch that failed, a peer that was
  /// restored, what waits for somebody.
  private mutating func addExplicit(_ session: SyncSession) throws(TidemarkError) {
    let progress = session.progress
    let now = (
      again: progress.again, waiting: Set(progress.waiting.keys),
      formed: session.formed?.number ?? 0
    )
    if let seen, seen == now { return }
    let old = seen
    seen = now
    var sequences = now.waiting
    sequences.formUnion(session.sequencesInFlight.sequences)
    sequences.formUnion(now.again.subtracting(old?.again ?? SequenceSet()).sequences)
    // Sequences that lie ahead are met when the log is read.
    let missing = sequences.filter { $0 <= through && !isLive($0) }.sorted()
    var found: [Row] = []
    for sequence in missing {
      guard let change = try session.log.change(at: sequence),
        let newest = try session.log.newestChange(ofKey: change.key),
        newest.sequence == sequence, try session.isWorthSending(change)
      else { continue }
      found.append(row(change))
      if let slot = try session.log.slot(ofKey: change.key), slot.sequence != sequence {
        touched[slot.sequence] = sequence
      }
    }
    guard !found.isEmpty else { return }
    let new = Set(found.map(\.sequence))
    rows.removeAll { !$0.isLive || new.contains($0.sequence) }
    rows.append(contentsOf: found)
    rows.sort { $0.sequence < $1.sequence }
    first = 0
    for row in found { note(row) }
  }

  private mutating func removeDecided(_ session: SyncSession) {
    let progress = session.progress
    // All others are pending anyway.
    for run in [0...progress.frontier] + progress.ahead.ranges {
      let start = run.lowerBound == 0 ? first : index(after: run.lowerBound - 1)
      for place in start..<max(start, index(after: run.upperBound))
      where rows[place].isLive && !session.isPending(rows[place].sequence, in: progress) {
        kill(place)
      }
    }
  }

  private func isLive(_ sequence: UInt64) -> Bool { place(of: sequence) != nil }

  private mutating func kill(_ index: Int) {
    count -= 1
    bytes -= Int(rows[index].bytes)
    perLabelSet[rows[index].labelSet, default: 1] -= 1
    rows[index].bytes = Row.dead
  }
}

extension SyncSession {
  /// Whether an own entry is within the scope and the peer could have any use for it: a key that
  /// was put and deleted before anybody heard of it sends nothing.
  func isWorthSending(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.kind == .delete else { return try isWithin(change) }
    if try base(of: change) != .absent { return true }
    guard let formed else { return false }
    var previous = change.previous
    while previous > 0, let version = try log.change(at: previous) {
      if formed.items.contains(where: { $0.sequence == previous }) { return true }
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

extension PeerProgress.Waiting {
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
