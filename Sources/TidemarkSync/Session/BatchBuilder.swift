internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Forms the next batch: walks the pending changes and adds those that can be sent until it is
/// full.
///
/// Changes of a priority above 0 are sent first, then the others in the order of the log, and those
/// below 0 last, unless another change waits for them. Changes of one key always keep their order.
///
/// A change waits only for an earlier one, for the peer or for the user, so there is no deadlock.
struct BatchBuilder: PeerView {
  let session: SyncSession
  /// The progress as it will be once the batch is formed.
  var progress: PeerProgress
  var deferred: DeferredChanges
  var items: [OutgoingBatch.Item] = []
  /// The changes that are sent, in the order of `items`.
  var changes: [PushedChange] = []
  var bytes = 0
  /// The keys of the batch, each with the sequence of its last change in it; and those of changes
  /// that are sent.
  var taken: [[UInt8]: UInt64] = [:]
  var sentKeys: Set<[UInt8]> = []
  private var values: RowReader
  /// Whether any key has a remote state: the feed's version, stored beside another local value.
  private let hasRemoteStates: Bool
  /// Keys whose changes after the given sequence wait for a later batch.
  var blockedKeys: [[UInt8]: UInt64] = [:]
  /// How many entries were read.
  private(set) var looked = 0
  /// Whether the batch ends early, since the next change has to wait for its verdicts.
  var isClosed = false
  let most: Int
  /// The lowest priority that the budget lets through; nil for all.
  let least: Int64?

  var acknowledged: AcknowledgedRuns { session.acknowledged }
  var inFlight: BatchInFlight? { session.inFlight }
  var outbox: Outbox {
    get { progress.outbox }
    _modify { yield &progress.outbox }
  }

  init(_ session: SyncSession) {
    self.session = session
    progress = session.progress
    deferred = session.deferred
    values = RowReader(session.log.reader)
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
    // Changes on which the peer has failed are sent only when there is nothing else to send.
    for delayed in all == rest ? [rest] : [all, rest] {
      var before: Outbox
      repeat {
        before = outbox
        (taken, sentKeys, blockedKeys, isClosed) = ([:], [], [:], false)
        try pass(delayed)
        // A change that was superseded or parked in this pass may have blocked another.
      } while items.isEmpty && !deferred.blocked.isEmpty && outbox != before
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
    // A minimum priority above 0: `addUrgent` has added all such changes.
    guard least ?? 0 <= 0 else { return }
    var ready = outbox.unsent(through: log.head).subtracting(deferred.blocked)
    if least == nil { ready = ready.subtracting(deferred.low.subtracting(deferred.wanted)) }
    guard try take(ready, isLast: false), least == nil else { return }
    _ = try take(outbox.pending.intersection(deferred.low), isLast: true)
  }

  /// Adds the pending changes in some runs of the log.
  /// - Parameter isLast: whether changes of low priority are added as well.
  /// - Returns: whether the batch can still grow.
  private mutating func take(_ runs: SequenceSet, isLast: Bool) throws(TidemarkError) -> Bool {
    for run in runs.ranges {
      var cursor = log.entries(from: run.lowerBound, through: run.upperBound, prefetches: true)
      var next = run.lowerBound
      while next <= run.upperBound {
        if isFull { return false }
        let entry = try cursor.next()
        let sequence = entry?.sequence ?? run.upperBound + 1
        // Sequences without an entry have nothing to send.
        if sequence > next { outbox.remove(next...sequence - 1) }
        guard let entry else { break }
        next = sequence + 1
        // It may have been added with its atomic group.
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
          // A cached value, never sent, has replaced the change that waits for the user.
          supersede(by: change)
        }
      }
    }
    return true
  }

  /// Adds a change, or the key's newest in its place (coalescing), unless that is added or waits.
  mutating func take(_ change: LoggedChange) throws(TidemarkError) {
    outbox.remove(change.sequence...change.sequence)
    if change.attributes.atomicGroup != 0 { return try addGroup(of: change) }
    guard let newest = try newest(inPlaceOf: change), newest.isOwn,
      newest.sequence > taken[change.key] ?? 0
    else { return }
    // If the newer change is already decided, nothing is left to send.
    if newest.sequence != change.sequence, !isPending(newest) { return }
    if supersede(by: newest) { return block(newest.sequence) }
    guard try isWithin(newest) else { return }
    // The key waits for its remote state or for the user.
    if let waiting = outbox.waiting.entry(ofKey: newest.key) {
      if waiting.sequence > newest.sequence { block(newest.sequence) }
      // The wait moves to the newer change, since the resolver runs on the newest local value.
      if waiting.sequence < newest.sequence { outbox.wait(newest, for: waiting.reason) }
      return
    }
    if waitsForContent(newest) { return }
    if try isBlocked(newest) {
      // Only `change` was removed from the outbox; a newer one is still pending there.
      if newest.sequence == change.sequence { block(newest.sequence) }
      return
    }
    try add(newest)
  }

  /// Coalescing: the last change of a key that can be sent instead of an older one. Those with an
  /// atomic group or `after` never are, so that the replacement waits for nothing newer than the
  /// older change, and no cycle of waiting arises.
  func newest(inPlaceOf change: LoggedChange) throws(TidemarkError) -> LoggedChange? {
    if try log.reader.isNewest(change.sequence, ofKey: change.key.rawSpan) { return change }
    guard try log.slot(ofKey: change.key) != nil else { return nil }
    var candidate: LoggedChange?
    for version in try log.versions(ofKey: change.key, after: change.sequence) {
      if version.attributes.atomicGroup != 0 {
        candidate = nil
      } else if version.kind != .touch, version.attributes.after.isEmpty {
        candidate = candidate ?? version
      }
    }
    return candidate ?? change
  }

  /// A newer change, also one out of scope, is the user's decision about an older one that waits.
  /// After a `lost` verdict it gets a verdict of its own.
  /// - Returns: whether the older change is sent first all the same, with its atomic group.
  @discardableResult
  mutating func supersede(by change: LoggedChange) -> Bool {
    guard let waiting = outbox.waiting.entry(ofKey: change.key) else { return false }
    if case .conflict = waiting.reason { return false }
    return outbox.supersede(change.key, by: change.sequence)
  }

  /// Keeps later changes of the key for the next batch.
  mutating func blockKey(of change: LoggedChange) {
    blockedKeys[change.key] = min(change.sequence, blockedKeys[change.key] ?? .max)
  }

  /// Leaves a change pending for a later batch.
  mutating func block(_ sequence: UInt64) {
    outbox.resend(sequence)
    deferred.blocked.insert(sequence)
  }

  /// Adds a change to the batch, with its base.
  mutating func add(_ change: LoggedChange) throws(TidemarkError) {
    let sequence = change.sequence
    let base = change.previous == 0 && !hasRemoteStates ? .absent : try base(of: change)
    // A delete of a key that the peer never had is not sent.
    var isNothing =
      change.kind == .delete && base == .absent && change.attributes.atomicGroup == 0
    if isNothing { isNothing = try !mayBeThere(change) }
    taken[change.key] = sequence
    outbox.remove(sequence...sequence)
    if isNothing { return }
    sentKeys.insert(change.key)
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
