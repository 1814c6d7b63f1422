internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Walks the pending changes and takes the first that fit into a batch.
///
/// Urgent changes go first, then the others in the order of the log, and what can wait comes last,
/// unless another one waits for it. In whatever order, a key's changes go in the order in which
/// they were made.
///
/// A waiting change does so for something that was written before it, for the peer, or for the
/// user: so there always is one that can go.
struct BatchBuilder: PeerView {
  let session: SyncSession
  /// The state as it is to be once the batch is formed.
  var progress: PeerProgress
  var deferred: DeferredChanges
  var items: [OutgoingBatch.Item] = []
  /// The changes that are sent, in the order of `items`.
  var changes: [PushedChange] = []
  var bytes = 0
  /// The keys that are in the batch, with the sequence of their last change in it.
  var taken: KeyTable
  private var values: RowReader
  /// Whether some key has a remote state beside it.
  private let hasRemoteStates: Bool
  /// Keys whose changes after this sequence wait for a later batch.
  var blockedKeys: [[UInt8]: UInt64] = [:]
  /// How many entries were read to find what goes.
  private(set) var looked = 0
  /// Whether the batch ends early, since what comes next has to wait for it.
  var isClosed = false
  let most: Int
  /// The lowest priority that the budget lets through; nil for all.
  let least: Int64?

  var settled: SettledRuns { session.settled }
  var inFlight: BatchInFlight? { session.inFlight }
  var outbox: Outbox {
    get { progress.outbox }
    _modify { yield &progress.outbox }
  }

  init(_ session: SyncSession) {
    self.session = session
    progress = session.progress
    deferred = session.deferred
    taken = KeyTable(seed: session.log.hashSeed)
    values = session.log.values
    hasRemoteStates = session.records.hasRemoteStates
    let limit = session.outbox.batchLimit
    most = min(session.limits.changes, limit == 0 ? .max : Int(clamping: limit))
    least = session.gate.isNarrow ? Int64(session.gate.leastPriority ?? .max) : nil
  }

  var isFull: Bool { isClosed || items.count >= most || bytes >= session.batchBytes }

  mutating func run() throws(TidemarkError) {
    deferred.keep(outbox.pending)
    let (rest, failed) = session.delayed.sequences(of: outbox.pending, at: log.monotonicNanoseconds)
    var all = rest
    all.formUnion(failed)
    // Changes on which the peer has failed go when nothing else does.
    for delayed in all == rest ? [rest] : [all, rest] {
      var former: Outbox
      repeat {
        former = outbox
        taken.removeAll()
        (blockedKeys, isClosed) = ([:], false)
        try pass(delayed)
        // A change that was superseded or parked on the way may have blocked another.
      } while items.isEmpty && !deferred.blocked.isEmpty && outbox != former
      if !items.isEmpty { return }
    }
  }

  private mutating func pass(_ delayed: SequenceSet) throws(TidemarkError) {
    try release()
    deferred.blocked = deferred.successors
    deferred.blocked.formUnion(session.outgoing.sequences)
    deferred.blocked.formUnion(delayed)
    deferred.blocked = deferred.blocked.intersection(outbox.pending)
    try addUrgent()
    // Changes of a high priority were all found by `findUrgent`.
    guard least ?? 0 <= 0 else { return }
    var ready = outbox.unsent(through: log.head).subtracting(deferred.blocked)
    if least == nil { ready = ready.subtracting(deferred.low.subtracting(deferred.wanted)) }
    guard try take(ready, isLast: false), least == nil else { return }
    _ = try take(outbox.pending.intersection(deferred.low), isLast: true)
  }

  /// Takes what is pending in some runs of the log.
  /// - Parameter isLast: whether nothing else is there to go.
  /// - Returns: whether the batch does not end here.
  private mutating func take(_ runs: SequenceSet, isLast: Bool) throws(TidemarkError) -> Bool {
    for run in runs.ranges {
      var cursor = log.entries(from: run.lowerBound, through: run.upperBound, prefetches: true)
      var next = run.lowerBound
      while next <= run.upperBound {
        if isFull { return false }
        let entry = try cursor.next()
        let sequence = entry?.sequence ?? run.upperBound + 1
        // What the log does not have is nothing to send.
        if sequence > next { outbox.remove(next...sequence - 1) }
        guard let entry else { break }
        next = sequence + 1
        // It may have gone with its group.
        if !outbox.isUnsent(sequence) || deferred.blocked.contains(sequence) {
          outbox.advance(through: sequence)
          continue
        }
        looked += 1
        let change = try LoggedChange(entry)
        if change.isOwn, !isLast, canWait(change) {
          outbox.resend(sequence)
          outbox.advance(through: sequence)
          continue
        }
        let isWrittenHere = change.kind != .touch && change.attributes.origin == nil
        if isWrittenHere, try isInFlight(change.key) { return false }
        outbox.remove(sequence...sequence)
        if change.isOwn {
          try take(change)
        } else if isWrittenHere {
          // A value that is not for the peer has taken the place of what waits for the user.
          supersede(by: change)
        }
      }
    }
    return true
  }

  /// Takes a key's newest change in the place of this one, unless that is taken or waits.
  mutating func take(_ change: LoggedChange) throws(TidemarkError) {
    outbox.remove(change.sequence...change.sequence)
    if change.attributes.atomicGroup != 0 { return try addGroup(of: change) }
    guard let newest = try newest(inPlaceOf: change), newest.isOwn,
      newest.sequence > taken[change.key] ?? 0
    else { return }
    // A newer change that is decided leaves nothing to send.
    if newest.sequence != change.sequence, !isPending(newest) { return }
    if supersede(by: newest) { return block(newest.sequence) }
    guard try isWithin(newest) else { return }
    // The key waits for a remote state, or for the user.
    if let waiting = outbox.waiting.entry(ofKey: newest.key) {
      if waiting.sequence > newest.sequence { block(newest.sequence) }
      // The resolver runs on the newest local value.
      if waiting.sequence < newest.sequence { outbox.wait(newest, for: waiting.reason) }
      return
    }
    if waitsForContent(newest) { return }
    if try isBlocked(newest) {
      // A newer change is pending under its own sequence; only this one has to be kept here.
      if newest.sequence == change.sequence { block(newest.sequence) }
      return
    }
    try add(newest)
  }

  /// The last change of a key that can go in the place of an older one: what belongs to an atomic
  /// group, or comes after other entries, goes in its own. So what goes in the place of another
  /// waits for nothing that is newer than that, and entries cannot wait for each other.
  func newest(inPlaceOf change: LoggedChange) throws(TidemarkError) -> LoggedChange? {
    if try log.isNewest(change) { return change }
    guard try log.slot(ofKey: change.key) != nil else { return nil }
    var candidate: LoggedChange?
    var version = try log.newestChange(ofKey: change.key)
    while let found = version, found.sequence > change.sequence {
      if found.attributes.atomicGroup != 0 {
        candidate = nil
      } else if found.kind != .touch, found.attributes.after.isEmpty {
        candidate = candidate ?? found
      }
      version = try log.change(at: found.previous)
    }
    return candidate ?? change
  }

  /// A new change is the user's decision, and takes the place of what waited for one, whether it
  /// is within the scope or not. One that was made after what lost is judged by itself.
  /// - Returns: whether what waited goes before it all the same.
  @discardableResult
  mutating func supersede(by change: LoggedChange) -> Bool {
    guard let waiting = outbox.waiting.entry(ofKey: change.key) else { return false }
    if case .conflict = waiting.reason { return false }
    return outbox.supersede(change.key, by: change.sequence)
  }

  /// Later changes of the key wait for the next batch.
  mutating func blockKey(of change: LoggedChange) {
    blockedKeys[change.key] = min(change.sequence, blockedKeys[change.key] ?? .max)
  }

  /// Leaves a change pending, for a later batch.
  mutating func block(_ sequence: UInt64) {
    outbox.resend(sequence)
    deferred.blocked.insert(sequence)
  }

  /// Puts a change into the batch.
  mutating func add(_ change: LoggedChange) throws(TidemarkError) {
    let sequence = change.sequence
    let base = change.previous == 0 && !hasRemoteStates ? .absent : try base(of: change)
    // A delete of what the peer never had is nothing to send.
    var isNothing =
      change.kind == .delete && base == .absent && change.attributes.atomicGroup == 0
    if isNothing { isNothing = try !mayBeThere(change) }
    taken.note(change.key, sequence, isSent: !isNothing)
    outbox.remove(sequence...sequence)
    if isNothing { return }
    items.append(OutgoingBatch.Item(sequence: sequence, base: base))
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
