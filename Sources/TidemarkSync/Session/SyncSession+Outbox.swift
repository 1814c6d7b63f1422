internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Builds the next batch and commits it before it is sent, so that a crash resends the same
  /// batch.
  /// - Returns: false if no pending change may be sent now.
  func startNextBatch() throws -> Bool {
    let (draft, id) = try draftOfNextBatch()
    guard draft.items.isEmpty || draft.outbox.waiting.count < mostWaiting else {
      deferred.blocked = draft.deferred.blocked
      tooManyWaiting = outbox.waiting.count
      return false
    }
    deferred = draft.deferred
    guard !draft.items.isEmpty else {
      // Keeps the frontier past entries with nothing to send; the next commit saves it.
      update { $0.outbox = draft.outbox }
      if outbox.frontier &- (pin?.frontier ?? 0) >= Self.entriesToPass { try writeDown() }
      return false
    }
    let number = progress.number + 1
    let batch = OutgoingBatch(number: number, batchID: id ?? newBatchID(number), items: draft.items)
    let send = { (tx: inout SyncTransaction) in
      tx.outbox = draft.outbox
      tx.progress.seed = self.naming.seed
      tx.inFlight = BatchInFlight(batch, draft)
    }
    // A fault that only tests switch on.
    if PlantedSyncBug.isOn(.formedNotKept) { update(send) } else { try commit { tx in send(&tx) } }
    return true
  }

  /// The number of entries with nothing to send after which the frontier is saved.
  private static let entriesToPass: UInt64 = 1_024

  /// The request for the batch in flight, the same at each retry. If it is given up, or compaction
  /// has dropped one of its entries, an empty batch of the same number and another id is sent
  /// instead: the peer's mark has the id of the one that it applied.
  func nextRequest() throws(TidemarkError) -> PushRequest? {
    guard let inFlight else { return nil }
    let batch = inFlight.batch
    var request = PushRequest(
      replica: replica, number: batch.number, batchID: batch.batchID,
      previousBatchID: progress.batchID, knownHead: knownHead, reach: reach, changes: [])
    request.aliases = try knownAliases()
    let isEmpty = inFlight.isGivenUp || inFlight.lacksContent
    if !isEmpty, let content = inFlight.content {
      request.knownHead = content.knownHead
      request.changes = content.changes
      return request
    }
    for item in batch.items {
      guard !isEmpty, let change = try log.change(at: item.sequence) else {
        request.batchID = batch.batchID.ofEmpty
        request.changes = []
        return request
      }
      request.changes.append(PushedChange(change, try log.content(of: change), upon: item.base))
    }
    return request
  }

  var knownHead: FeedPosition { range?.headPosition ?? progress.furthest }
}

extension PeerView {
  /// Whether a change is an own one that has no verdict yet, or waits for a decision.
  func isPending(_ change: LoggedChange) -> Bool { change.isOwn && isPending(change.sequence) }

  /// Whether the change at a sequence is pending, if it is an own one.
  package func isPending(_ sequence: UInt64) -> Bool {
    outbox.waiting[sequence] != nil || outbox.isUnsent(sequence)
      || sequencesInFlight.contains(sequence)
  }
}

extension LoggedChange {
  /// The feed's position of a pulled entry; nil for an own one.
  var position: FeedPosition? {
    guard attributes.origin != nil, case .position(let epoch, let offset) = attributes.base
    else { return nil }
    return FeedPosition(epoch: epoch, offset: offset)
  }
}

/// The result of a batch builder. The session keeps this and not the builder, which refers to the
/// session: that would be a retain cycle.
struct BatchDraft {
  /// The outbox and the deferred changes as they will be once the batch is sent.
  var outbox: Outbox
  var deferred: DeferredChanges
  var items: [OutgoingBatch.Item]
  var changes: [PushedChange]
  /// The feed's end as known when the batch was built, since a retry sends the same request.
  var knownHead: FeedPosition
  /// What the batch was built from. After a compaction the log may lack changes of it.
  private let basis: (outbox: Outbox, room: SyncGate, generation: Int)

  init(_ session: SyncSession) throws(TidemarkError) {
    basis = (session.outbox, session.room, session.log.reader.generation)
    var builder = BatchBuilder(session)
    try builder.run()
    (outbox, deferred) = (builder.outbox, builder.deferred)
    (items, changes) = (builder.items, builder.changes)
    knownHead = session.knownHead
  }

  /// Whether a batch built now would be the same.
  func isCurrent(_ session: SyncSession) -> Bool {
    session.progress.resync == nil && basis.outbox == session.outbox && basis.room == session.room
      && basis.generation == session.log.reader.generation
  }
}

extension SyncSession {
  /// Builds the next batch while another one is in flight, which saves time. It is sent only if all
  /// of the one in flight applies, as with most batches.
  /// - Returns: the request that is sent then; nil if there is nothing to send.
  @discardableResult
  package func prepareBatch() throws -> PushRequest? {
    guard let inFlight, nextBatch == nil, progress.resync == nil, inFlight.failures == 0 else {
      return nil
    }
    let last = inFlight.batch
    let draft = try BatchDraft(self)
    guard !draft.items.isEmpty else { return nil }
    var request = PushRequest(
      replica: replica, number: last.number + 1, batchID: newBatchID(last.number + 1),
      previousBatchID: last.batchID, knownHead: knownHead, reach: reach, changes: draft.changes)
    // The peer may encode this request ahead, so exactly this one is sent later.
    request.aliases = try knownAliases()
    nextBatch = (draft, request)
    return request
  }

  /// The next batch, and its id if it was built ahead.
  private func draftOfNextBatch() throws(TidemarkError) -> (draft: BatchDraft, id: BatchID?) {
    defer { nextBatch = nil }
    if let (draft, request) = nextBatch, draft.isCurrent(self),
      request.number == progress.number + 1, request.replica == replica
    {
      return (draft, request.batchID)
    }
    return (try BatchDraft(self), nil)
  }

  /// The priorities and bytes that the budget allows for a batch.
  fileprivate var room: SyncGate {
    SyncGate(isNarrow: gate.isNarrow, leastPriority: gate.leastPriority, bytes: batchBytes)
  }

  private func newBatchID(_ number: UInt64) -> BatchID { naming.next(number) { log.random() } }
}

/// The batch in flight, with caches and counts that last as long as it.
package final class BatchInFlight {
  let batch: OutgoingBatch
  let sequences: SequenceSet
  /// The changes as sent; nil if the batch was read from the log, after a restart.
  var content: (changes: [PushedChange], knownHead: FeedPosition)?
  /// The keys that it changes; nil until they are computed.
  private var keys: Set<[UInt8]>?
  /// The changes that refer to attachments; nil until they are computed.
  var attachments: [(LoggedChange, AttachmentID)]?
  /// Whether neither this store nor the peer has the content of one of the batch's attachments.
  var lacksContent = false
  /// How often the peer has failed on this batch, and the last failure.
  var failures = 0
  var lastFailure: PeerError?

  /// The number of failures after which the batch is taken to be at fault, and not the peer.
  static let mostFailures = 8

  var isGivenUp: Bool { failures >= Self.mostFailures }

  init(_ batch: OutgoingBatch, _ draft: BatchDraft? = nil) {
    self.batch = batch
    sequences = batch.sequences
    content = draft.map { ($0.changes, $0.knownHead) }
  }

  /// Whether it changes a key.
  func has(_ key: [UInt8], _ log: ReplicationLog) throws(TidemarkError) -> Bool {
    if let keys { return keys.contains(key) }
    var found = Set((content?.changes ?? []).map(\.key))
    for item in batch.items where content == nil {
      if let change = try log.change(at: item.sequence) { found.insert(change.key) }
    }
    keys = found
    return found.contains(key)
  }
}
