internal import TidemarkEngine

/// The rows of a query over one view, a page at a time.
package struct RowWalk: ~Copyable {
  /// Keeps the store open.
  package let source: ReadSource
  /// Keeps what the rows name.
  private let view: EngineView
  /// Nil when no key can match.
  private let scan: EngineScan?
  /// Behind the pages that were dropped.
  private var start: ScanPosition
  private var page: [ScanRow] = []
  private var next = 0
  private var sizes: PageSizes
  private var reader: RowReader
  /// So many rows of the page the reader knows already.
  private var prepared = 0
  /// The facts about the rows of the page, once somebody has asked for those of one.
  private var infos: [EntryInfo?] = []

  package init(
    _ source: ReadSource, _ query: EntryQuery, after position: ScanPosition = .start
  ) throws(TidemarkError) {
    self.source = source
    (view, scan) = try source.scan(query, after: position)
    start = position
    sizes = PageSizes(limit: query.limit)
    reader = RowReader(source.engine)
  }

  /// The next row; nil at the end.
  package mutating func nextRow() throws(TidemarkError) -> ScanRow? {
    guard let scan else { return nil }
    if next == page.count {
      guard let size = sizes.next() else { return nil }
      start = position
      page = try scan.nextPage(limit: size)
      next = 0
      prepared = 0
      infos.removeAll(keepingCapacity: true)
      guard !page.isEmpty else {
        sizes = PageSizes(limit: 0)
        return nil
      }
      sizes.took(page.count)
    }
    defer { next += 1 }
    return page[next]
  }

  /// The value of a row.
  package mutating func value(_ row: ScanRow) throws(TidemarkError) -> [UInt8] {
    let position = next - 1
    if position >= prepared {
      let rows = page[position...]
      prepared = position
      prepared += reader.prepare(rows.count) {
        (rows[position + $0].sequence, rows[position + $0].isTouch)
      }
    }
    var value: [UInt8] = []
    try reader.read(row.sequence, isTouch: row.isTouch) { value = [UInt8](copying: $0) }
    return value
  }

  /// All that is known of a row's entry.
  package mutating func info(_ row: ScanRow) throws(TidemarkError) -> EntryInfo {
    let engine = source.engine
    if infos.isEmpty {
      infos = Array(repeating: nil, count: page.count)
      let first = next - 1
      // Where something cannot be read, each row tells of it by itself.
      try? engine.forEachInfo(of: Array(page[first...])) { (index, info) throws(TidemarkError) in
        infos[first + index] = info
      }
    }
    if let info = infos[next - 1] { return info }
    return try engine.info(engine.entry(of: row))
  }

  /// Behind the last row that was taken.
  package var position: ScanPosition {
    guard let scan, next > 0 else { return start }
    return scan.position(behind: next - 1, of: page)
  }
}
