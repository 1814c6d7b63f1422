internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// The state machine that replicates a store with one peer: `next` gives the next request, and
/// `receive` handles the answer to it.
///
/// It never blocks and makes no network call, so that a program's replicator and a simulation run
/// the same code. What must outlive the process is in records of the store's log, committed in one
/// batch with the entries that it describes.
package final class SyncSession {
  package let log: ReplicationLog
  /// The name by which the store knows the peer; its records are kept under it.
  let name: [UInt8]
  package let scope: SyncScope
  let capabilities: PeerCapabilities
  let resolver: ConflictResolver
  package let records: PeerRecords
  package internal(set) var progress: PeerProgress
  /// The batch that was sent last, until the peer's mark has its verdicts, with what was learnt of
  /// it since; `batchInFlight` is the batch alone.
  package internal(set) var inFlight: BatchInFlight?
  package internal(set) var acknowledged: AcknowledgedRuns
  /// The epochs and end of the peer's feed, from its last answer; nil before the session's hello.
  package internal(set) var range: FeedRange?
  /// Fingerprint of the entries that the authorization covers, from the hello; nil if not given.
  package internal(set) var reach: UInt64?
  var limits = SyncLimits()
  /// Most bytes of an attachment that the peer accepts; nil where it accepts no attachments.
  var attachmentBytes: Int?
  /// The peer's conflict policies, from the last hello.
  private(set) var policies: [CollectionPolicy] = []
  /// Milliseconds by which this store's clock is ahead of the peer's; 0 for up to a minute.
  private(set) var clockLead: UInt64 = 0
  package var attachmentPolicy = AttachmentPolicy()
  var outgoing = OutgoingAttachments()
  var incoming = IncomingAttachments()
  /// The most entries that may wait for the user or for a remote state before sending stops.
  var mostWaiting = 65_536
  /// About how many bytes of resolved conflicts one commit may write.
  var bytesTogether = 4 << 20
  var gate = SyncGate()
  /// Whether the session pulls entries of other replicas: the direction of the last `next`.
  var reads = true
  /// The cursor's offset at the last pull for own entries alone; it is not repeated at this offset.
  var ownPullCursor: UInt64?
  /// The keys of the last values request, until its answer arrives.
  var requestedKeys: [[UInt8]] = []
  /// The number of waiting entries, if it is at `mostWaiting`, so that nothing more is sent.
  var tooManyWaiting: Int?
  package internal(set) var totals = SyncTotals()
  /// Number and id of the peer's last mark for this replica, with the feed's end at that time.
  var lastMark: (number: UInt64, batch: BatchID, head: UInt64) = (0, .none, 0)
  var naming = BatchNaming()
  /// Whether verdicts are in memory only: after a crash the peer's mark delivers them again.
  package internal(set) var hasUnwritten = false
  /// Every decided own entry up to here is in the feed. The saved pin lags by unwritten verdicts.
  var acknowledgedThrough: UInt64 = 0
  /// Pending changes that were read and not sent, and those that the peer wants to have later.
  var deferred = DeferredChanges()
  var delayed = DelayedChanges()
  /// The batch built while another one is in flight; nil once it may be stale.
  var nextBatch: (draft: BatchDraft, request: PushRequest)?
  /// The start of the log's history at the last `pruneSettled`.
  var prunedHistory: UInt64 = 0
  /// The log's head after the last commit in which a resolver decided.
  var resolvedThrough: UInt64 = 0
  /// The ids that the peer's back end gave to keys; nil until they are read from the log.
  var aliases: KnownAliases?
  var comparing: Comparing?
  /// Whether a comparison by digest has ended since the last hello, which reports it to the peer.
  var hasCompared = false
  /// How many values requests have failed in a row; from the first on keys are requested singly.
  var valuesFailures = 0
  /// The retention pin that was written last.
  package internal(set) var pin: RetentionPin?

  package init(
    _ log: ReplicationLog, name: String, scope: SyncScope = .everything,
    resolver: ConflictResolver = .byPolicy,
    capabilities: PeerCapabilities = PeerCapabilities()
  ) throws(TidemarkError) {
    self.capabilities = capabilities
    self.log = log
    self.name = Array(name.utf8)
    self.scope = scope
    self.resolver = resolver
    records = try PeerRecords(log, peer: self.name)
    let saved = try records.savedState()
    progress = saved?.progress ?? PeerProgress()
    acknowledged = saved?.acknowledged ?? AcknowledgedRuns()
    acknowledged.findUnread(after: progress.cursor.offset)
    pin = saved?.pin
    acknowledgedThrough = pin?.acknowledgedThrough ?? 0
    inFlight = saved?.batch.map { BatchInFlight($0) }
    // A later change of the key supersedes an entry that waits for the user.
    for entry in outbox.waiting.entries.values where entry.reason.position == nil {
      if let newest = try log.newestChange(ofKey: entry.key), newest.sequence > entry.sequence,
        !isPending(newest)
      {
        progress.outbox.supersede(entry.key, by: newest.sequence)
      }
    }
  }

  // MARK: What next

  /// The next request; nil when there is nothing to do until a write, here or in the feed.
  /// - Parameters:
  ///   - direction: push, pull or both.
  ///   - gate: the calls that the budget allows.
  package func next(
    _ direction: SyncDirection = .both, through gate: SyncGate = SyncGate()
  ) throws -> WireMessage? {
    self.gate = gate
    reads = direction.pulls
    requestedKeys = []
    // Entries that waited for the user may have been decided since the last call.
    tooManyWaiting = nil
    guard range != nil else {
      update { $0.adoptReplica() }
      return .helloRequest(hello())
    }
    if gate.isNarrow {
      // A resync may need many calls, so it waits until the budget allows all.
      guard progress.resync == nil, direction.pushes, let least = gate.leastPriority else {
        return nil
      }
      if batchInFlight != nil, try !isUrgent(least) { return nil }
    } else if progress.resync != nil {
      // Pushing or pulling before a resync ends could bring back deleted keys.
      if let call = try nextOfResync() { return call }
      // A resync that is left waits for the user's decision on deletions.
      guard progress.resync == nil else { return nil }
    }
    guard let range else { return .helloRequest(hello()) }
    // The batch in flight is finished in any direction: the peer may have applied it already.
    if inFlight != nil {
      // Content of attachments must be at the peer before the batch that refers to it.
      if let part = try nextPartOfBatch() { return .attachRequest(part) }
      // Nil while the peer wants the batch later: pulling goes on meanwhile.
      if let push = try nextRequest() { return .pushRequest(push) }
    }
    // What is sent in no direction is passed here, so that it does not count as unsent.
    if !direction.pushes { try passForeign() }
    if !gate.isNarrow, let pull = try nextPull(range) { return .pullRequest(pull) }
    // A crash may have come between a conflict's commit and the resolver's.
    try resolveWaiting()
    let keys = try keysToFetch()
    if !keys.isEmpty { return .valuesRequest(try valuesRequest(keys)) }
    if direction.pushes, let push = try nextPush() { return push }
    return direction.pulls ? try nextFetch().map { .fetchRequest($0) } : nil
  }

  /// How many entries of the feed are not pulled yet.
  var entriesToTake: UInt64 { range.map { $0.head - min($0.head, progress.cursor.offset) } ?? 0 }

  /// Whether nothing is in flight, nothing can be sent, and the feed is pulled to its known end.
  package var isAtRest: Bool {
    guard let range, batchInFlight == nil, progress.resync == nil,
      progress.cursor.offset >= range.head
    else { return false }
    return outbox.frontier >= log.head && outgoing.isAtRest && !isFetching
      && outbox.pending.subtracting(deferred.blocked).isEmpty
  }

  package func pullRequest(waitMilliseconds: UInt32 = 0) throws(TidemarkError) -> PullRequest {
    var request = PullRequest(
      replica: replica, after: progress.cursor, scope: scope,
      limits: SyncLimits(changes: limits.changes, bytes: batchBytes),
      waitMilliseconds: waitMilliseconds, everyVersion: progress.possiblyKnownThrough > 0)
    request.aliases = try knownAliases()
    return request
  }

  func valuesRequest(_ keys: [[UInt8]]) throws(TidemarkError) -> ValuesRequest {
    requestedKeys = keys
    var request = ValuesRequest(replica: replica, keys: keys)
    request.aliases = try knownAliases()
    return request
  }

  /// Handles the answer to the last request.
  /// - Throws: ``PeerError`` when the answer makes no sense; `TidemarkError` when the store fails.
  package func receive(_ answer: WireMessage) throws {
    // The messages of a peer in this process skip the decoder and its checks.
    do { try answer.check(normalizes: true) } catch {
      throw PeerError(.malformed, error.reason)
    }
    // A transport has replaced hashes of large values by the values before this call.
    guard answer.entries.allSatisfy({ $0.content.blob == nil }) else {
      throw PeerError(.malformed, "a large value came as a hash only, which was not requested")
    }
    try renewPin()
    switch answer {
    case .helloAnswer(let hello): try handle(hello)
    case .pushAnswer(let push):
      try accept(push.range)
      lastMark = (push.mark.number, push.mark.batchID, push.range.head)
      delay(push)
      try settle(push.mark)
      if let failure = push.failure, push.mark.verdicts.allSatisfy({ $0 == .aborted }) {
        throw PeerError(.unavailable, failure)
      }
      if batchInFlight != nil {
        // The answer's mark is for another batch; the next hello finds out why.
        disconnect()
      }
    case .pullAnswer(let page):
      try accept(page.range)
      // Verdicts count even where the reach has changed, which the next line refuses.
      try settle(page.mark)
      try accept(page.range, reach: page.reach)
      try handle(page)
    case .valuesAnswer(let values):
      // The answer may contain entries later than the feed's end as known so far.
      try accept(values.range, reach: values.reach)
      if progress.resync == nil { try handle(values) } else { try reconcile(values) }
    case .digestAnswer(let digest):
      try accept(digest.range, reach: digest.reach)
      try handle(digest)
    case .attachAnswer(let answer):
      try accept(answer.range)
      try handle(answer)
    case .fetchAnswer(let answer): try handle(answer)
    default: throw PeerError(.malformed, "the message is not an answer")
    }
  }

  /// Adopts the feed's range from an answer. If the feed was restored from a backup since the last
  /// call, or the authorization changed, the answer is refused: the next hello finds out what the
  /// feed has lost, or starts a comparison of what the authorization covers.
  private func accept(_ range: FeedRange, reach now: UInt64? = nil) throws(PeerError) {
    // `PlantedSyncBug.isOn`: whether a test has switched this fault on.
    guard holdsWhatIsKnown(range) || PlantedSyncBug.isOn(.restoreNotNoticed) else {
      throw PeerError(.busy, "the feed was restored from a backup since the last call")
    }
    if let reach, let now, now != reach, !PlantedSyncBug.isOn(.reachIgnored) {
      throw PeerError(
        .busy, "the authorization reaches other entries than before", retryAfter: .seconds(0))
    }
    self.range = range
  }

  func usePolicies(of answer: HelloAnswer) {
    policies = answer.policies
    let now = log.now.sinceEpoch
    // A peer that the program implements may give no time.
    let lead = answer.time == 0 ? 0 : now - min(now, answer.time)
    // A lead below the tolerance may be the answer's travel time.
    clockLead = lead > FeedEntry.clockTolerance >> 16 ? lead : 0
  }

  /// Whether a feed still has all positions that this store has seen; if not, it was restored.
  func holdsWhatIsKnown(_ range: FeedRange) -> Bool {
    range.contains(progress.furthest) && range.contains(progress.cursor)
      && (!progress.isRereading || range.contains(progress.comparedThrough))
      && comparing?.walk.position.map(range.contains) ?? true
  }

  /// Drops what is known of the connection: the next request is a hello, whose answer has the mark
  /// with the outcome of the batch in flight.
  package func disconnect() {
    range = nil
    comparing = nil
    ownPullCursor = nil
    outgoing.forgetPeer()
    incoming.forgetPeer()
  }

  func hello() -> HelloRequest {
    // While a restored feed is pulled again, the compared position counts: deletes before it are
    // not needed, and the beginning as cursor would mean a store that holds nothing.
    var request = HelloRequest(
      replica: replica, cursor: progress.isRereading ? progress.comparedThrough : progress.cursor,
      scope: scope, hasResynced: hasCompared, resumption: progress.resumption, reads: reads)
    request.mark = ReplicaMark(number: progress.number, batchID: progress.batchID)
    request.furthest = progress.furthest
    return request
  }
}
