internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The result of a walk through the pending entries. The session can hold this; a walk it must
/// not hold, since that holds the session, and neither would ever go.
struct BatchDraft {
  var progress: PeerProgress
  var items: [FormedBatch.Item]
  var changes: [PushedChange]
  var taken: KeyTable
  var held: SequenceSet
  /// The feed's end as it was known then: a request that is prepared stays the same.
  var knownHead: Position
}

extension Forming {
  var draft: BatchDraft {
    BatchDraft(
      progress: progress, items: items, changes: changes, taken: taken, held: held,
      knownHead: session.knownHead)
  }
}

/// The next batch, as far as it could be formed while another one was under way.
struct PreparedBatch {
  var draft: BatchDraft
  /// The request that is sent if it comes to that.
  var request: PushRequest
  /// The progress that this depends on.
  var former: PeerProgress
  var urgent: UrgentEntries
  /// How much a batch might have then, and which entries.
  var room: SyncGate
  /// The log that it was formed from. A compaction may have dropped changes of it that newer ones
  /// replaced meanwhile, which were made upon them: those must not be sent any more.
  var generation: LogGeneration

  /// The batch upon what has become of the one before it; nil when it was formed upon another.
  func upon(_ progress: PeerProgress) -> BatchDraft? {
    guard progress.frontier == former.frontier, progress.sets == former.sets,
      progress.waiting == former.waiting, progress.batchLimit == former.batchLimit,
      progress.scope == former.scope, progress.resync == nil, former.resync == nil
    else { return nil }
    var next = draft
    next.progress = progress
    next.progress.frontier = draft.progress.frontier
    next.progress.sets = draft.progress.sets
    next.progress.waiting = draft.progress.waiting
    return next
  }
}

extension SyncSession {
  /// Forms what is likely to be the next batch, to have it when the verdicts of the one that is
  /// under way are there. It counts only if these are what nearly all are.
  /// - Returns: what is then sent; nil when there is nothing to prepare.
  @discardableResult
  package func prepareBatch() throws -> PushRequest? {
    guard let inFlight, prepared == nil, progress.resync == nil, inFlight.failures == 0 else {
      return nil
    }
    let formed = inFlight.batch
    let generation = log.generation
    let urgentNow = urgent
    defer { urgent = urgentNow }
    var forming = Forming(self)
    try forming.run()
    guard !forming.items.isEmpty else { return nil }
    var request = PushRequest(
      replica: replica, number: formed.number + 1, batchID: newBatchID(formed.number + 1),
      previousBatchID: formed.batchID, knownHead: knownHead, reach: reach, changes: forming.changes)
    // As it is sent, so that what a peer has made of it counts.
    request.aliases = try knownAliases()
    prepared = PreparedBatch(
      draft: forming.draft, request: request, former: progress, urgent: urgent,
      room: room, generation: generation)
    return request
  }

  /// The draft of the next batch, and the id that it has if it was prepared.
  func nextDraft() throws(TidemarkError) -> (draft: BatchDraft, id: BatchID?) {
    defer { prepared = nil }
    if let prepared, let draft = prepared.upon(progress),
      prepared.request.number == progress.number + 1, prepared.request.replica == replica,
      prepared.room == room, prepared.generation == log.generation
    {
      urgent = prepared.urgent
      return (draft, prepared.request.batchID)
    }
    var forming = Forming(self)
    try forming.run()
    return (forming.draft, nil)
  }

  /// The room that the budget leaves a batch.
  private var room: SyncGate {
    SyncGate(isNarrow: gate.isNarrow, leastPriority: gate.leastPriority, bytes: batchBytes)
  }

  func newBatchID(_ number: UInt64) -> BatchID { naming.next(number) { log.random() } }
}
