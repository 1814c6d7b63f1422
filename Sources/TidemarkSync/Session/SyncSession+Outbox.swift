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
