internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Answers with what keys hold now. What the authorization does not reach is left out like
  /// what is absent.
  /// - Throws: ``PeerError``.
  public func values(
    _ request: ValuesRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> ValuesAnswer {
    try settled(\.range) { try stageValues(request, access) }
  }

  func stageValues(_ request: ValuesRequest, _ access: SyncAccess) throws -> ValuesAnswer {
    let keys = Array(request.keys.prefix(options.limits.changes))
    let (entries, answered) = try entries(
      ofKeys: keys, try feed.states(of: keys), most: options.limits.bytes, access,
      takesBlobs: request.takesBlobs)
    return ValuesAnswer(
      entries: entries, answered: answered, range: try range(for: request.replica),
      reach: access.reach)
  }

  /// The entries at keys, from the first key on, as many as go into so many bytes.
  /// - Returns: with them, how many keys were looked at: one at least, where there is one.
  private func entries(
    ofKeys keys: [[UInt8]], _ states: [FeedState?], most: Int, _ access: SyncAccess,
    takesBlobs: Bool
  ) throws -> (entries: [FeedEntry], answered: Int) {
    let puts = zip(keys, states).lazy.compactMap { key, state in
      state.flatMap {
        !$0.isDeleted && access.reaches(key: key, labels: $0.head.labels) ? $0.head : nil
      }
    }
    let values = try smallValues(of: puts, most: most)
    var entries: [FeedEntry] = []
    var bytes = 0
    for (index, (key, state)) in zip(keys, states).enumerated() {
      guard let found = try entry(ofKey: key, state, values, access, takesBlobs) else { continue }
      let labels = found.content.labels.reduce(0) { $0 + $1.bytes.count }
      bytes += key.count + labels + (found.content.blob?.length ?? found.content.value.count)
      if index > 0, bytes > most { return (entries, index) }
      entries.append(found)
    }
    return (entries, keys.count)
  }

  /// Reads the small ones of some puts' values, in their order, as many as go into so many bytes:
  /// by one call to the feed.
  func smallValues(
    of puts: some Sequence<FeedHead>, most bytes: Int
  ) throws(TidemarkError) -> [UInt64: [UInt8]] {
    var offsets: [UInt64] = []
    var left = bytes
    for put in puts where put.valueLength <= BlobID.leastLength {
      left -= put.valueLength
      offsets.append(put.offset)
      guard left > 0 else { break }
    }
    return try feed.values(at: offsets)
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
    var keys: [[UInt8]] = []
    var seen: Set<[UInt8]> = []
    for (change, verdict) in zip(request.changes, mark.verdicts) {
      switch verdict {
      case .conflict, .lost: if seen.insert(change.key).inserted { keys.append(change.key) }
      case .applied, .duplicate, .rejected, .aborted: break
      }
    }
    guard !keys.isEmpty else { return [] }
    let small = try feed.states(of: keys).map { state in
      state.flatMap { $0.head.valueLength <= Self.bytesWithVerdict ? $0 : nil }
    }
    return try entries(
      ofKeys: keys, small, most: Self.bytesWithVerdicts, access, takesBlobs: false
    ).entries.filter {
      $0.position.offset <= last && $0.content.value.count <= Self.bytesWithVerdict
    }
  }

  private func entry(
    ofKey key: [UInt8], _ known: FeedState?, _ values: [UInt64: [UInt8]], _ access: SyncAccess,
    _ takesBlobs: Bool
  ) throws -> FeedEntry? {
    var current = known
    // A compaction or another write may take the value between the two looks.
    for _ in 0..<4 {
      guard let state = current, access.reaches(key: key, labels: state.head.labels) else {
        return nil
      }
      if let entry = try entry(
        state.isDeleted ? .delete : .put, state.head, at: state.position, values,
        takesBlobs: takesBlobs)
      {
        return entry
      }
      current = try feed.states(of: [key])[0]
    }
    throw TidemarkError(.inputOutput, "the key changes too fast to be read; try again")
  }

  /// An entry as its reader gets it.
  /// - Returns: nil when a compaction has just taken the value, which a later entry supersedes.
  func entry(
    _ kind: FeedEntry.Kind, _ head: FeedHead, at position: Position,
    _ values: [UInt64: [UInt8]], takesBlobs: Bool
  ) throws -> FeedEntry? {
    var entry = FeedEntry(
      position: position, kind: kind, operation: head.operation, key: kind == .own ? [] : head.key,
      commitTime: head.commitTime,
      time: kind == .put || kind == .delete ? head.attributes.time : nil)
    guard kind == .put else { return entry }
    let large = head.valueLength > BlobID.leastLength ? head.valueLength : 0
    return try LargeValues.shared.withRoom(for: large) {
      let known = try values[head.offset] ?? feed.values(at: [head.offset])[head.offset]
      guard let value = known else { return nil }
      entry.content = SyncContent(
        value: value, labels: head.labels.map { EntryLabel($0) }, head.attributes)
      if takesBlobs { entry.content.moveApart() }
      return entry
    }
  }
}
