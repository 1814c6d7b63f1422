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
    let ((entries, answered), end) = try reading(FeedQuestion(of: request.replica, keys: keys)) {
      try self.entries(
        ofKeys: keys, $0.states, most: options.limits.bytes, access,
        takesBlobs: request.takesBlobs)
    }
    return ValuesAnswer(
      entries: entries, answered: answered, range: range(end), reach: access.reach)
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
    for put in puts where put.valueLength <= SyncContent.mostInlineBytes {
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

  /// The entries that a batch's changes have come to a conflict with, as far as they are small, and
  /// are the states of their keys in a view.
  func current(
    of request: PushRequest, _ mark: ReplicaMark, _ view: FeedView, _ access: SyncAccess
  ) throws -> [FeedEntry] {
    guard mark.number == request.number, mark.batchID == request.batchID else { return [] }
    var keys: [[UInt8]] = []
    var states: [FeedState?] = []
    var seen: Set<[UInt8]> = []
    for (index, verdict) in mark.verdicts.enumerated() where index < view.states.count {
      guard let state = view.states[index], state.head.valueLength <= Self.bytesWithVerdict,
        verdict == .conflict(state.position) || verdict == .lost(state.position),
        seen.insert(request.changes[index].key).inserted
      else { continue }
      keys.append(request.changes[index].key)
      states.append(state)
    }
    return try entries(
      ofKeys: keys, states, most: Self.bytesWithVerdicts, access, takesBlobs: false
    ).entries
  }

  private func entry(
    ofKey key: [UInt8], _ state: FeedState?, _ values: [UInt64: [UInt8]], _ access: SyncAccess,
    _ takesBlobs: Bool
  ) throws -> FeedEntry? {
    guard let state, access.reaches(key: key, labels: state.head.labels) else { return nil }
    let kind: FeedEntry.Kind = state.isDeleted ? .delete : .put
    let entry = try entry(
      kind, state.head, at: state.position, values, takesBlobs: takesBlobs)
    if let entry { return entry }
    // A compaction has taken the value between the two looks, after another write.
    throw PeerError(.busy, "the key is being written to", retryAfter: .seconds(0))
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
    if kind == .put || kind == .delete { entry.received = head.receivedBeforeCommit }
    guard kind == .put else { return entry }
    let large = head.valueLength > SyncContent.mostInlineBytes ? head.valueLength : 0
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

extension SyncHandler {
  /// Answers with a part of a large value that stands in the feed.
  /// - Throws: ``PeerError``: `busy` when it is not kept any more, since something else took its
  ///   place: the page that has named it is to be pulled again.
  func stageDownload(_ request: DownloadRequest, _ access: SyncAccess) throws -> DownloadAnswer {
    let offset = request.position.offset
    return try reading(FeedQuestion()) { view in
      guard view.range.contains(request.position),
        let head = try feed.heads(at: [offset])[offset], head.kind == .put,
        access.reaches(key: head.key, labels: head.labels)
      else { throw Self.noValue }
      // As it is unpacked, and a copy of it.
      return try LargeValues.shared.withRoom(for: 2 * head.valueLength) {
        guard let value = try feed.values(at: [offset])[offset] else { throw Self.noValue }
        let first = min(max(request.offset, 0), value.count)
        // Every call reads the value as a whole: those that want next to nothing get more.
        let wanted = max(request.limit, DownloadRequest.leastBytes)
        let count = min(wanted, DownloadRequest.mostBytes, value.count - first)
        return DownloadAnswer(length: value.count, bytes: Array(value[first..<first + count]))
      }
    }.0
  }

  private static let noValue = PeerError(
    .busy, "no large value stands there any more: pull again", retryAfter: .seconds(0))
}

/// The bytes of large values that calls hold at a time: a request of a few bytes may ask for 64
/// MiB.
final class LargeValues: Sendable {
  /// The budget of all handlers of the program.
  static let shared = LargeValues(most: 256 << 20)

  private let most: Int
  private let held = Lock(0)

  /// - Parameter most: in bytes; a single call may have more while there is no other.
  init(most: Int) { self.most = most }

  /// Runs a call that holds so many bytes.
  /// - Throws: ``PeerError`` of kind `busy` where others hold too much.
  func withRoom<R>(for bytes: Int, _ body: () throws -> R) throws -> R {
    guard bytes > 0 else { return try body() }
    let isThere = held.withLock { held in
      guard held == 0 || held + bytes <= most else { return false }
      held += bytes
      return true
    }
    guard isThere else {
      throw PeerError(.busy, "too many large values are being read", retryAfter: .seconds(1))
    }
    defer { held.withLock { $0 -= bytes } }
    return try body()
  }
}
