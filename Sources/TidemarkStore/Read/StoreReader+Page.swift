public import TidemarkEngine

extension StoreReader {
  /// A page of a query.
  ///
  /// ```swift
  /// var page = try store.page(EntryQuery(prefix: "note/"), limit: 20)
  /// while let next = page.next {
  ///   page = try store.page(EntryQuery(prefix: "note/"), limit: 20, after: next)
  /// }
  /// ```
  /// - Parameters:
  ///   - query: which entries; its own limit does not count.
  ///   - limit: most entries of the page, at least 1.
  ///   - cursor: where an earlier page of the query ended; nil for the first.
  /// - Throws: `invalidArgument` when the cursor belongs to a query of another order.
  public func page(
    _ query: EntryQuery = EntryQuery(), limit: Int, after cursor: PageCursor? = nil
  ) throws(TidemarkError) -> Page {
    guard limit > 0 else {
      throw TidemarkError(.invalidArgument, "a page of \(limit) entries; ask for at least 1")
    }
    var query = query
    query.limit = limit
    var walk = try EntryWalk(source, query, after: PageCursor.position(cursor, of: query))
    var entries: [Entry] = []
    while let entry = try walk.nextEntry() { entries.append(entry) }
    let isFull = entries.count == limit
    return Page(entries: entries, next: isFull ? PageCursor(walk.position) : nil)
  }
}
