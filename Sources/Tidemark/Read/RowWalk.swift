internal import TidemarkEngine

/// The rows of a query over one view, a page at a time.
struct RowWalk: ~Copyable {
  /// Pages grow from the first to the last of these, so that short scans stay cheap.
  private static let firstPage = 32
  private static let largestPage = 1024

  /// Keeps the store open.
  let source: ReadSource
  /// Keeps what the rows name.
  private let view: EngineView
  /// Nil when no key can match.
  private let scan: EngineScan?
  private var page: [ScanRow] = []
  private var next = 0
  private var pageSize = RowWalk.firstPage
  private var remaining: Int

  init(
    _ source: ReadSource, _ query: EntryQuery, after position: ScanPosition = .start
  ) throws(TidemarkError) {
    self.source = source
    let view = try source.pinned()
    self.view = view
    let engine = source.engine
    scan = query.scanQuery.map { EngineScan(engine, $0, view: view, after: position) }
    remaining = max(0, query.limit ?? .max)
  }

  /// The next row; nil at the end.
  mutating func nextRow() throws(TidemarkError) -> ScanRow? {
    guard remaining > 0, let scan else { return nil }
    if next == page.count {
      page = try scan.nextPage(limit: min(pageSize, remaining))
      next = 0
      pageSize = min(pageSize * 2, Self.largestPage)
      if page.isEmpty {
        remaining = 0
        return nil
      }
    }
    defer {
      next += 1
      remaining -= 1
    }
    return page[next]
  }

  /// The entry of a row.
  func entry(_ row: ScanRow, values: Bool) throws(TidemarkError) -> Entry {
    try source.entry(try source.engine.entry(at: row.sequence), values: values)
  }

  /// Behind the last row of the last page.
  var position: ScanPosition { scan?.position ?? .start }
}
