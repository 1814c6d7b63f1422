extension Index {
  /// How many keys a page passes over for each that it may return, before it ends short.
  private static let looksPerKey = 8
  private static let leastLooks = 512

  /// Fills a page with keys and slots in key order.
  /// - Parameters:
  ///   - from: where the walk begins; `page.resumption` continues one.
  ///   - upTo: where it ends at the latest.
  ///   - descending: from the largest key down; `from` is the upper end then.
  ///   - limit: most keys to return, at least 1.
  ///   - includeDeleted: also keys whose newest entry is a delete.
  ///   - page: what to fill; emptied first.
  /// - Returns: whether the end was reached. If not, there may be fewer keys than `limit`,
  ///   even none.
  package func page(
    from: KeyBound, upTo: KeyBound, descending: Bool = false, limit: Int,
    includeDeleted: Bool = false, into page: inout KeyPage
  ) throws(IndexError) -> Bool {
    let range = KeyRange(from: from, upTo: upTo, descending: descending)
    return try fill(
      &page, limit, walkAll(range, SlotFilter(includeDeleted ? .everything : .live, labelTable)))
  }

  /// Fills a page with the keys that a label query wants, in key order.
  /// - Parameters:
  ///   - query: the query. Whoever asks for no label at all gets all keys.
  ///   - from: as for a page of all keys; so are `upTo`, `descending`, `limit` and `page`.
  ///   - includeFormer: every key that carries or ever carried a label by which the query can
  ///     be answered, deleted ones too; the caller decides which of them match at a time past.
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
    let drivers = try drivers(predicate, former: includeFormer)
    guard !drivers.isEmpty else {
      let filter =
        includeFormer
        ? SlotFilter(.everything, labelTable)
        : SlotFilter(predicate, trustsPostings: false, labelTable)
      return try fill(&page, limit, walkAll(range, filter))
    }
    let filter =
      includeFormer
      ? SlotFilter(.everything, labelTable)
      : SlotFilter(predicate, trustsPostings: query.isDriverEnough, labelTable)
    let image: ImageCursor? =
      if let image = self.image {
        try ImageCursor(image, labels: drivers, former: includeFormer, range)
      } else {
        nil
      }
    let walk = IndexWalk(
      self, active: DeltaCursor(active, labels: drivers, range),
      frozen: frozen.map { DeltaCursor($0, labels: drivers, range) }, image: image,
      filter: filter, descending: descending, meetsOverridden: includeFormer)
    return try fill(&page, limit, walk)
  }

  /// The labels whose lists hold every key that can match; none if only all keys do.
  private func drivers(
    _ predicate: LabelPredicate, former: Bool
  ) throws(IndexError) -> [UInt32] {
    guard !predicate.all.isEmpty else { return predicate.any }
    var best = predicate.all[0]
    var least = Int.max
    for label in predicate.all {
      var size = active.labels.candidateCount(label)
      size += frozen?.labels.candidateCount(label) ?? 0
      if let image, Int(label) < image.labelCount {
        size += try ImagePostings(image, label: label, .current).count
        if former { size += try ImagePostings(image, label: label, .former).count }
      }
      if size < least { (best, least) = (label, size) }
    }
    return [best]
  }

  private func walkAll(
    _ range: KeyRange, _ filter: SlotFilter
  ) throws(IndexError) -> IndexWalk {
    let image: ImageCursor? =
      if let image = self.image { try ImageCursor(all: image, range) } else { nil }
    return IndexWalk(
      self, active: DeltaCursor(all: active, range),
      frozen: frozen.map { DeltaCursor(all: $0, range) }, image: image, filter: filter,
      descending: range.descending)
  }

  private func fill(
    _ page: inout KeyPage, _ limit: Int, _ walk: consuming IndexWalk
  ) throws(IndexError) -> Bool {
    page.removeAll()
    var walk = walk
    let most = max(1, limit)
    return try walk.fill(&page, limit: most, looks: Self.leastLooks + most * Self.looksPerKey)
  }
}
