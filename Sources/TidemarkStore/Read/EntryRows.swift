public import TidemarkEngine

/// The result of a query over one state of the store. Each entry is read when you ask for it.
///
/// ```swift
/// var rows = try store.entries(prefix: "note/")
/// while let entry = try rows.next() { print(entry.key) }
/// ```
public struct EntryRows: ~Copyable {
  // Rows (key and sequence) come from the index in the query's order; their entries lie in the log
  // in the order of commits or of a compaction. So a page of rows is read at once, in the order of
  // the log, to decode each frame and block only once. Pages begin small: some callers stop early.

  private static let firstRows = 4
  private static let growth = 4
  /// A query with a limit up to this asks for all of its rows as its first page.
  private static let mostRowsOfOnePage = 1_024
  /// About so many bytes of entries without values are held, and about as many of values.
  private static let bytesTogether = 4 << 20

  /// Holds a reference to the store, which closes itself when the last one goes.
  private let source: ReadSource
  /// The scan; compaction keeps what its view shows. Nil when no key can match.
  private let scan: EngineScan?
  private let values: Bool
  /// How many more rows the query's limit allows.
  private var remaining: Int
  /// How many rows the next page has at most.
  private var pageSize: Int
  /// Where the page begins: behind the last row of the page before it.
  private var pageStart: ScanPosition
  /// The page. `entries` and `contents` (values) have an element for each row: nil before it is
  /// read, where reading failed, and once it is returned.
  private var rows: [ScanRow] = []
  private var entries: [Entry?] = []
  private var contents: [[UInt8]?] = []
  /// The rows whose entries could be read, in the order of the log.
  private var logOrder: [Int] = []
  /// How many rows of the page were returned, or have thrown.
  private var returned = 0
  /// The values of all rows before this one were read, or reading them has failed.
  private var valuesEnd = 0
  private var reader: RowReader

  init(_ source: ReadSource, _ query: EntryQuery, after cursor: PageCursor?) throws(TidemarkError) {
    let start = try PageCursor.position(cursor, of: query)
    scan = try source.scan(query, after: start)
    self.source = source
    pageStart = start
    values = query.values
    remaining = max(0, query.limit ?? .max)
    pageSize = remaining <= Self.mostRowsOfOnePage ? remaining : Self.firstRows
    reader = RowReader(source.engine.reader)
  }

  /// Reads the next entry of the query; nil at the end.
  /// - Throws: `damaged` when it cannot be read; the next call goes on with the entry after it.
  public mutating func next() throws(TidemarkError) -> Entry? {
    // The page is in memory: without this its entries would be served after the store was closed.
    try source.engine.reader.checkReadable()
    if returned == rows.count { try loadPage() }
    guard returned < rows.count else { return nil }
    if values, returned == valuesEnd { readValues() }
    defer { returned += 1 }
    let row = rows[returned]
    guard var entry = entries[returned].take() else {
      // Reading the page failed here: read alone, the entry throws its own error, or is found.
      return try source.entry(source.engine.reader.entries.entry(of: row), values: values)
    }
    if let content = contents[returned].take() {
      entry.value = content
    } else if values {
      try reader.read(row.sequence, isTouch: row.isTouch) { entry.value = [UInt8](copying: $0) }
    }
    return entry
  }

  /// The cursor with which a later query goes on after the last entry that was returned, or that
  /// could not be read. Nil before the first entry, unless the query itself began at a cursor.
  public var cursor: PageCursor? { PageCursor(behind: position) }

  private var position: ScanPosition {
    guard let scan, returned > 0 else { return pageStart }
    return scan.position(behind: returned - 1, of: rows)
  }

  /// Reads the rows of the next page, and their entries without values.
  private mutating func loadPage() throws(TidemarkError) {
    pageStart = position
    rows = []
    (returned, valuesEnd) = (0, 0)
    guard let scan else { return }
    rows = try scan.nextPage(upTo: min(pageSize, remaining))
    remaining -= rows.count
    entries = Array(repeating: nil, count: rows.count)
    contents = Array(repeating: nil, count: rows.count)
    logOrder.removeAll(keepingCapacity: true)
    var bytes = 1
    // An error ends this early; `next()` reads the rows that are left one by one.
    try? source.engine.reader.entries.forEachInfo(of: rows) { (index, info) throws(TidemarkError) in
      entries[index] = Entry(
        key: rows[index].key, value: [], info: info,
        created: try source.created(info, walks: false))
      logOrder.append(index)
      bytes += 256 + info.labels.reduce(0) { $0 + $1.count + 32 }
    }
    // As many rows as fit if they are like these; labels may take much memory.
    let most = max(Self.firstRows, Self.bytesTogether * max(1, rows.count) / bytes)
    pageSize = min(pageSize * Self.growth, most, LogEntries.mostTogether)
  }

  /// Reads the values of the next row, however long, and of those behind it until about
  /// `bytesTogether` are held.
  private mutating func readValues() {
    var bytes = 0
    while valuesEnd < rows.count, valuesEnd == returned || bytes < Self.bytesTogether {
      bytes += entries[valuesEnd]?.valueLength ?? 0
      valuesEnd += 1
    }
    let order = logOrder.filter { (returned..<valuesEnd).contains($0) }
    var prepared = 0
    for (number, index) in order.enumerated() {
      if number == prepared {
        prepared += reader.prepare(order.count - number) {
          let row = rows[order[number + $0]]
          return (row.sequence, row.isTouch)
        }
      }
      let row = rows[index]
      // Where this fails, `next()` reads the value alone and throws.
      try? reader.read(row.sequence, isTouch: row.isTouch) {
        contents[index] = [UInt8](copying: $0)
      }
    }
  }
}

/// The kept versions of one key, newest first, deletes and touches among them; see
/// ``StoreReader/versions(ofKey:values:)``.
public struct VersionRows: ~Copyable {
  private let source: ReadSource
  /// Held so that compaction keeps what it shows; some older versions may still go meanwhile.
  private let view: EngineView
  private var walk: VersionWalk
  private let values: Bool

  init(_ source: ReadSource, _ view: EngineView, _ walk: VersionWalk, values: Bool) {
    (self.source, self.view) = (source, view)
    (self.walk, self.values) = (walk, values)
  }

  /// Reads the next older version of the key; nil at the end.
  /// - Throws: `damaged` when it cannot be read.
  public mutating func next() throws(TidemarkError) -> Entry? {
    while let version = try walk.next() {
      // A view by own time leaves out versions with later times of their own.
      guard try view.shows(version) else { continue }
      return try source.entry(version, values: values)
    }
    return nil
  }
}
