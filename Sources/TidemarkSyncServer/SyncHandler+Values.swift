internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Answers with the current contents of keys. It leaves out keys that the authorization does not
  /// reach, like absent keys.
  /// - Parameters:
  ///   - request: the keys.
  ///   - access: the entries that the caller's authorization reaches.
  /// - Throws: ``PeerError`` when the request is invalid or the store cannot be read.
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

  /// The current entries of keys, from the first key on, as many as fit in `most` bytes.
  /// - Returns: with them, how many keys are answered: at least one, unless there is none.
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

  /// Reads the values of some puts in order, without the large ones, as many as fit in `bytes`, by
  /// one call to the feed; none where all of them are known.
  func smallValues(
    of puts: some Sequence<FeedHead>, most bytes: Int, known: [UInt64: [UInt8]] = [:]
  ) throws(TidemarkError) -> [UInt64: [UInt8]] {
    var offsets: [UInt64] = []
    var left = bytes
    for put in puts where put.valueLength <= SyncContent.mostInlineBytes {
      left -= put.valueLength
      if known[put.offset] == nil { offsets.append(put.offset) }
      guard left > 0 else { break }
    }
    if offsets.isEmpty { return known }
    return try feed.values(at: offsets).merging(known) { new, _ in new }
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
    // The key was written again and a compaction dropped the value, after the view was read.
    throw PeerError(.busy, "the key is being written to", retryAfter: .seconds(0))
  }

  /// An entry as its reader gets it: its own ones without key, large values replaced if it asks so.
  /// - Returns: nil when a compaction has just dropped the value, which a later entry supersedes.
  func entry(
    _ kind: FeedEntry.Kind, _ head: FeedHead, at position: FeedPosition,
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
  /// Answers with a part of the large value of the entry at a position.
  /// - Throws: ``PeerError``: `busy` when the value was superseded and dropped: the caller must
  ///   pull the page with that entry again.
  func partOfValue(_ request: ContentRequest, _ access: SyncAccess) throws -> [UInt8] {
    let offset = request.position.offset
    return try reading(FeedQuestion()) { view in
      guard view.range.contains(request.position),
        let head = try feed.heads(at: [offset])[offset], head.kind == .put,
        access.reaches(key: head.key, labels: head.labels)
      else { throw Self.noValue }
      // The unpacked value and a copy are in memory at once.
      return try LargeValues.shared.withRoom(for: 2 * head.valueLength) {
        guard let value = try feed.values(at: [offset])[offset] else { throw Self.noValue }
        let first = min(max(request.offset, 0), value.count)
        // Every call reads the whole value, so very small parts would cost too much.
        let count = min(max(request.limit, AttachRequest.partBytes), value.count - first)
        return Array(value[first..<first + count])
      }
    }.0
  }

  private static let noValue = PeerError(
    .busy, "the position has no large value any more: pull again", retryAfter: .seconds(0))
}

/// Bounds the bytes of large values that calls hold in memory at a time: a request of a few bytes
/// may ask for 64 MiB.
final class LargeValues: Sendable {
  /// The budget of all handlers of the program.
  static let shared = LargeValues(most: 256 << 20)

  private let most: Int
  private let held = Lock(0)

  /// - Parameter most: in bytes; a call may hold more while no other holds any.
  init(most: Int) { self.most = most }

  /// Runs a call that holds `bytes` bytes.
  /// - Throws: ``PeerError`` of kind `busy` while other calls hold too many.
  func withRoom<R>(for bytes: Int, _ body: () throws -> R) throws -> R {
    guard bytes > 0 else { return try body() }
    let hasRoom = held.withLock { held in
      guard held == 0 || held + bytes <= most else { return false }
      held += bytes
      return true
    }
    guard hasRoom else {
      throw PeerError(.busy, "too many large values are being read", retryAfter: .seconds(1))
    }
    defer { held.withLock { $0 -= bytes } }
    return try body()
  }
}
