internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Answers at once with the entries after a cursor, which may be none. To wait for entries, a
  /// caller uses ``observe(_:)`` and pulls again when that calls.
  ///
  /// An answer without entries may still make progress: its cursor is later than the request's. Of
  /// several entries of a key the reader gets at least the last: see ``PullRequest/everyVersion``.
  /// - Throws: ``PeerError``: `cursorGone` for a cursor that is not in the feed, or after which
  ///   tombstones may have been dropped.
  public func pull(
    _ request: PullRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> PullAnswer {
    try settled(\.range) { try stagePull(request, access).answer }
  }

  /// - Parameters:
  ///   - lookedThrough: the position up to which an earlier call found no entries for this pull.
  ///     Unlike the request's cursor it acknowledges nothing.
  ///   - other: the page of another caller, which is used again if this one would be equal.
  func stagePull(
    _ request: PullRequest, _ access: SyncAccess, _ lookedThrough: FeedPosition = .beginning,
    sharing other: SharedPage? = nil
  ) throws -> (answer: PullAnswer, page: SharedPage?, isShared: Bool) {
    var known: FeedView?
    let question = FeedQuestion(of: request.replica)
    let ((page, shared), end) = try reading(question, end: { known }) { view in
      let range = view.range
      guard range.contains(request.after) else {
        throw PeerError(.cursorGone, "the cursor is not in the feed: it was restored or made anew")
      }
      let holdsNothing = request.after == .beginning && view.mark.mark.number == 0
      let isBehind =
        !holdsNothing && request.after.offset < self.range(view).truncatedThrough
      guard !isBehind || request.ownOnly else {
        throw PeerError(.cursorGone, "deletes behind the cursor may be gone")
      }
      let looked = range.contains(lookedThrough) ? lookedThrough.offset : 0
      let start = max(request.after.offset, looked)
      // A page of own entries ends at the first of others, which may be a dropped tombstone here.
      var page = PageReader(
        self, request, access, view, from: isBehind ? request.after.offset : start)
      let shared = other.flatMap { $0.isPage(of: page) ? $0 : nil }
      known = nil
      if let shared { page = shared.page } else if !isBehind { known = try page.read() }
      return (page, shared)
    }
    noteCursor(of: request, end)
    var range = range(end)
    // The answer's range ends where its page's did, or at the mark: it need not wait for a sync of
    // later entries, and a reader that has all entries of the range sees that.
    range.head = min(range.head, max(page.range.head, end.mark.position.offset))
    let answer = PullAnswer(
      entries: page.entries, cursor: page.range.position(ofOffset: page.through), range: range,
      mark: end.mark.mark, reach: access.reach)
    return (answer, shared ?? SharedPage(page), shared != nil)
  }

  /// Notes in its lease how far a replica has read: tombstones up to there need not be kept for it.
  /// The first progress is stored in the log, as tombstones are kept for it from then on.
  private func noteCursor(of request: PullRequest, _ view: FeedView) {
    guard var lease = view.lease, lease.cursor.offset < request.after.offset else { return }
    let writes = lease.cursor.offset == 0
    lease.cursor = request.after
    // A pull is answered even if the disk is full and the lease cannot be stored.
    try? feed.setLease(
      lease, of: request.replica, after: view, most: options.mostLeases, writes: writes)
  }
}

/// Reads the page of one pull: decides for each entry whether its reader gets a put, a delete, its
/// own entry's confirmation, or `left` for a key that has left its scope; or nothing.
struct PageReader: Sendable {
  /// Most entries of the feed that one call reads, however few are for the reader.
  private static let entriesPerCall = 32_768
  private static let headsPerPage = 1_024

  let handler: SyncHandler
  let request: PullRequest
  let access: SyncAccess
  let range: FeedRange
  /// Before the page was read, an entry may have been gone if one up to this offset superseded it.
  let historyFrom: UInt64
  /// The offset after which the page begins, and the offset of the first entry after that.
  let start: UInt64
  private(set) var first: UInt64 = .max
  /// The offset up to which the page is complete.
  private(set) var through: UInt64
  private(set) var entries: [FeedEntry] = []
  /// The writers of all entries read for the page.
  private(set) var writers: Set<ReplicaID> = []
  /// Whether former labels of keys decide what is in the page: which of them the reader still knows
  /// depends on its cursor, so that readers with other cursors cannot share the page.
  private(set) var hasFormerLabels = false
  /// An entry may be gone if one up to this offset supersedes it.
  private var droppedThrough: UInt64 = 0
  /// By key, whether the reader has it after the page so far. A key that has left is not reported
  /// again for later entries, which have the same former labels. The reader of a page from the
  /// beginning has only keys that the page gave it.
  private var isThere: [[UInt8]: Bool] = [:]

  init(
    _ handler: SyncHandler, _ request: PullRequest, _ access: SyncAccess, _ view: FeedView,
    from start: UInt64
  ) {
    (self.handler, self.request, self.access) = (handler, request, access)
    (range, historyFrom) = (view.range, view.historyFrom)
    (self.start, through) = (start, start)
  }

  /// Reads on until the page is full, or the range ends.
  /// - Returns: the feed after all that was read, if the last read has brought it along.
  mutating func read() throws -> FeedView? {
    var end: FeedView?
    let most = min(max(request.limits.changes, 1), handler.options.limits.changes)
    let mostBytes = min(max(request.limits.bytes, 1), handler.options.limits.bytes)
    var bytes = 0
    for _ in 0..<Self.entriesPerCall / Self.headsPerPage where through < range.head {
      // Who gets nothing of a page will hardly get more of the next one.
      let isVain = entries.isEmpty && through > start
      let found = try handler.feed.read(query(valueBytes: isVain ? 0 : mostBytes - bytes))
      end = found.end
      let outcomes = try outcomes(of: found)
      let values = try handler.smallValues(
        of: found.rows.indices.lazy.filter { Self.isPut(outcomes[$0]) }
          .prefix(most - entries.count).map { found.rows[$0].head },
        most: mostBytes - bytes, known: found.values)
      for (row, outcome) in zip(found.rows, outcomes) {
        if entries.count >= most { return end }
        let head = row.head
        // Errors are thrown only here: a page that is full before the entry is still answered.
        if let kind = try outcome.get() {
          if request.ownOnly, head.operation.replica != request.replica { return end }
          let size = kind == .own ? 0 : head.answerBytes
          if !entries.isEmpty, bytes + size > mostBytes { return end }
          // A value that is read by itself is read after the view.
          if kind == .put, found.values[head.offset] == nil { end = nil }
          let position = range.position(ofOffset: head.offset)
          do {
            if let entry = try handler.entry(
              kind, head, at: position, values, takesBlobs: request.takesBlobs)
            {
              bytes += size
              entries.append(entry)
            }
          } catch let error as PeerError where error.kind == .busy && !entries.isEmpty {
            return nil
          }
        }
        through = head.offset
      }
      through = found.through
    }
    return end
  }

  private func query(valueBytes: Int) -> FeedQuery {
    var query = FeedQuery(after: through, through: range.head, limit: Self.headsPerPage)
    query.wantsFormer = { [request, access] head in
      head.operation.replica != request.replica
        && !access.reads(head.key, head.labels, request)
    }
    query.wantsLater = { [request] head in
      !request.everyVersion && head.operation.replica != request.replica
    }
    (query.valueBytes, query.replica) = (valueBytes, request.replica)
    return query
  }

  /// What the reader gets for each entry, nil for nothing; an error where that cannot be decided.
  private mutating func outcomes(
    of found: FeedPage
  ) throws(TidemarkError) -> [Result<FeedEntry.Kind?, PeerError>] {
    let rows = found.rows
    // `historyFrom` rises before entries are dropped, so it is read after the entries.
    let needsBounds = rows.contains { $0.former?.isEmpty == false }
    hasFormerLabels = hasFormerLabels || needsBounds
    first = min(first, rows.first?.head.offset ?? .max)
    droppedThrough = needsBounds ? found.end?.historyFrom ?? 0 : 0
    if needsBounds, found.end == nil {
      droppedThrough = try handler.feed.look(FeedQuestion()).historyFrom
    }
    var last: ReplicaID?
    return rows.map { row in
      if last != row.head.operation.replica { writers.insert(row.head.operation.replica) }
      last = row.head.operation.replica
      let outcome = Result { () throws(PeerError) in try self.outcome(of: row) }
      if case .success(let kind?) = outcome { note(row.head.key, kind) }
      return outcome
    }
  }

  private static func isPut(_ outcome: Result<FeedEntry.Kind?, PeerError>) -> Bool {
    if case .success(.put?) = outcome { true } else { false }
  }

  /// Whether every key of the page is noted in `isThere`: a page from the beginning whose reader
  /// may not learn of keys out of reach.
  private var begins: Bool { request.after == .beginning && access.scope != nil }

  /// Notes in `isThere` what the reader gets of a key, as far as later entries depend on it.
  private mutating func note(_ key: [UInt8], _ kind: FeedEntry.Kind) {
    let hasGone = kind == .left || kind == .delete
    if begins || hasGone {
      isThere[key] = !hasGone
    } else if !isThere.isEmpty {
      isThere[key] = nil
    }
  }

  /// Whether an entry can be left out since its reader surely gets a later one of the key.
  ///
  /// That one must be within the reader's scope: whether a reader gets `left` for one outside
  /// depends on the entries before it.
  private func isSuperseded(_ row: FeedRow) -> Bool {
    guard let later = row.later, later.operation.replica != request.replica else {
      return false
    }
    if PlantedSyncBug.isOn(.supersededNeverTold) { return true }
    return access.reads(row.head.key, later.labels, request)
  }

  /// Whether the reader has yet to see that the entry at `left` took a label from its key: if that
  /// entry is after the cursor, or may have been dropped before the reader got there, so that a
  /// later one must say so.
  private func lacks(_ left: UInt64) -> Bool {
    max(left, droppedThrough) > request.after.offset
  }

  /// What the reader gets for an entry; nil for nothing.
  private func outcome(of row: FeedRow) throws(PeerError) -> FeedEntry.Kind? {
    guard !isSuperseded(row) else { return nil }
    // A reader gets its own entries whatever their scope: they confirm its pushes.
    return row.head.operation.replica == request.replica ? .own : try outcomeOfOthers(row)
  }

  private func outcomeOfOthers(_ row: FeedRow) throws(PeerError) -> FeedEntry.Kind? {
    let head = row.head
    if access.reads(head.key, head.labels, request) { return head.kind == .put ? .put : .delete }
    let kind: FeedEntry.Kind? =
      isThere[head.key] == false ? nil : head.kind == .delete ? .delete : .left
    let former = row.former ?? FormerLabels(forgottenThrough: head.offset)
    let left = former.rows.filter { lacks($0.left) }.map(\.label)
    // With its former and present labels the key may have been in scope and in reach: then the
    // reader may have it, and must drop it.
    if !left.isEmpty, access.reads(head.key, left + head.labels, request) { return kind }
    guard let forgotten = former.forgottenThrough, lacks(forgotten) else { return nil }
    // Former labels are not known: the reader may have the key and must drop it then, but must not
    // learn of a key that was never in its reach. Only a comparison by digest can decide.
    if access.scope == nil { return kind }
    guard request.after == .beginning else {
      throw PeerError(.cursorGone, "earlier labels of keys after the cursor are not kept")
    }
    return isThere[head.key] == true ? kind : nil
  }
}

extension SyncAccess {
  /// Whether a key with some labels is in a pull's scope and within reach.
  fileprivate func reads(_ key: [UInt8], _ labels: [[UInt8]], _ request: PullRequest) -> Bool {
    request.scope.contains(key: key, labels: labels) && reaches(key: key, labels: labels)
  }
}
