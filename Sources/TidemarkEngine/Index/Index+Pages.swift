// Walks in key order, a page at a time, under the owner's lock.
extension Index {
  /// Fills a page with keys and slots in key order.
  /// - Parameters:
  ///   - from: where the walk begins; `page.resumption` continues a walk.
  ///   - upTo: where it ends at the latest.
  ///   - descending: from the largest key down; `from` is the upper end then.
  ///   - limit: most keys to return, at least 1.
  ///   - includeDeleted: also keys whose newest entry is a delete.
  ///   - page: what to fill; emptied first.
  /// - Returns: whether the end was reached; else there may be fewer keys than `limit`, even none.
  package func page(
    from: KeyBound, upTo: KeyBound, descending: Bool = false, limit: Int,
    includeDeleted: Bool = false, into page: inout KeyPage
  ) throws(IndexError) -> Bool {
    let range = KeyRange(from: from, upTo: upTo, descending: descending)
    let filter = SlotFilter(takesAll: includeDeleted, table: labelTable)
    return try fillAll(&page, limit, range, filter)
  }

  /// Fills a page with the keys that a label query wants, in key order.
  /// - Parameters:
  ///   - query: the query; one without any label matches all keys.
  ///   - from: as for a page of all keys; so are `upTo`, `descending`, `limit` and `page`.
  ///   - includeFormer: for a view of the past. The page then has every key, deleted or not, that
  ///     carries or carried one of the labels whose lists are walked, with its newest slot; the
  ///     caller looks at older versions and decides which keys matched then.
  /// - Returns: as for a page of all keys.
  package func page(
    matching query: LabelQuery, from: KeyBound, upTo: KeyBound, descending: Bool = false,
    limit: Int, includeFormer: Bool = false, into page: inout KeyPage
  ) throws(IndexError) -> Bool {
    let range = KeyRange(from: from, upTo: upTo, descending: descending)
    guard let predicate = try LabelPredicate(query, labelTable) else {
      page.removeAll()
      return true
    }
    let filter = SlotFilter(takesAll: includeFormer, predicate: predicate, table: labelTable)
    let drivers = try drivers(predicate, former: includeFormer)
    guard !drivers.isEmpty else { return try fillAll(&page, limit, range, filter) }
    let memtables = memtables.map { MemtableCursor($0, labels: drivers, range) }
    var cursors: [RunCursor] = []
    for run in runs.runs {
      // A run beneath (none if `base` is 0) may list a key that lost the label here: list it, too.
      let hidesRuns = run.header.base > 0
      cursors.append(
        try RunCursor(run, labels: drivers, former: includeFormer || hidesRuns, range))
    }
    // A key that lost a label is listed by the layer in which it lost it, not by newer layers that
    // have the key again. Such an old slot never matches; a view of the past needs the newest one.
    var walk = IndexWalk(
      self, memtables: memtables, runs: cursors, filter: filter, descending: descending,
      looksUpNewest: includeFormer)
    return try walk.fill(&page, limit: limit)
  }

  /// The labels whose lists together hold every key that can match: the rarest of those that a key
  /// must carry, else those of which it needs one. Empty if the query only excludes labels.
  private func drivers(_ predicate: LabelPredicate, former: Bool) throws(IndexError) -> [UInt32] {
    guard !predicate.all.isEmpty else { return predicate.any }
    active.labels.distributeWaiting()
    var best = predicate.all[0]
    var least = Int.max
    for label in predicate.all {
      var size = active.labels.candidateCount(label)
      size += frozen?.labels.candidateCount(label) ?? 0
      for run in runs.runs {
        guard let found = try run.label(label) else { continue }
        size += found.current.count
        if former || run.header.base > 0 { size += found.former.count }
      }
      if size < least { (best, least) = (label, size) }
    }
    return [best]
  }

  private func fillAll(
    _ page: inout KeyPage, _ limit: Int, _ range: KeyRange, _ filter: SlotFilter
  ) throws(IndexError) -> Bool {
    var cursors: [RunCursor] = []
    for run in runs.runs { cursors.append(try RunCursor(all: run, range)) }
    var walk = IndexWalk(
      self, memtables: memtables.map { MemtableCursor(all: $0, range) }, runs: cursors,
      filter: filter,
      descending: range.descending)
    return try walk.fill(&page, limit: limit)
  }

  /// The memtables, newest first.
  private var memtables: [Memtable] { frozen.map { [active, $0] } ?? [active] }
}
