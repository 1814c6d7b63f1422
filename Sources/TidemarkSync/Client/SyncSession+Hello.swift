internal import Tidemark
internal import TidemarkEngine

extension SyncSession {
  /// Compares what the peer says of itself with what this store knows of it.
  func greet(_ answer: HelloAnswer) throws {
    limits = SyncLimits(
      changes: max(1, min(answer.limits.changes, SyncLimits().changes)),
      bytes: max(1, min(answer.limits.bytes, SyncLimits().bytes)))
    if progress.feed != answer.feed {
      try beginAnew(with: answer)
    } else if !answer.range.contains(progress.cursor) {
      try rewind(to: answer)
    }
    try settle(answer.mark)
    try compareMarks(answer.mark)
    range = answer.range
  }

  /// The remote is new to us, or was made anew: all that is owned is pending, nothing is purged.
  private func beginAnew(with answer: HelloAnswer) throws {
    let hadPeer = progress.feed != nil
    formed = nil
    try commit { operations, next, runs in
      next = PeerProgress()
      next.feed = answer.feed
      next.number = answer.mark.number
      next.batchID = answer.mark.batchID
      runs = SettledRuns()
      // What came from the old remote is ours to bring now.
      if hadPeer { try adopt(into: &operations) { _ in false } }
    }
    waitingKeys = [:]
  }

  /// The peer was restored from a backup: what it had taken since is pending again.
  private func rewind(to answer: HelloAnswer) throws {
    let common = answer.range.lastCommonOffset(with: progress.cursor) ?? 0
    let batch = formed
    formed = nil
    do {
      try commit { operations, next, runs in
        next.cursor = answer.range.position(ofOffset: common)
        next.number = answer.mark.number
        next.batchID = answer.mark.batchID
        for sequence in runs.removeLost(answer.range.contains) { next.again.insert(sequence) }
        for item in batch?.items ?? [] { next.again.insert(item.sequence) }
        try adopt(into: &operations, unless: answer.range.contains)
      }
    } catch {
      formed = batch
      throw error
    }
  }

  /// Keys that hold what the feed does not know: they become changes of our own, so that others
  /// get them back.
  private func adopt(
    into operations: inout OperationBatch, unless isKept: (Position) -> Bool
  ) throws(TidemarkError) {
    let scan = EngineScan(engine, ScanQuery(prefix: []), view: try engine.view())
    while true {
      let page = try scan.nextPage(limit: 256)
      if page.isEmpty { return }
      for row in page {
        guard let change = try engine.newestChange(ofKey: row.key), change.kind == .put,
          let position = change.position, !isKept(position)
        else { continue }
        let content = try engine.content(of: change)
        var attributes = change.attributes
        attributes.origin = nil
        attributes.base = nil
        try operations.add(
          .put, key: row.key.rawSpan, value: content.value.rawSpan,
          labelSet: try operations.addLabelSet(content.labels.map(\.bytes)),
          attributes: attributes, condition: operations.addCondition(.entry(row.sequence)))
      }
    }
  }

  /// A peer that counts our batches differently than we do.
  private func compareMarks(_ mark: ReplicaMark) throws {
    if mark.number == progress.number, mark.batchID == progress.batchID { return }
    if mark.number < progress.number {
      // It has forgotten batches whose entries it kept, or whose loss was found out above.
      let batch = formed
      formed = nil
      try commit { _, next, _ in
        next.number = mark.number
        next.batchID = mark.batchID
        for item in batch?.items ?? [] { next.again.insert(item.sequence) }
      }
      return
    }
    // Batches under our name that are not ours: this store is a copy of another, or was restored
    // from a backup. It goes on under a new name; what the other one sent comes as somebody
    // else's.
    let batch = formed
    formed = nil
    try engine.changeReplica()
    try commit { _, next, _ in
      next.number = 0
      next.batchID = .none
      for item in batch?.items ?? [] { next.again.insert(item.sequence) }
    }
    throw PeerError(.busy, "this store was copied or restored; it has a new replica id now")
  }
}
