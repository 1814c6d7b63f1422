internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// Replicates a store with one peer: says what to call next, and takes what the peer answers.
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
  var inFlight: BatchInFlight?
  package internal(set) var settled: SettledRuns
  /// The range of its feed that the peer told last; nil before the hello of this session.
  package internal(set) var range: FeedRange?
  /// How far the peer said at that hello that the authorization reaches; nil when it did not.
  package internal(set) var reach: UInt64?
  var limits = SyncLimits()
  /// Most bytes of an attachment that the peer takes, as of that hello; nil where it takes none.
  var attachmentBytes: Int?
  /// The peer's policies for conflicts, as of that hello.
  private(set) var policies: [CollectionPolicy] = []
  /// By how many milliseconds this store's clock was ahead of the peer's then; 0 up to a minute.
  private(set) var clockLead: UInt64 = 0
  package var attachmentPolicy = AttachmentPolicy()
  var outgoing = OutgoingAttachments()
  var incoming = IncomingAttachments()
  /// So many entries may wait for the user, or for what the peer has: they are written down with
  /// every batch.
  var mostWaiting = 65_536
  /// About so many bytes of values that resolvers make of conflicts go into one commit.
  var bytesTogether = 4 << 20
  var gate = SyncGate()
  /// Whether what others append is taken, as of the last call.
  var reads = true
  /// Where the cursor stood when the peer was last asked for own entries alone.
  var ownAskedAt: UInt64?
  /// The keys of the last values request, whose answer may be yet to come.
  var keysAsked: [[UInt8]] = []
  /// How many entries wait, if they are so many that others are not sent for it.
  var tooManyWaiting: Int?
  package internal(set) var totals = SyncTotals()
  /// The last batch under this store's name that the peer has told of, and how far its feed went.
  var lastMark: (number: UInt64, batch: BatchID, head: UInt64) = (0, .none, 0)
  var naming = BatchNaming()
  /// Whether verdicts were taken that are not written down: the peer would tell them again.
  package internal(set) var hasUnwritten = false
  /// An own entry up to here that is decided was in the feed when it was, as in the pin; further
  /// than that where verdicts are not written down.
  var settledThrough: UInt64 = 0
  /// The changes that have to wait for something else than the peer, as of the last batch.
  var held = SequenceSet()
  var setAside = SetAside()
  var urgent = UrgentEntries()
  var resting = RestingChanges()
  /// Nil whenever it may not be what is to be sent next.
  var prepared: PreparedBatch?
  /// Keys whose remote states are entered in one commit, or that get a value laid beside another.
  var keysArriving: Set<[UInt8]> = []
  /// Where the history began when positions of what it lacks were last forgotten.
  var prunedHistory: UInt64 = 0
  /// The last entry that was there when a resolver had decided.
  var resolvedThrough: UInt64 = 0
  /// The peer's names for keys; nil as long as nobody has asked.
  var aliases: KnownAliases?
  var comparing: Comparing?
  /// Whether everything was compared since the last hello.
  var hasCompared = false
  /// How often it has failed to tell what keys hold.
  var failuresToTell = 0
  /// The pin of what is kept for the peer; the one that was written last.
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
    let standing = try records.standing()
    progress = standing?.progress ?? PeerProgress()
    settled = standing?.settled ?? SettledRuns()
    settled.findUnread(after: progress.cursor.offset)
    pin = standing?.pin
    settledThrough = pin?.settledThrough ?? 0
    inFlight = standing?.formed.map { BatchInFlight($0) }
    // An entry waits no more once a later change has taken its place.
    for entry in progress.waiting.entries.values where entry.reason.position == nil {
      if let newest = try log.newestChange(ofKey: entry.key), newest.sequence > entry.sequence,
        !isPending(newest)
      {
        progress.supersede(entry.key, by: newest.sequence)
      }
    }
  }

  package var replica: ReplicaID { log.replica }
  package var formed: FormedBatch? { inFlight?.batch }
  var sequencesInFlight: SequenceSet { inFlight?.sequences ?? SequenceSet() }

  // MARK: What next

  /// The next call, a request; nil when nothing is to be done until somebody writes, here or there.
  /// - Parameters:
  ///   - direction: which way entries go.
  ///   - gate: the calls that the budget lets through.
  package func next(
    _ direction: SyncDirection = .both, through gate: SyncGate = SyncGate()
  ) throws -> WireMessage? {
    self.gate = gate
    reads = direction.pulls
    keysAsked = []
    // As of a batch that could not be formed; the user may have decided since.
    tooManyWaiting = nil
    guard range != nil else {
      takeName()
      return .helloRequest(hello())
    }
    if gate.isNarrow {
      // A comparison can be much.
      guard progress.resync == nil, direction.pushes, let least = gate.leastPriority else {
        return nil
      }
      if formed != nil, try !isUrgent(least) { return nil }
    } else if progress.resync != nil {
      // Neither way is open before a comparison has ended.
      if let call = try nextOfResync() { return call }
      // The user must decide.
      guard progress.resync == nil else { return nil }
    }
    guard let range else { return .helloRequest(hello()) }
    // A batch under way is finished whichever way it goes: its outcome may count already.
    if inFlight != nil {
      // The content that it names and the peer lacks goes first.
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

  /// Whether nothing is under way, nothing that could go waits, and all of the feed was taken.
  package var isAtRest: Bool {
    guard let range, formed == nil, progress.resync == nil,
      progress.cursor.offset >= range.head
    else { return false }
    return progress.frontier >= log.head && outgoing.isAtRest && !isFetching
      && progress.again.subtracting(held).isEmpty
  }

  /// Asks for what stands behind the cursor, waiting for it when there is nothing.
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

  /// - Throws: ``PeerError`` when it makes no sense; `TidemarkError` when the store fails.
  package func receive(_ answer: WireMessage) throws {
    // It need not have come over a wire, where this was looked at.
    do { try answer.check(normalizes: true) } catch {
      throw PeerError(.malformed, error.reason)
    }
    // Values that travel apart the peer has to fetch first.
    guard answer.entries.allSatisfy({ $0.content.blob == nil }) else {
      throw PeerError(.malformed, "a large value came by name only, which nobody has asked for")
    }
    try renewPin()
    switch answer {
    case .helloAnswer(let hello): try greet(hello)
    case .pushAnswer(let push):
      try accept(push.range)
      lastMark = (push.mark.number, push.mark.batchID, push.range.head)
      rest(push)
      try settle(push.mark, push.current)
      if let failure = push.failure, push.mark.verdicts.allSatisfy({ $0 == .aborted }) {
        throw PeerError(.unavailable, failure)
      }
      if formed != nil {
        // The peer counts our batches differently than we do; the hello finds out why.
        disconnect()
      }
    case .pullAnswer(let page):
      try accept(page.range)
      try settle(page.mark)
      try accept(page.range, reach: page.reach)
      try apply(page)
    case .valuesAnswer(let values):
      // It may tell of entries behind everything that was heard of before.
      try accept(values.range, reach: values.reach)
      if progress.resync == nil { try take(values) } else { try reconcile(values) }
    case .digestAnswer(let digest):
      try accept(digest.range, reach: digest.reach)
      try take(digest)
    case .attachAnswer(let answer):
      try accept(answer.range)
      try take(answer)
    case .fetchAnswer(let answer): try take(answer)
    default: throw PeerError(.malformed, "the answer is none to any call")
    }
  }

  /// Takes the range of an answer over. The feed may have been restored from a backup between two
  /// calls, or the authorization changed: what it says counts only once a hello has found out what
  /// it has lost, or a comparison what is within reach.
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

  func notePolicies(of answer: HelloAnswer) {
    policies = answer.policies
    let now = log.now.sinceEpoch
    // A peer of one's own need not have a clock.
    let lead = answer.time == 0 ? 0 : now - min(now, answer.time)
    // A lead of less than the tolerance may just be the time that the answer took.
    clockLead = lead > FeedEntry.clockTolerance >> 16 ? lead : 0
  }

  /// Whether a feed has all positions that it is known to have had, also as far as it was compared.
  func holdsWhatIsKnown(_ range: FeedRange) -> Bool {
    range.contains(progress.furthest) && range.contains(progress.cursor)
      && (!progress.readsAgain || range.contains(progress.comparedThrough))
      && comparing?.walk.position.map(range.contains) ?? true
  }

  /// The connection is gone, or the peer failed: the next call says hello again, and the mark in
  /// its answer says what became of a batch that was under way.
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
