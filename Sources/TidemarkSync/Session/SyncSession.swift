internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// The state machine that replicates a store with one peer: `next` gives the next request, and
/// `receive` handles the answer to it.
///
/// It waits for nothing and knows no network, so that a program's replicator and a simulation
/// run the same. Everything that must outlive the process is in the store's log, in the same
/// batch as the entries it speaks of.
package final class SyncSession {
  package let log: ReplicationLog
  let name: [UInt8]
  package let scope: SyncScope
  let capabilities: PeerCapabilities
  let resolver: ConflictResolver
  package let records: PeerRecords
  package internal(set) var progress: PeerProgress
  package internal(set) var inFlight: BatchInFlight?
  package internal(set) var settled: SettledRuns
  /// The range of the peer's feed, as its last answer told it; nil before the session's hello.
  package internal(set) var range: FeedRange?
  /// The reach of the authorization, as the hello told it; nil when the peer does not tell it.
  package internal(set) var reach: UInt64?
  var limits = SyncLimits()
  /// Most bytes of an attachment that the peer accepts; nil where it accepts no attachments.
  var attachmentBytes: Int?
  /// The peer's conflict policies, as the hello told them.
  private(set) var policies: [CollectionPolicy] = []
  /// Milliseconds by which this store's clock is ahead of the peer's; 0 up to a minute.
  private(set) var clockLead: UInt64 = 0
  package var attachmentPolicy = AttachmentPolicy()
  var outgoing = OutgoingAttachments()
  var incoming = IncomingAttachments()
  /// Most entries that wait for the user or for a remote state; beyond that nothing is sent.
  var mostWaiting = 65_536
  /// About how many bytes of resolved conflicts one commit may write.
  var bytesTogether = 4 << 20
  var gate = SyncGate()
  /// Whether the session pulls entries of other replicas, as of the last call.
  var reads = true
  /// The cursor's offset at the last pull for own entries alone, which need not be repeated there.
  var ownAskedAt: UInt64?
  /// The keys of the last values request, until its answer has come.
  var keysAsked: [[UInt8]] = []
  /// The number of waiting entries, if it stops the session from sending more.
  var tooManyWaiting: Int?
  package internal(set) var totals = SyncTotals()
  /// The last batch of this replica that the peer has answered with, and the feed's end then.
  var lastMark: (number: UInt64, batch: BatchID, head: UInt64) = (0, .none, 0)
  var naming = BatchNaming()
  /// Whether verdicts count in memory only: after a crash the peer tells them again.
  package internal(set) var hasUnwritten = false
  /// Own entries up to here that are decided are in the feed. The pin says the same, but for
  /// verdicts that are not written.
  var settledThrough: UInt64 = 0
  var deferred = DeferredChanges()
  var delayed = DelayedChanges()
  /// The batch that was built while another one is in flight; nil once it may be out of date.
  var nextBatch: (draft: BatchDraft, request: PushRequest)?
  /// The start of the log's history when `pruneSettled` last looked.
  var prunedHistory: UInt64 = 0
  /// The log's head after the last commit in which a resolver decided.
  var resolvedThrough: UInt64 = 0
  /// The peer's names for keys; nil until they are read from the log.
  var aliases: KnownAliases?
  var comparing: Comparing?
  /// Whether everything was compared since the last hello.
  var hasCompared = false
  /// How many values requests have failed in a row.
  var failuresToTell = 0
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
    settled = saved?.settled ?? SettledRuns()
    settled.findUnread(after: progress.cursor.offset)
    pin = saved?.pin
    settledThrough = pin?.settledThrough ?? 0
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

  /// The next request; nil when there is nothing to do until somebody writes, here or there.
  /// - Parameters:
  ///   - direction: which way entries go.
  ///   - gate: the calls that the budget allows.
  package func next(
    _ direction: SyncDirection = .both, through gate: SyncGate = SyncGate()
  ) throws -> WireMessage? {
    self.gate = gate
    reads = direction.pulls
    keysAsked = []
    // The user may have decided since the last batch was built.
    tooManyWaiting = nil
    guard range != nil else {
      update { $0.adoptName() }
      return .helloRequest(hello())
    }
    if gate.isNarrow {
      // A comparison may need many calls.
      guard progress.resync == nil, direction.pushes, let least = gate.leastPriority else {
        return nil
      }
      if batchInFlight != nil, try !isUrgent(least) { return nil }
    } else if progress.resync != nil {
      // Nothing is pushed or pulled before a comparison has ended.
      if let call = try nextOfResync() { return call }
      // The user must decide.
      guard progress.resync == nil else { return nil }
    }
    guard let range else { return .helloRequest(hello()) }
    // The batch in flight is finished in any direction: the peer may have applied it already.
    if inFlight != nil {
      // Attachments that the batch names and the peer lacks go first.
      if let part = try nextPartOfBatch() { return .attachRequest(part) }
      if let push = try nextRequest() { return .pushRequest(push) }
    }
    if !direction.pushes { try passForeign() }
    if !gate.isNarrow, let pull = try nextPull(range) { return .pullRequest(pull) }
    // Conflicts that were found before a crash are decided first.
    try resolveWaiting()
    let keys = try keysToFetch()
    if !keys.isEmpty { return .valuesRequest(try valuesRequest(keys)) }
    if direction.pushes, let push = try nextPush() { return push }
    return direction.pulls ? try nextFetch().map { .fetchRequest($0) } : nil
  }

  /// How many entries of the feed are still to be read.
  var entriesToTake: UInt64 { range.map { $0.head - min($0.head, progress.cursor.offset) } ?? 0 }

  /// Whether nothing is in flight, nothing can be sent, and the feed is read to its end.
  package var isAtRest: Bool {
    guard let range, batchInFlight == nil, progress.resync == nil,
      progress.cursor.offset >= range.head
    else { return false }
    return outbox.frontier >= log.head && outgoing.isAtRest && !isFetching
      && outbox.pending.subtracting(deferred.blocked).isEmpty
  }

  /// The request for the entries behind the cursor.
  package func pullRequest(waitMilliseconds: UInt32 = 0) throws(TidemarkError) -> PullRequest {
    var request = PullRequest(
      replica: replica, after: progress.cursor, scope: scope,
      limits: SyncLimits(changes: limits.changes, bytes: batchBytes),
      waitMilliseconds: waitMilliseconds, everyVersion: progress.heardThrough > 0)
    request.aliases = try knownAliases()
    return request
  }

  func valuesRequest(_ keys: [[UInt8]]) throws(TidemarkError) -> ValuesRequest {
    keysAsked = keys
    var request = ValuesRequest(replica: replica, keys: keys)
    request.aliases = try knownAliases()
    return request
  }

  /// Handles the answer to the last request.
  /// - Throws: ``PeerError`` when the answer makes no sense; `TidemarkError` when the store fails.
  package func receive(_ answer: WireMessage) throws {
    // A peer in this process does not pass the decoder, which checks messages.
    do { try answer.check(normalizes: true) } catch {
      throw PeerError(.malformed, error.reason)
    }
    // The transport replaces large values by their content before the answer gets here.
    guard answer.entries.allSatisfy({ $0.content.blob == nil }) else {
      throw PeerError(.malformed, "a large value came by name only, which nobody has asked for")
    }
    try renewPin()
    switch answer {
    case .helloAnswer(let hello): try handle(hello)
    case .pushAnswer(let push):
      try accept(push.range)
      lastMark = (push.mark.number, push.mark.batchID, push.range.head)
      delay(push)
      try settle(push.mark, push.current)
      if let failure = push.failure, push.mark.verdicts.allSatisfy({ $0 == .aborted }) {
        throw PeerError(.unavailable, failure)
      }
      if batchInFlight != nil {
        // The peer's mark is of another batch; the next hello finds out why.
        disconnect()
      }
    case .pullAnswer(let page):
      try accept(page.range)
      try settle(page.mark)
      try accept(page.range, reach: page.reach)
      try handle(page)
    case .valuesAnswer(let values):
      // The answer may name entries behind the feed's end as it was known.
      try accept(values.range, reach: values.reach)
      if progress.resync == nil { try handle(values) } else { try reconcile(values) }
    case .digestAnswer(let digest):
      try accept(digest.range, reach: digest.reach)
      try handle(digest)
    case .attachAnswer(let answer):
      try accept(answer.range)
      try handle(answer)
    case .fetchAnswer(let answer): try handle(answer)
    default: throw PeerError(.malformed, "the answer is none to any call")
    }
  }

  /// Adopts the feed's range from an answer. Where the feed was restored from a backup since the
  /// last call, or the authorization changed, the answer is refused: a hello has to find out what
  /// the feed has lost, or a comparison what is within reach.
  private func accept(_ range: FeedRange, reach now: UInt64? = nil) throws(PeerError) {
    guard holdsWhatIsKnown(range) || PlantedSyncBug.isOn(.restoreNotNoticed) else {
      throw PeerError(.busy, "the feed was restored from an older copy meanwhile")
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
    // A peer that the program implements need not tell its time.
    let lead = answer.time == 0 ? 0 : now - min(now, answer.time)
    // A lead of less than the tolerance may just be the time that the answer took.
    clockLead = lead > FeedEntry.clockTolerance >> 16 ? lead : 0
  }

  /// Whether a feed still has all positions that this store has seen; else it was restored.
  func holdsWhatIsKnown(_ range: FeedRange) -> Bool {
    range.contains(progress.furthest) && range.contains(progress.cursor)
      && (!progress.readsAgain || range.contains(progress.comparedThrough))
      && comparing?.walk.position.map(range.contains) ?? true
  }

  /// Forgets the connection: the next request is a hello, and the mark in its answer tells the
  /// outcome of the batch in flight.
  package func disconnect() {
    range = nil
    comparing = nil
    ownAskedAt = nil
    outgoing.forgetPeer()
    incoming.forgetPeer()
  }

  func hello() -> HelloRequest {
    // Where a feed is read once more, what was compared needs no deletes from before; but a store
    // at the beginning would count as one that holds nothing.
    var request = HelloRequest(
      replica: replica, cursor: progress.readsAgain ? progress.comparedThrough : progress.cursor,
      scope: scope, hasResynced: hasCompared, resumption: progress.resumption, reads: reads)
    request.mark = ReplicaMark(number: progress.number, batchID: progress.batchID)
    request.furthest = progress.furthest
    return request
  }
}
