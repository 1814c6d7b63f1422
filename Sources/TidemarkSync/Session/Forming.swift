internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Walks the pending entries and takes the first that fit into a batch.
///
/// Urgent ones go first, then what is to be sent again, then what the log has behind the frontier,
/// and what can wait comes last, unless another one waits for it. In whatever order, a key's
/// changes go in the order in which they were made.
///
/// A waiting change does so for something that was written before it, for the peer, or for the
/// user: so there always is one that can go.
struct Forming {
  let session: SyncSession
  var progress: PeerProgress
  var items: [FormedBatch.Item] = []
  /// The changes that are sent, in the order of `items`.
  var changes: [PushedChange] = []
  var bytes = 0
  /// The keys that are in the batch, with the sequence of their last change in it.
  var taken: KeyTable
  private var values: RowReader
  /// Whether anything was laid beside a value here.
  private let hasBeside: Bool
  /// Keys of which nothing may go in this batch any more that is newer than this.
  var heldKeys: [[UInt8]: UInt64] = [:]
  /// The changes that have to wait for something else than the peer.
  var held = SequenceSet()
  /// The changes that the peer has put back, and that stay behind.
  private var resting = SequenceSet()
  /// How many entries were read to find what goes.
  private(set) var looked = 0
  /// Whether the batch ends here, although there would be room.
  var isClosed = false
  let most: Int
  /// Only what has this priority or a higher one goes, where not everything may; else nil.
  let least: Int64?

  init(_ session: SyncSession) {
    self.session = session
    progress = session.progress
    taken = KeyTable(seed: session.log.hashSeed)
    values = session.log.values
    hasBeside = session.records.hasRemoteStates
    most = min(
      session.limits.changes,
      progress.batchLimit == 0 ? .max : Int(clamping: progress.batchLimit))
    least = session.gate.isNarrow ? Int64(session.gate.leastPriority ?? .max) : nil
  }

  var isFull: Bool { isClosed || items.count >= most || bytes >= session.batchBytes }

  /// So often the entries are looked through, as long as none can go.
  private static let passes = 16

  mutating func run() throws(TidemarkError) {
    session.setAside.keep(progress.again)
    let (rest, failed) = session.resting.sequences(
      of: progress.again, at: session.log.monotonicNanoseconds)
    resting = rest
    resting.formUnion(failed)
    try runPasses()
    guard items.isEmpty, !failed.isEmpty else { return }
    resting = rest
    beginAgain()
    try runPasses()
  }

  private mutating func beginAgain() {
    taken.removeAll()
    (heldKeys, held, isClosed) = ([:], SequenceSet(), false)
  }

  private mutating func runPasses() throws(TidemarkError) {
    for _ in 0..<Self.passes {
      let before = progress
      try pass()
      // A change put out of the way may have held up another.
      guard items.isEmpty, !held.isEmpty, progress != before else { return }
      beginAgain()
    }
  }

  private mutating func pass() throws(TidemarkError) {
    try release()
    held = session.setAside.held
    held.formUnion(session.outgoing.sequences)
    held.formUnion(resting)
    held = held.intersection(progress.again)
    try takeUrgent()
    var first = progress.again.subtracting(held)
    if least == nil {
      first = first.subtracting(session.setAside.low.subtracting(session.setAside.wanted))
    }
    // Others than those of a high priority are found in the order of the log only.
    guard try takeAgain(first, isLast: false), least ?? 0 <= 0, try takeNew(), least == nil else {
      return
    }
    _ = try takeAgain(progress.again.intersection(session.setAside.low), isLast: true)
  }

  /// Takes what is to be sent again.
  /// - Parameter isLast: whether nothing else is there to go.
  /// - Returns: whether the batch does not end here.
  private mutating func takeAgain(
    _ sequences: SequenceSet, isLast: Bool
  ) throws(TidemarkError) -> Bool {
    for sequence in sequences.sequences {
      if isFull { return false }
      // With the group that it belongs to.
      if held.contains(sequence) || !progress.again.contains(sequence) { continue }
      looked += 1
      guard let change = try session.log.change(at: sequence) else {
        progress.again.remove(sequence)
        continue
      }
      if !isLast, canWait(change) { continue }
      if try session.isInFlight(change.key) { return false }
      try take(change)
    }
    return true
  }

  /// Takes what the log has behind the frontier.
  /// - Returns: whether the batch does not end here.
  private mutating func takeNew() throws(TidemarkError) -> Bool {
    let head = session.log.head
    var cursor = session.log.entries(from: progress.frontier + 1, through: head, prefetches: true)
    while !isFull {
      guard let entry = try cursor.next() else {
        passed(head)
        return true
      }
      looked += 1
      let change = try LoggedChange(entry)
      if !change.isOwn {
        if change.kind != .touch, change.attributes.origin == nil {
          if try session.isInFlight(change.key) { return false }
          // A value that is not for the peer has taken the place of what waits for the user.
          supersede(by: change)
        }
      } else if !progress.ahead.contains(change.sequence), !held.contains(change.sequence) {
        if try session.isInFlight(change.key) { return false }
        if canWait(change) { progress.again.insert(change.sequence) } else { try take(change) }
      }
      passed(change.sequence)
    }
    return false
  }

  mutating func passed(_ sequence: UInt64) {
    progress.frontier = max(progress.frontier, sequence)
    progress.ahead.removeAll(through: sequence)
  }

  /// Takes a key's newest change in the place of this one, unless that is taken or waits.
  mutating func take(_ change: LoggedChange) throws(TidemarkError) {
    progress.again.remove(change.sequence)
    if change.attributes.atomicGroup != 0 { return try takeGroup(of: change) }
    guard let newest = try newest(inPlaceOf: change), newest.isOwn,
      newest.sequence > taken[change.key] ?? 0
    else { return }
    // It is pending by itself, or it is not pending at all.
    if newest.sequence != change.sequence, !session.isPending(newest, in: progress) { return }
    if supersede(by: newest) { return hold(newest.sequence) }
    guard try session.isWithin(newest) else { return }
    // The key waits for what the peer has, or for the user.
    if let waiting = progress.waiting.entry(ofKey: newest.key) {
      if waiting.sequence > newest.sequence { hold(newest.sequence) }
      // The resolver runs on the newest local value.
      if waiting.sequence < newest.sequence { progress.wait(newest, for: waiting.reason) }
      return
    }
    if waitsForContent(newest) { return }
    if try isHeld(newest) {
      // It is come upon again by itself, unless this is the place.
      if newest.sequence == change.sequence { hold(newest.sequence) }
      return
    }
    try add(newest)
  }

  /// The last change of a key that can go in the place of an older one: what belongs to an atomic
  /// group, or comes after other entries, goes in its own. So what goes in the place of another
  /// waits for nothing that is newer than that, and entries cannot wait for each other.
  func newest(inPlaceOf change: LoggedChange) throws(TidemarkError) -> LoggedChange? {
    if try session.log.isNewest(change) { return change }
    guard try session.log.slot(ofKey: change.key) != nil else { return nil }
    var candidate: LoggedChange?
    var version = try session.log.newestChange(ofKey: change.key)
    while let found = version, found.sequence > change.sequence {
      if found.attributes.atomicGroup != 0 {
        candidate = nil
      } else if found.kind != .touch, found.attributes.after.isEmpty {
        candidate = candidate ?? found
      }
      version = try session.log.change(at: found.previous)
    }
    return candidate ?? change
  }

  /// A new change is the user's decision, and takes the place of what waited for one, whether it
  /// is within the scope or not. One that was made after what lost is judged by itself.
  /// - Returns: whether what waited goes before it all the same.
  @discardableResult
  mutating func supersede(by change: LoggedChange) -> Bool {
    guard let waiting = progress.waiting.entry(ofKey: change.key) else { return false }
    if case .conflict = waiting.reason { return false }
    return progress.supersede(change.key, by: change.sequence) != nil
  }

  /// Lets what is newer than a change of its key wait for a later batch.
  mutating func holdKey(of change: LoggedChange) {
    heldKeys[change.key] = min(change.sequence, heldKeys[change.key] ?? .max)
  }

  /// Leaves an entry for a later batch.
  mutating func hold(_ sequence: UInt64) {
    progress.again.insert(sequence)
    held.insert(sequence)
  }

  /// Puts a change into the batch.
  mutating func add(_ change: LoggedChange) throws(TidemarkError) {
    let sequence = change.sequence
    let base = change.previous == 0 && !hasBeside ? .absent : try session.base(of: change)
    // Put, then deleted before anybody heard of it.
    var isNothing =
      change.kind == .delete && base == .absent && change.attributes.atomicGroup == 0
    if isNothing { isNothing = try !session.mayBeThere(change) }
    taken.note(change.key, sequence, isSent: !isNothing)
    if sequence > progress.frontier { progress.ahead.insert(sequence) }
    progress.again.remove(sequence)
    if isNothing { return }
    items.append(FormedBatch.Item(sequence: sequence, base: base))
    let value = change.kind == .put ? try values.value(of: sequence) : []
    let pushed = PushedChange(change, change.content(value), upon: base)
    bytes += change.key.count + pushed.content.value.count + 64
    changes.append(pushed)
  }
}

extension PushedChange {
  init(_ change: LoggedChange, _ content: SyncContent, upon base: ChangeBase) {
    self.init(
      sequence: change.sequence, kind: change.kind == .put ? .put : .delete, key: change.key,
      content: content, base: base, commitTime: change.commitTime, time: change.attributes.time,
      atomicGroup: change.attributes.atomicGroup)
  }
}
