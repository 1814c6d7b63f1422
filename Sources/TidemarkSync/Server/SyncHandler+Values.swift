internal import Tidemark
internal import TidemarkEngine

extension SyncHandler {
  /// Answers with what keys hold now. What the authorization does not reach is left out like
  /// what is absent.
  /// - Throws: ``PeerError``.
  public func values(
    _ request: ValuesRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> ValuesAnswer {
    try settled(try stageValues(request, access), \.range)
  }

  func stageValues(
    _ request: ValuesRequest, _ access: SyncAccess
  ) throws(PeerError) -> ValuesAnswer {
    try answering {
      var entries: [FeedEntry] = []
      var bytes = 0
      var answered = 0
      for key in request.keys.prefix(options.limits.changes) {
        if let found = try entry(ofKey: key, access, request.takesBlobs) {
          let labels = found.content.labels.reduce(0) { $0 + $1.bytes.count }
          let size = key.count + labels + (found.content.blob?.length ?? found.content.value.count)
          if answered > 0, bytes + size > options.limits.bytes { break }
          bytes += size
          entries.append(found)
        }
        answered += 1
      }
      return ValuesAnswer(
        entries: entries, answered: answered, range: try range(for: request.replica),
        reach: access.reach)
    }
  }

  /// Longest value that comes with the verdict on a change that clashes with it.
  private static let bytesWithVerdict = 4_096
  /// Most bytes of them in an answer.
  private static let bytesWithVerdicts = 256 << 10

  /// The entries at the keys of a batch's changes that have come to a conflict, as far as they are
  /// small.
  /// - Parameter last: what stands behind this offset may not be on the disk yet.
  func current(
    of request: PushRequest, _ mark: ReplicaMark, through last: UInt64, _ access: SyncAccess
  ) throws -> [FeedEntry] {
    guard mark.number == request.number, mark.batchID == request.batchID else { return [] }
    var found: [FeedEntry] = []
    var seen: Set<[UInt8]> = []
    var bytes = 0
    for (change, verdict) in zip(request.changes, mark.verdicts)
    where bytes < Self.bytesWithVerdicts {
      switch verdict {
      case .conflict, .lost: break
      case .applied, .duplicate, .rejected, .aborted: continue
      }
      guard seen.insert(change.key).inserted,
        let entry = try entry(ofKey: change.key, access, false, atMost: Self.bytesWithVerdict),
        entry.position.offset <= last
      else { continue }
      bytes += change.key.count + entry.content.value.count
      found.append(entry)
    }
    return found
  }

  /// - Parameter most: a longer value is not wanted.
  private func entry(
    ofKey key: [UInt8], _ access: SyncAccess, _ takesBlobs: Bool, atMost most: Int = .max
  ) throws -> FeedEntry? {
    // A compaction or another write may take the value between the two looks.
    for _ in 0..<4 {
      guard !key.isEmpty, key.count <= Limits.keyBytes, let state = try feed.state(of: key) else {
        return nil
      }
      guard access.reaches(key: key, labels: state.labels) else { return nil }
      var entry = FeedEntry(
        position: state.position, kind: .delete, operation: state.operation, key: key,
        commitTime: state.writtenTime, time: state.attributes.time)
      if state.isDeleted { return entry }
      guard state.valueLength <= most else { return nil }
      entry.kind = .put
      let content = try LargeValues.shared.withRoom(forValueOf: state.valueLength) {
        var content = try feed.value(at: state.position.offset).map {
          SyncContent(
            value: $0, labels: state.labels.map { EntryLabel($0) }, hash: state.attributes.hash,
            maxAgeSeconds: state.attributes.maxAge)
        }
        if takesBlobs { content?.moveApart() }
        return content
      }
      guard let content else { continue }
      entry.content = content
      return entry
    }
    throw TidemarkError(.inputOutput, "the key changes too fast to be read; try again")
  }
}
