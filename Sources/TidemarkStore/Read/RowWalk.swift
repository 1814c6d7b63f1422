internal import TidemarkEngine

/// The rows of a query over one view, a page at a time.
package struct RowWalk: ~Copyable {
  /// Keeps the store open.
  package let source: ReadSource
  /// Keeps what the rows name; nil when no key can match.
  private let scan: EngineScan?
  /// Behind the pages that were dropped.
  private var start: ScanPosition
  private var page: [ScanRow] = []
  private var next = 0
  private var sizes: PageSizes

  package init(
    _ source: ReadSource, _ query: EntryQuery, after position: ScanPosition = .start
  ) throws(TidemarkError) {
    self.source = source
    scan = try source.scan(query, after: position)
    start = position
    sizes = PageSizes(limit: query.limit)
  }

  /// The next row; nil at the end.
  package mutating func nextRow() throws(TidemarkError) -> ScanRow? {
    guard let scan else { return nil }
    if next == page.count {
      guard let size = sizes.next() else { return nil }
      start = position
      page = try scan.nextPage(limit: size)
      next = 0
      guard !page.isEmpty else {
        sizes = PageSizes(limit: 0)
        return nil
      }
      sizes.took(page.count)
    }
    defer { next += 1 }
    return page[next]
  }

  /// Behind the last row that was taken.
  package var position: ScanPosition {
    guard let scan, next > 0 else { return start }
    return scan.position(behind: next - 1, of: page)
  }
}
