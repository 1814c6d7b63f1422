internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Answers with the entries behind a cursor, at once: also with none, when there is none. A
  /// caller who is to wait asks again after ``observe(_:)`` has told.
  ///
  /// An answer may have no entries and still go on: its cursor is further than the one asked for
  /// until it has reached the end of the range. Of several entries of a key the reader gets the
  /// last at least; see ``PullRequest/everyVersion``.
  /// - Throws: ``PeerError``: `cursorGone` for a cursor that is not this feed's any more, or
  ///   behind which deletes may be gone.
  public func pull(
    _ request: PullRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> PullAnswer {
    try settled(\.range) { try stagePull(request, access).answer }
  }

  /// - Parameters:
  ///   - lookedThrough: up to here there is nothing for the caller, as it was found before;
  ///     nothing is acknowledged by that.
  ///   - other: a page that somebody else gets, to be given again where it is the same.
  func stagePull(
    _ request: PullRequest, _ access: SyncAccess, _ lookedThrough: Position = .beginning,
    sharing other: SharedPage? = nil
  ) throws -> (answer: PullAnswer, page: SharedPage?, isShared: Bool) {
    let ((page, shared), end) = try reading(FeedQuestion(of: request.replica)) { view in
      let range = view.range
      guard range.contains(request.after) else {
        throw PeerError(.cursorGone, "the feed did not give the cursor out, or lists it no more")
      }
      let holdsNothing = request.after == .beginning && view.mark.mark.number == 0
      let isBehind =
        !holdsNothing && request.after.offset < self.range(view).truncatedThrough
      guard !isBehind || request.ownOnly else {
        throw PeerError(.cursorGone, "deletes behind the cursor may be gone")
      }
      let looked = range.contains(lookedThrough) ? lookedThrough.offset : 0
      let start = max(request.after.offset, looked)
      // Where others may have deleted something it ends.
      var page = PageReader(
        self, request, access, view, from: isBehind ? request.after.offset : start)
      let shared = other.flatMap { $0.isPage(of: page) ? $0 : nil }
      if let shared { page = shared.page } else if !isBehind { try page.read() }
      return (page, shared)
    }
    noteCursor(of: request, end)
    var range = range(end)
    // The answer tells of nothing that came since it was begun, but for the mark: nobody waits for
    // a sync of the rest, and a reader who has got everything is told so.
    range.head = min(range.head, max(page.range.head, end.mark.position.offset))
    let answer = PullAnswer(
      entries: page.entries, cursor: page.range.position(ofOffset: page.through), range: range,
      mark: end.mark.mark, reach: access.reach)
    return (answer, shared ?? SharedPage(page), shared != nil)
  }

  /// Takes note of how far a replica has read: it needs no deletes from before. That it has begun
  /// to read is written down, so that deletes are kept for it from then on.
  private func noteCursor(of request: PullRequest, _ view: FeedView) {
    guard var lease = view.lease, lease.cursor.offset < request.after.offset else { return }
    let writes = lease.cursor.offset == 0
    lease.cursor = request.after
    // A replica that only reads is answered on a full disk, too.
    try? feed.setLease(
      lease, of: request.replica, after: view, most: options.mostLeases, writes: writes)
  }
}

/// The page that a call is answered with, while it is read.
struct PageReader: Sendable {
  /// Entries that one call looks at before it answers with what it has found.
  private static let entriesPerCall = 32_768
  private static let headsPerPage = 1_024

  let handler: SyncHandler
  let request: PullRequest
  let access: SyncAccess
  let range: FeedRange
  /// Entries that others up to here supersede may have been gone before it was read.
  let historyFrom: UInt64
  /// Where it begins, and the first entry behind that.
  let start: UInt64
  private(set) var first: UInt64 = .max
  /// Everything up to here was dealt with.
  private(set) var through: UInt64
  private(set) var entries: [FeedEntry] = []
  /// The replicas that wrote what it looked at.
  private(set) var writers: Set<ReplicaID> = []
  /// Whether it has labels that keys had before; what the reader has heard of them depends on its
  /// cursor.
  private(set) var hasFormerLabels = false
  /// Entries that others up to here supersede may be gone.
  private var droppedThrough: UInt64 = 0
  /// Whether keys are there, as the page says. Later entries of one that has gone have the labels,
  /// too, that it had before, and need not say so again. The reader of a page from the beginning
  /// knows of no keys but those that are there.
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
  mutating func read() throws {
    let most = min(max(request.limits.changes, 1), handler.options.limits.changes)
    let mostBytes = min(max(request.limits.bytes, 1), handler.options.limits.bytes)
    var bytes = 0
    for _ in 0..<Self.entriesPerCall / Self.headsPerPage where through < range.head {
      let found = try handler.feed.read(query)
      let rows = try outcomes(of: found.rows)
      let puts = rows.lazy.filter { if case .success(.put?) = $1 { true } else { false } }
      let values = try handler.smallValues(
        of: puts.prefix(most - entries.count).map(\.0), most: mostBytes - bytes)
      for (head, outcome) in rows {
        if entries.count >= most { return }
        // The page may end before what cannot be told.
        if let kind = try outcome.get() {
          if request.ownOnly, head.operation.replica != request.replica { return }
          let size = kind == .own ? 0 : head.answerBytes
          if !entries.isEmpty, bytes + size > mostBytes { return }
          let position = range.position(ofOffset: head.offset)
          do {
            if let entry = try handler.entry(
              kind, head, at: position, values, takesBlobs: request.takesBlobs)
            {
              bytes += size
              entries.append(entry)
            }
          } catch let error as PeerError where error.kind == .busy && !entries.isEmpty {
            return
          }
        }
        through = head.offset
      }
      through = found.through
    }
  }

  private var query: FeedQuery {
    FeedQuery(
      after: through, through: range.head, limit: Self.headsPerPage,
      wantsFormer: { [request, access] head in
        head.operation.replica != request.replica
          && !access.reads(head.key, head.labels, request)
      },
      wantsLater: { [request] head in
        !request.everyVersion && head.operation.replica != request.replica
      })
  }

  /// The meaning of entries to their reader, as far as it can be told.
  private mutating func outcomes(
    of rows: [FeedRow]
  ) throws(TidemarkError) -> [(FeedHead, Result<FeedEntry.Kind?, PeerError>)] {
    // It rises before anything is dropped, so it is read after the entries.
    let needsBounds = rows.contains { $0.former?.isEmpty == false }
    hasFormerLabels = hasFormerLabels || needsBounds
    first = min(first, rows.first?.head.offset ?? .max)
    droppedThrough = needsBounds ? try handler.feed.look(FeedQuestion()).historyFrom : 0
    var last: ReplicaID?
    return rows.map { row in
      if last != row.head.operation.replica { writers.insert(row.head.operation.replica) }
      last = row.head.operation.replica
      let outcome = Result { () throws(PeerError) in try self.outcome(of: row) }
      if case .success(let kind?) = outcome { note(row.head.key, kind) }
      return (row.head, outcome)
    }
  }

  /// Whether it matters what keys are there: a reader that may see everything can be told of any.
  private var begins: Bool { request.after == .beginning && access.scope != nil }

  /// Takes note of what the page tells of a key, as far as it matters for later entries.
  private mutating func note(_ key: [UInt8], _ kind: FeedEntry.Kind) {
    let hasGone = kind == .left || kind == .delete
    if begins || hasGone {
      isThere[key] = !hasGone
    } else if !isThere.isEmpty {
      isThere[key] = nil
    }
  }

  /// Whether a reader need not hear of an entry since it hears of a later one of its key in any
  /// case: then it ends with the same.
  ///
  /// A value that has left the reader's scope is told of by what it was before, so an entry stays
  /// unless the last one lies within.
  private func isSuperseded(_ row: FeedRow) -> Bool {
    guard let later = row.later, later.head.operation.replica != request.replica else {
      return false
    }
    if PlantedSyncBug.isOn(.supersededNeverTold) { return true }
    return access.reads(row.head.key, later.head.labels, request)
  }

  /// Whether the reader has yet to hear of a label that an entry has left out. It has heard of it
  /// before the cursor, unless that entry may have been dropped when it read on: then a later one
  /// has yet to say so.
  private func lacks(_ left: UInt64) -> Bool {
    max(left, droppedThrough) > request.after.offset
  }

  /// The meaning of an entry to its reader; nil when it is none of its business.
  private func outcome(of row: FeedRow) throws(PeerError) -> FeedEntry.Kind? {
    guard !isSuperseded(row) else { return nil }
    // An entry that its reader has sent must be told of wherever it lies.
    return row.head.operation.replica == request.replica ? .own : try outcomeOfOthers(row)
  }

  private func outcomeOfOthers(_ row: FeedRow) throws(PeerError) -> FeedEntry.Kind? {
    let head = row.head
    if access.reads(head.key, head.labels, request) { return head.kind == .put ? .put : .delete }
    let kind: FeedEntry.Kind? =
      isThere[head.key] == false ? nil : head.kind == .delete ? .delete : .left
    let former = row.former ?? FormerLabels(forgottenThrough: head.offset)
    let left = former.rows.filter { lacks($0.left) }.map(\.label)
    // One of them may have put the key into what is asked for, and one that it still has into what
    // may be read.
    if !left.isEmpty, access.reads(head.key, left + head.labels, request) { return kind }
    guard let forgotten = former.forgottenThrough, lacks(forgotten) else { return nil }
    // A key that the reader may not know of must not be told; but if it does know it, it must
    // hear. Only a comparison of everything can tell.
    if access.scope == nil { return kind }
    guard request.after == .beginning else {
      throw PeerError(.cursorGone, "what entries behind the cursor held before is not kept")
    }
    return isThere[head.key] == true ? kind : nil
  }
}

extension SyncAccess {
  /// Whether what a pull asks for, and may read, has a key with some labels.
  fileprivate func reads(_ key: [UInt8], _ labels: [[UInt8]], _ request: PullRequest) -> Bool {
    request.scope.contains(key: key, labels: labels) && reaches(key: key, labels: labels)
  }
}
