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
  /// - Returns: nil when nothing is pending that may be sent now.
  func formBatch() throws -> FormedBatch? {
    let urgentNow = urgent
    let (draft, preparedID) = try nextDraft()
    held = draft.held
    guard !draft.items.isEmpty else {
      // Entries looked at in vain need not be looked at again; it is written with what comes.
      progress = draft.progress
      if progress.frontier &- (pin?.frontier ?? 0) >= Self.entriesToPass { try writeDown() }
      return nil
    }
    guard draft.progress.waiting.count < mostWaiting else {
      urgent = urgentNow
      tooManyWaiting = progress.waiting.count
      return nil
    }
    let number = progress.number + 1
    let batch = FormedBatch(
      number: number, batchID: preparedID ?? newBatchID(number), items: draft.items)
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.formedNotKept) {
        progress = draft.progress
        formed = batch
        return batch
      }
    #endif
    try commit { _ in
      progress = draft.progress
      progress.names.note(batch.number, of: naming.seed)
      formed = batch
    }
    sending = (draft.changes, draft.knownHead)
    keysInFlight = (batch.number, draft.taken)
    return batch
  }

  /// So many entries that are not for the peer are looked at before that is written down.
  private static let entriesToPass: UInt64 = 1_024

  /// The batch as it is sent: the same each time. Where compaction has dropped what an entry
  /// held, which happens only to entries that newer ones have replaced, an empty batch goes in
  /// its place, with another id: whichever of both the peer holds decides.
  func request(for batch: FormedBatch) throws(TidemarkError) -> PushRequest {
    var request = PushRequest(
      replica: replica, number: batch.number, batchID: batch.batchID,
      previousBatchID: progress.batchID, knownHead: knownHead, reach: reach, changes: [])
    request.aliases = try knownAliases()
    let isGivenUp = isGivenUp || lacksContent
    if !isGivenUp, let sending, batch.batchID == formed?.batchID {
      request.knownHead = sending.knownHead
      request.changes = sending.changes
      return request
    }
    for item in batch.items {
      guard !isGivenUp, let change = try log.change(at: item.sequence) else {
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
