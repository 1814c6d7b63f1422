extension Index {
  /// How many keys a page looks at for each that it may return, before it gives the lock back.
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
    var walk = IndexWalk(
      active: DeltaCursor(all: active, range),
      frozen: frozen.map { DeltaCursor(all: $0, range) }, descending: descending)
    page.removeAll()
    var looks = Self.leastLooks + limit * Self.looksPerKey
    while page.count < limit, looks > 0 {
      guard try walk.next(includeDeleted: includeDeleted, into: &page) else { return true }
      looks -= 1
    }
    return false
  }
}
