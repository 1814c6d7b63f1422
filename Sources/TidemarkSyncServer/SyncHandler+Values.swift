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
    let keys = request.keys.prefix(options.limits.changes)
    let states = try feed.states(of: Array(keys))
    let puts = zip(keys, states).compactMap { key, state -> (UInt64, Int)? in
      guard let state, !state.isDeleted, access.reaches(key: key, labels: state.head.labels)
      else { return nil }
      return (state.head.offset, state.head.valueLength)
    }
    let values = try smallValues(puts, most: options.limits.bytes)
    var entries: [FeedEntry] = []
    var bytes = 0
    var answered = 0
    for (key, state) in zip(keys, states) {
      if let found = try entry(ofKey: key, state, values, access, request.takesBlobs) {
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

  /// Reads the small ones of some values, in their order, as many as go into so many bytes: by one
  /// call to the feed.
  func smallValues(
    _ wanted: [(offset: UInt64, length: Int)], most bytes: Int
  ) throws(TidemarkError) -> [UInt64: [UInt8]] {
    var offsets: [UInt64] = []
    var left = bytes
    for (offset, length) in wanted where length <= BlobID.leastLength {
      left -= length
      offsets.append(offset)
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
    let states = try feed.states(of: keys)
    let small = states.compactMap { $0?.head }.filter {
      $0.kind == .put && $0.valueLength <= Self.bytesWithVerdict
    }
    let values = try smallValues(
      small.map { ($0.offset, $0.valueLength) }, most: Self.bytesWithVerdicts)
    var found: [FeedEntry] = []
    var bytes = 0
    for (key, state) in zip(keys, states) where bytes < Self.bytesWithVerdicts {
      guard let state, state.isDeleted || state.head.valueLength <= Self.bytesWithVerdict,
        let entry = try entry(ofKey: key, state, values, access, false),
        entry.position.offset <= last, entry.content.value.count <= Self.bytesWithVerdict
      else { continue }
      bytes += key.count + entry.content.value.count
      found.append(entry)
    }
    return found
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
      commitTime: head.commitTime)
    if kind == .put || kind == .delete { entry.time = head.attributes.time }
    guard kind == .put else { return entry }
    return try LargeValues.shared.withRoom(forValueOf: head.valueLength) {
      let known = try values[head.offset] ?? feed.values(at: [head.offset])[head.offset]
      guard let value = known else { return nil }
      entry.content = SyncContent(
        value: value, labels: head.labels.map { EntryLabel($0) }, head.attributes)
      if takesBlobs { entry.content.moveApart() }
      return entry
    }
  }
}
