internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Entries that one call looks at before it answers with what it has found.
  private static let entriesPerCall = 32_768
  private static let headsPerPage = 1_024
  /// How often a page is read anew because a compaction went on meanwhile.
  private static let attempts = 4

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
    try settled(try stagePull(request, access), \.range)
  }

  /// - Parameter lookedThrough: up to here there is nothing for the caller, as it was found before;
  ///   nothing is acknowledged by that.
  func stagePull(
    _ request: PullRequest, _ access: SyncAccess, _ lookedThrough: Position = .beginning
  ) throws(PeerError) -> PullAnswer {
    try answering {
      for _ in 0..<Self.attempts {
        let range = try feed.range()
        let context = try feed.context(of: request.replica)
        let isBehind = try isBehindDeletes(request, range, context)
        guard !isBehind || request.ownOnly else {
          throw PeerError(.cursorGone, "deletes behind the cursor may be gone")
        }
        let looked = range.contains(lookedThrough) ? lookedThrough.offset : 0
        let start = max(request.after.offset, looked)
        // Where others may have deleted something it ends.
        let page =
          isBehind
          ? Page(through: request.after.offset) : try read(request, access, range, from: start)
        let mark = try feed.context(of: request.replica).mark
        var now = try feed.range()
        // A delete that was dropped meanwhile may be missing in the page.
        guard now.truncatedThrough == range.truncatedThrough else { continue }
        try feed.leases.notePull(of: request.replica, to: request.after, feed)
        // The answer tells of nothing that came since it was begun, but for the mark: nobody waits
        // for a sync of the rest, and a reader who has got everything is told so.
        now.head = min(now.head, max(range.head, mark.position.offset))
        return PullAnswer(
          entries: page.entries, cursor: range.position(ofOffset: page.through),
          range: cleared(now, context.lease), mark: mark.mark, reach: access.reach)
      }
      throw PeerError(.busy, "the feed is being compacted", retryAfter: .seconds(1))
    }
  }

  /// Whether deletes may be gone that stood behind the cursor.
  private func isBehindDeletes(
    _ request: PullRequest, _ range: FeedRange, _ context: FeedContext
  ) throws(PeerError) -> Bool {
    guard range.contains(request.after) else {
      throw PeerError(.cursorGone, "the feed did not give the cursor out, or lists it no more")
    }
    let holdsNothing = request.after == .beginning && context.mark.mark.number == 0
    return !holdsNothing && request.after.offset < range.truncatedThrough
      && context.lease?.clearedThrough ?? 0 < range.truncatedThrough
  }

  private struct Page {
    var entries: [FeedEntry] = []
    /// Everything up to here was dealt with.
    var through: UInt64
  }

  private func read(
    _ request: PullRequest, _ access: SyncAccess, _ range: FeedRange, from start: UInt64
  ) throws -> Page {
    let most = min(max(request.limits.changes, 1), options.limits.changes)
    let mostBytes = min(max(request.limits.bytes, 1), options.limits.bytes)
    var page = Page(through: start)
    var bytes = 0
    var left = Self.entriesPerCall
    var told = Told()
    while page.through < range.head, left > 0 {
      let limit = min(left, Self.headsPerPage)
      let found = try feed.read(query(request, access, range, after: page.through, limit: limit))
      left -= limit
      let rows = try outcomes(of: found.rows, request, access, &told)
      let puts = rows.filter { if case .success(.put?) = $1 { true } else { false } }
      let values = try smallValues(
        puts.prefix(most - page.entries.count).map { ($0.0.offset, $0.0.valueLength) },
        most: mostBytes - bytes)
      for (head, outcome) in rows {
        if page.entries.count >= most { return page }
        // The page may end before what cannot be told.
        if let outcome = try outcome.get() {
          if request.ownOnly, head.operation.replica != request.replica { return page }
          let size = outcome == .own ? 0 : head.answerBytes
          if !page.entries.isEmpty, bytes + size > mostBytes { return page }
          do {
            let found = try LargeValues.shared.withRoom(forValueOf: head.valueLength) {
              var entry = try entry(head, outcome, range, values)
              if request.takesBlobs { entry?.content.moveApart() }
              return entry
            }
            if let found {
              bytes += size
              page.entries.append(found)
            }
          } catch let error as PeerError where error.kind == .busy && !page.entries.isEmpty {
            return page
          }
        }
        page.through = head.offset
      }
      page.through = found.through
    }
    return page
  }

  /// The keys that an answer tells of, as far as it matters for later entries.
  private struct Told {
    /// Keys that have gone. Later entries have the labels, too, that the key had before, and need
    /// not say so again.
    var gone: Set<[UInt8]> = []
    /// Keys that are there, in an answer from the beginning: its reader knows no others.
    var there: Set<[UInt8]> = []

    mutating func note(_ key: [UInt8], _ outcome: FeedEntry.Kind, fromBeginning: Bool) {
      switch outcome {
      case .put, .own:
        if !gone.isEmpty { gone.remove(key) }
        if fromBeginning { there.insert(key) }
      case .left, .delete:
        gone.insert(key)
        if fromBeginning { there.remove(key) }
      }
    }
  }

  /// The meaning of entries to their reader, as far as it can be told.
  private func outcomes(
    of rows: [FeedPage.Row], _ request: PullRequest, _ access: SyncAccess, _ told: inout Told
  ) throws(TidemarkError) -> [(FeedHead, Result<FeedEntry.Kind?, PeerError>)] {
    // It rises before anything is dropped, so it is read after the entries.
    let needsBounds = rows.contains { $0.former?.isEmpty == false }
    let droppedThrough = needsBounds ? try feed.bounds().historyFrom : 0
    // A reader that may see everything can be told of any key.
    let begins = request.after == .beginning && access.scope != nil
    return rows.map { row in
      let key = row.head.key
      let hearing = Hearing(
        of: request.after.offset, droppedThrough,
        hasGone: !told.gone.isEmpty && told.gone.contains(key),
        isThere: begins && told.there.contains(key))
      let outcome = Result { () throws(PeerError) in
        try self.outcome(of: row, request, access, hearing)
      }
      if case .success(let kind?) = outcome { told.note(key, kind, fromBeginning: begins) }
      return (row.head, outcome)
    }
  }

  /// Says of which labels that a key had before its reader has yet to hear that they are gone.
  private struct Hearing {
    /// The answer says already that the key has gone.
    let hasGone: Bool
    /// The answer, which goes from the beginning, says that the key is there.
    let isThere: Bool
    private let cursor: UInt64
    private let droppedThrough: UInt64

    init(of cursor: UInt64, _ droppedThrough: UInt64, hasGone: Bool, isThere: Bool) {
      self.cursor = cursor
      self.droppedThrough = droppedThrough
      self.hasGone = hasGone
      self.isThere = isThere
    }

    /// It has heard of those that were left out before the cursor, unless the entry that did it may
    /// have been dropped when it read on: then a later one has yet to say so.
    func lacks(_ left: UInt64) -> Bool { max(left, droppedThrough) > cursor }
  }

  private func query(
    _ request: PullRequest, _ access: SyncAccess, _ range: FeedRange, after offset: UInt64,
    limit: Int
  ) -> FeedQuery {
    var query = FeedQuery(after: offset, through: range.head, limit: limit)
    query.wantsLater = { head in
      !request.everyVersion && !request.includesOwn && head.operation.replica != request.replica
    }
    query.wantsFormer = { [self] head in
      guard head.operation.replica != request.replica || request.includesOwn else { return false }
      return !isWithin(head.key, head.kind == .put ? head.labels : [], request, access)
    }
    return query
  }

  /// Whether a reader need not hear of an entry since it hears of a later one of its key in any
  /// case: then it ends with the same.
  ///
  /// A value that has left the reader's scope is told of by what it was before, so an entry stays
  /// unless the last one lies within.
  private func isSuperseded(
    _ row: FeedPage.Row, _ request: PullRequest, _ access: SyncAccess
  ) -> Bool {
    guard let later = row.later, later.operation.replica != request.replica else { return false }
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.supersededNeverTold) { return true }
    #endif
    return isWithin(row.head.key, later.isDeleted ? [] : later.labels, request, access)
  }

  private func isWithin(
    _ key: [UInt8], _ labels: [[UInt8]], _ request: PullRequest, _ access: SyncAccess
  ) -> Bool {
    request.scope.contains(key: key, labels: labels) && access.reaches(key: key, labels: labels)
  }

  /// The meaning of an entry to its reader; nil when it is none of its business.
  private func outcome(
    of row: FeedPage.Row, _ request: PullRequest, _ access: SyncAccess, _ hearing: Hearing
  ) throws(PeerError) -> FeedEntry.Kind? {
    guard !isSuperseded(row, request, access) else { return nil }
    guard row.head.operation.replica == request.replica else {
      return try outcomeOfOthers(row, request, access, hearing)
    }
    guard request.includesOwn else { return .own }
    // An entry that its reader has sent must be told of wherever it lies.
    return try outcomeOfOthers(row, request, access, hearing) ?? .own
  }

  private func outcomeOfOthers(
    _ row: FeedPage.Row, _ request: PullRequest, _ access: SyncAccess, _ hearing: Hearing
  ) throws(PeerError) -> FeedEntry.Kind? {
    let head = row.head
    func isWithin(_ labels: [[UInt8]]) -> Bool {
      self.isWithin(head.key, labels, request, access)
    }
    if head.kind == .put, isWithin(head.labels) { return .put }
    if head.kind == .delete, isWithin([]) { return .delete }
    let gone: FeedEntry.Kind = head.kind == .delete ? .delete : .left
    let former = row.former ?? FormerLabels(forgottenThrough: head.offset)
    let left = former.rows.filter { hearing.lacks($0.left) }.map(\.label)
    // One of them may have put the key into what is asked for, and one that it still has into what
    // may be read.
    if !left.isEmpty, isWithin(left + head.labels) { return hearing.hasGone ? nil : gone }
    guard let forgotten = former.forgottenThrough, hearing.lacks(forgotten) else { return nil }
    // A key that the reader may not know of must not be told; but if it does know it, it must
    // hear. Only a comparison of everything can tell.
    if access.scope == nil { return hearing.hasGone ? nil : gone }
    guard request.after == .beginning else {
      throw PeerError(.cursorGone, "what entries behind the cursor held before is not kept")
    }
    return hearing.isThere ? gone : nil
  }

  /// - Returns: nil when a compaction has just taken the value, which a later entry supersedes.
  private func entry(
    _ head: FeedHead, _ outcome: FeedEntry.Kind, _ range: FeedRange, _ values: [UInt64: [UInt8]]
  ) throws(TidemarkError) -> FeedEntry? {
    let position = range.position(ofOffset: head.offset)
    switch outcome {
    case .own:
      return FeedEntry(
        position: position, kind: .own, operation: head.operation, key: [],
        commitTime: head.commitTime)
    case .left:
      return FeedEntry(
        position: position, kind: .left, operation: head.operation, key: head.key,
        commitTime: head.commitTime)
    case .delete:
      return FeedEntry(
        position: position, kind: .delete, operation: head.operation, key: head.key,
        commitTime: head.commitTime, time: head.attributes.time)
    case .put:
      guard let value = try value(at: head.offset, in: values) else { return nil }
      return FeedEntry(
        position: position, kind: .put, operation: head.operation, key: head.key,
        content: SyncContent(
          value: value, labels: head.labels.map { EntryLabel($0) }, head.attributes),
        commitTime: head.commitTime, time: head.attributes.time)
    }
  }
}
