internal import Tidemark
internal import TidemarkEngine

extension SyncSession {
  private static let adoptedPerCommit = 256

  /// Makes changes of our own of what came from the feed and is not in it any more, so that others
  /// get it back: the peer was restored from a backup or made anew. A delete counts, too.
  func adoptLost() throws {
    var cursor = log.entries(from: 1, through: log.head)
    var lost: [(key: [UInt8], sequence: UInt64)] = []
    while let entry = try cursor.next() {
      guard entry.head.kind == .put || entry.head.kind == .delete else { continue }
      let change = try LoggedChange(entry)
      guard try isLost(change),
        try log.newestChange(ofKey: change.key)?.sequence == change.sequence
      else { continue }
      lost.append((change.key, change.sequence))
      if lost.count == Self.adoptedPerCommit {
        try adopt(lost)
        lost = []
      }
    }
    try adopt(lost, isLast: true)
  }

  /// Whether an entry came from the feed, which has it no more.
  private func isLost(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.attributes.origin != nil, change.attributes.entryClass == .owned,
      position(of: change) == nil
    else { return false }
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.lostNotAdopted) { return false }
    #endif
    let labels =
      change.kind == .delete
      ? try log.change(at: change.previous)?.labels ?? [] : change.labels
    // A change out of scope came from another peer.
    return scope.contains(key: change.key, labels: labels)
  }

  private func adopt(
    _ lost: [(key: [UInt8], sequence: UInt64)], isLast: Bool = false
  ) throws {
    try commit { operations in
      for (key, sequence) in lost {
        guard let newest = try log.newestChange(ofKey: key), newest.sequence == sequence,
          let slot = try log.slot(ofKey: key)
        else { continue }
        try adopt(newest, upon: slot, into: &operations)
      }
      if isLast { progress.resync?.adopts = false }
    }
  }

  /// Writes a version of a key once more, as a change of our own.
  func adopt(
    _ version: LoggedChange, upon slot: Slot, into operations: inout OperationBatch
  ) throws(TidemarkError) {
    var attributes = version.attributes
    attributes.origin = nil
    attributes.base = nil
    attributes.writerTime = version.commitTime
    let content = version.kind == .delete ? nil : try log.content(of: version)
    try operations.add(content, ofKey: version.key, attributes, upon: slot)
  }
}
