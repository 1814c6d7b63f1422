internal import TidemarkEngine

/// The rows of an index in a range of terms.
struct RowScan: ~Copyable {
  private static let rowsPerPage = 256

  private let scan: EngineScan?
  private var page: [ScanRow] = []
  private var next = 0
  /// Small at first, since a few rows are mostly enough.
  private var size = 32

  /// - Parameters:
  ///   - number: the index's number.
  ///   - range: the terms.
  ///   - after: the row behind which to begin, in the order of the walk.
  ///   - reversed: from the last to the first.
  init(
    _ engine: Engine, _ number: UInt32, _ range: TermRange, after: [UInt8]? = nil,
    reversed: Bool = false, view: EngineView? = nil
  ) throws(TidemarkError) {
    let prefix = IndexKeys.rows(ofIndex: number)
    var query = ScanQuery(prefix: prefix)
    query.from = .including(prefix + range.lower)
    if let upper = range.upper { query.upTo = .excluding(prefix + upper) }
    query.descending = reversed
    if range.isEmpty {
      scan = nil
      return
    }
    let pinned = if let view { view } else { try engine.reader.view() }
    scan = EngineScan(engine.reader, query, view: pinned, after: after.map { .key($0) } ?? .start)
  }

  /// The next row; nil at the end.
  mutating func nextRow() throws(TidemarkError) -> (term: ArraySlice<UInt8>, id: ArraySlice<UInt8>)?
  {
    guard let scan else { return nil }
    if next == page.count {
      page = try scan.nextPage(limit: size)
      next = 0
      size = Self.rowsPerPage
      if page.isEmpty { return nil }
    }
    defer { next += 1 }
    return try IndexKeys.parts(ofRow: page[next].key)
  }

  /// Calls `body` with the id of every row that is left, which is lent for the call.
  consuming func forEachID(_ body: (RawSpan) -> Void) throws(TidemarkError) {
    guard let scan else { return }
    for row in page[next...] { body(try IndexKeys.id(ofRow: row.key.rawSpan)) }
    var pages = PageSizes(limit: nil)
    while let size = pages.next() {
      let page = try scan.nextRows(limit: size)
      if page.isEmpty { return }
      for number in 0..<page.count { body(try IndexKeys.id(ofRow: page.key(at: number))) }
    }
  }

  /// How many rows there are, counted so far.
  consuming func count(upTo most: Int) throws(TidemarkError) -> Int {
    var count = 0
    try scan?.forEach(limit: most) { _ in count += 1 }
    return count
  }
}
