internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Whether an own entry is still to be sent or waits: no verdict on it has come.
  func isPending(_ change: LoggedChange, in progress: PeerProgress) -> Bool {
    change.isOwn && isPending(change.sequence, in: progress)
  }

  func isPending(_ change: LoggedChange) -> Bool { isPending(change, in: progress) }

  /// Whether an own change waits for a verdict, or for the user, by its sequence.
  package func isPending(_ sequence: UInt64) -> Bool { isPending(sequence, in: progress) }

  func isPending(_ sequence: UInt64, in progress: PeerProgress) -> Bool {
    if progress.waiting[sequence] != nil || progress.again.contains(sequence) { return true }
    if sequencesInFlight.contains(sequence) { return true }
    return sequence > progress.frontier && !progress.ahead.contains(sequence)
  }

  /// Forms the next batch of what is pending, and writes down that it was formed.
  /// - Returns: whether there is one: false when nothing is pending that may be sent now.
  func formBatch() throws -> Bool {
    let urgentNow = urgent
    let (draft, preparedID) = try nextDraft()
    held = draft.held
    guard !draft.items.isEmpty else {
      // Entries looked at in vain need not be looked at again; it is written with what comes.
      progress = draft.progress
      if progress.frontier &- (pin?.frontier ?? 0) >= Self.entriesToPass { try writeDown() }
      return false
    }
    guard draft.progress.waiting.count < mostWaiting else {
      urgent = urgentNow
      tooManyWaiting = progress.waiting.count
      return false
    }
    let number = progress.number + 1
    let batch = FormedBatch(
      number: number, batchID: preparedID ?? newBatchID(number), items: draft.items)
    if PlantedSyncBug.isOn(.formedNotKept) {
      progress = draft.progress
      inFlight = BatchInFlight(batch)
      return true
    }
    try commit { _ in
      progress = draft.progress
      progress.seed = naming.seed
      inFlight = BatchInFlight(batch)
    }
    inFlight?.content = (draft.changes, draft.knownHead)
    inFlight?.keys = draft.taken
    return true
  }

  /// So many entries that are not for the peer are looked at before that is written down.
  private static let entriesToPass: UInt64 = 1_024

  /// The batch under way as it is sent: the same each time. Where compaction has dropped what an
  /// entry held, which happens only to entries that newer ones have replaced, an empty batch goes
  /// in its place, with another id: whichever of both the peer holds decides.
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

  var knownHead: Position { range?.headPosition ?? progress.furthest }
}

extension LoggedChange {
  /// Where an entry that came from the feed stands there.
  var position: Position? {
    guard attributes.origin != nil, case .position(let epoch, let offset) = attributes.base
    else { return nil }
    return Position(epoch: epoch, offset: offset)
  }
}

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

/// The batch under way, and what is of no use once it is not any more.
struct BatchInFlight {
  let batch: FormedBatch
  let sequences: SequenceSet
  /// The content as it is sent; nil when the batch was formed before the program was started.
  var content: (changes: [PushedChange], knownHead: Position)?
  /// The keys; nil when nobody has looked.
  var keys: KeyTable?
  /// The changes that name attachments; nil when nobody has looked.
  var attachments: [(LoggedChange, AttachmentID)]?
  /// Whether content that the changes name is neither here nor at the peer.
  var lacksContent = false
  /// How often the peer has failed on it, and how it did last.
  var failures = 0
  var lastFailure: PeerError?

  /// So many failures on one batch are its own fault.
  static let mostFailures = 8

  var isGivenUp: Bool { failures >= Self.mostFailures }

  init(_ batch: FormedBatch) {
    self.batch = batch
    sequences = batch.sequences
  }
}

/// The keys of a batch, each with the sequence of its last change in it.
///
/// It looks them up by a hash that is much faster than that of an array, and like that seeded, so
/// that whoever chooses the keys cannot make them collide.
struct KeyTable {
  private struct HashedKey: Hashable {
    let keyHash: UInt64
    let key: [UInt8]

    func hash(into hasher: inout Hasher) { hasher.combine(keyHash) }
  }

  private let seed: UInt64
  private var rows: [HashedKey: (sequence: UInt64, isSent: Bool)] = [:]

  /// - Parameter seed: a number that those who choose the keys do not know.
  init(seed: UInt64) { self.seed = seed }

  private func hashed(_ key: [UInt8]) -> HashedKey {
    HashedKey(keyHash: KeyHash.hash(key.rawSpan, seed: seed), key: key)
  }

  /// The sequence of a key's last change.
  subscript(key: [UInt8]) -> UInt64? { rows[hashed(key)]?.sequence }

  /// Whether a change of the key is sent.
  func sends(_ key: [UInt8]) -> Bool { rows[hashed(key)]?.isSent ?? false }

  /// Takes note of a key's change.
  /// - Parameter isSent: whether the change goes; it stays so for the key.
  mutating func note(_ key: [UInt8], _ sequence: UInt64, isSent: Bool) {
    let key = hashed(key)
    let former = rows.updateValue((sequence, isSent), forKey: key)
    if !isSent, former?.isSent ?? false { rows[key] = (sequence, true) }
  }

  mutating func removeAll() { rows = [:] }
}
