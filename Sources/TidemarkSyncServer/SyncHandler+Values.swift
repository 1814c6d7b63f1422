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
    try settled(try stageValues(request, access), \.range)
  }

  func stageValues(
    _ request: ValuesRequest, _ access: SyncAccess
  ) throws(PeerError) -> ValuesAnswer {
    try answering {
      let keys = request.keys.prefix(options.limits.changes)
      let isKey = keys.map { (1...Limits.keyBytes).contains($0.count) }
      let states = try feed.states(of: zip(keys, isKey).map { $1 ? $0 : [0] })
      let puts = zip(keys, states).compactMap { key, state -> (UInt64, Int)? in
        guard let state, !state.isDeleted, access.reaches(key: key, labels: state.labels) else {
          return nil
        }
        return (state.position.offset, state.valueLength)
      }
      let values = try smallValues(puts, most: options.limits.bytes)
      var entries: [FeedEntry] = []
      var bytes = 0
      var answered = 0
      for (index, key) in keys.enumerated() {
        let state = isKey[index] ? states[index] : nil
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
    guard !offsets.isEmpty else { return [:] }
    var values: [UInt64: [UInt8]] = [:]
    for (offset, value) in zip(offsets, try feed.values(at: offsets)) { values[offset] = value }
    return values
  }

  /// The value at an offset, which may be among those that are known.
  func value(
    at offset: UInt64, in known: [UInt64: [UInt8]]
  ) throws(TidemarkError) -> [UInt8]? {
    if let value = known[offset] { return value }
    return try feed.values(at: [offset])[0]
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
    let values = try smallValues(
      states.compactMap { $0 }.filter { !$0.isDeleted && $0.valueLength <= Self.bytesWithVerdict }
        .map { ($0.position.offset, $0.valueLength) }, most: Self.bytesWithVerdicts)
    var found: [FeedEntry] = []
    var bytes = 0
    for (key, state) in zip(keys, states) where bytes < Self.bytesWithVerdicts {
      guard let state, state.isDeleted || state.valueLength <= Self.bytesWithVerdict,
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
      guard let state = current, access.reaches(key: key, labels: state.labels) else { return nil }
      var entry = FeedEntry(
        position: state.position, kind: .delete, operation: state.operation, key: key,
        commitTime: state.writtenTime, time: state.attributes.time)
      if state.isDeleted { return entry }
      entry.kind = .put
      let content = try LargeValues.shared.withRoom(forValueOf: state.valueLength) {
        var content = try value(at: state.position.offset, in: values).map {
          SyncContent(
            value: $0, labels: state.labels.map { EntryLabel($0) }, state.attributes)
        }
        if takesBlobs { content?.moveApart() }
        return content
      }
      if let content {
        entry.content = content
        return entry
      }
      current = try feed.states(of: [key])[0]
    }
    throw TidemarkError(.inputOutput, "the key changes too fast to be read; try again")
  }
}
