internal import Tidemark
internal import TidemarkEngine

/// The next batch, as far as it could be formed while another one was under way.
struct PreparedBatch {
  var forming: Forming
  /// What is sent if it comes to that.
  var request: PushRequest
  /// What this needs to be so still.
  var former: PeerProgress
  var urgent: UrgentEntries

  /// The batch upon what has become of the one before it, or nil when that was not what it was
  /// formed upon.
  func upon(_ progress: PeerProgress) -> Forming? {
    guard progress.frontier == former.frontier, progress.ahead == former.ahead,
      progress.again == former.again, progress.lost == former.lost,
      progress.waiting == former.waiting, progress.batchLimit == former.batchLimit,
      progress.scope == former.scope, progress.resync == nil, former.resync == nil
    else { return nil }
    var forming = forming
    var next = progress
    next.frontier = forming.progress.frontier
    next.ahead = forming.progress.ahead
    next.again = forming.progress.again
    next.lost = forming.progress.lost
    next.waiting = forming.progress.waiting
    forming.progress = next
    return forming
  }
}

extension SyncSession {
  /// Forms what is likely to be the next batch, to have it when the verdicts of the one that is
  /// under way are there. It counts only if these are what nearly all are.
  /// - Returns: what is then sent; nil when there is nothing to prepare.
  @discardableResult
  package func prepareBatch() throws -> PushRequest? {
    guard let formed, prepared == nil, progress.resync == nil, failures == 0 else { return nil }
    let urgentNow = urgent
    defer { urgent = urgentNow }
    var forming = Forming(self)
    try forming.run()
    guard !forming.items.isEmpty else { return nil }
    let request = PushRequest(
      replica: replica, number: formed.number + 1, batchID: newBatchID(),
      changes: forming.changes)
    prepared = PreparedBatch(
      forming: forming, request: request, former: progress, urgent: urgent)
    return request
  }

  /// What the next batch is to be, and the id that it gets.
  func nextForming() throws(TidemarkError) -> (forming: Forming, id: BatchID) {
    defer { prepared = nil }
    if let prepared, let forming = prepared.upon(progress),
      prepared.request.number == progress.number + 1, prepared.request.replica == replica
    {
      urgent = prepared.urgent
      return (forming, prepared.request.batchID)
    }
    var forming = Forming(self)
    try forming.run()
    return (forming, newBatchID())
  }

  private func newBatchID() -> BatchID { BatchID(engine.environment.random.next() | 1) }
}
