public import TidemarkEngine

/// Entries of a query, read when they are asked for. They show one state of the store, whatever
/// is written meanwhile.
///
/// ```swift
/// var rows = try store.entries(prefix: "note/")
/// while let entry = try rows.next() { print(entry.key) }
/// ```
public struct Rows: ~Copyable {
  // Rows come in the order of keys, and entries lie in the order in which they were written, or in
  // which compaction has put them. So some rows are taken together and their entries read in the
  // order of the log, where each frame and each block is decoded once for all that is wanted of it:
  // few at first, for who stops early, then ever more.

  private static let first = 4
  private static let growth = 4
  /// So many rows that were asked for are read at once.
  private static let most = 1_024
  /// About so many bytes of values, and of all else, are held.
  private static let bytesTogether = 4 << 20

  /// Keeps the store open.
  private let source: ReadSource
  /// Keeps what the rows name; nil when no key can match.
  private let scan: EngineScan?
  private let values: Bool
  private var left: Int
  private var size: Int
  /// Behind the rows that were dropped.
  private var start: ScanPosition
  private var rows: [ScanRow] = []
  /// By row. Where something cannot be read, each row tells of it by itself.
  private var entries: [Entry?] = []
  private var contents: [[UInt8]?] = []
  /// The rows whose entries could be read, in the order of the log.
  private var order: [Int] = []
  /// How many of the rows were taken.
  private var taken = 0
  /// The values of the rows before this one were read.
  private var valued = 0
  private var reader: RowReader

  init(
    _ source: ReadSource, _ query: EntryQuery, after cursor: PageCursor?
  ) throws(TidemarkError) {
    let start = try PageCursor.position(cursor, of: query)
    scan = try source.scan(query, after: start)
    self.source = source
    self.start = start
    values = query.values
    left = max(0, query.limit ?? .max)
    size = left <= Self.most ? left : Self.first
    reader = RowReader(source.engine.reader)
  }

  /// The next entry; nil at the end.
  /// - Throws: `damaged` when it cannot be read.
  public mutating func next() throws(TidemarkError) -> Entry? {
    // Entries at hand would be served beyond the end of the store's being open.
    try source.engine.reader.checkReadable()
    if taken == rows.count { try load() }
    guard taken < rows.count else { return nil }
    if values, taken == valued { readValues() }
    defer { taken += 1 }
    let row = rows[taken]
    guard var entry = entries[taken].take() else {
      return try source.entry(source.engine.reader.entries.entry(of: row), values: values)
    }
    if let content = contents[taken].take() {
      entry.value = content
    } else if values {
      try reader.read(row.sequence, isTouch: row.isTouch) { entry.value = [UInt8](copying: $0) }
    }
    return entry
  }

  /// Where a later call goes on behind the entry that was returned last, or could not be read; nil
  /// before the first of a query that began at its beginning.
  public var cursor: PageCursor? { PageCursor(behind: position) }

  private var position: ScanPosition {
    guard let scan, taken > 0 else { return start }
    return scan.position(behind: taken - 1, of: rows)
  }

  private mutating func load() throws(TidemarkError) {
    start = position
    rows = []
    (taken, valued) = (0, 0)
    guard let scan else { return }
    rows = try scan.nextPage(upTo: min(size, left))
    left -= rows.count
    entries = Array(repeating: nil, count: rows.count)
    contents = Array(repeating: nil, count: rows.count)
    order.removeAll(keepingCapacity: true)
    var bytes = 1
    try? source.engine.reader.entries.forEachInfo(of: rows) { (index, info) throws(TidemarkError) in
      entries[index] = Entry(
        key: rows[index].key, value: [], info: info,
        created: try source.created(info, walks: false))
      order.append(index)
      bytes += 256 + info.labels.reduce(0) { $0 + $1.count + 32 }
    }
    // Labels take memory, too.
    let most = max(Self.first, Self.bytesTogether * max(1, rows.count) / bytes)
    size = min(size * Self.growth, most, LogEntries.mostTogether)
  }

  /// Reads the values of the next rows, as many as fit.
  private mutating func readValues() {
    var bytes = 0
    while valued < rows.count, valued == taken || bytes < Self.bytesTogether {
      bytes += entries[valued]?.valueLength ?? 0
      valued += 1
    }
    let order = order.filter { (taken..<valued).contains($0) }
    var prepared = 0
    for (number, index) in order.enumerated() {
      if number == prepared {
        prepared += reader.prepare(order.count - number) {
          let row = rows[order[number + $0]]
          return (row.sequence, row.isTouch)
        }
      }
      let row = rows[index]
      try? reader.read(row.sequence, isTouch: row.isTouch) {
        contents[index] = [UInt8](copying: $0)
      }
    }
  }
}

/// Versions of a key, newest first, deletes and touches among them.
public struct VersionRows: ~Copyable {
  private let source: ReadSource
  private let view: EngineView
  private var walk: VersionWalk
  private let values: Bool

  init(_ source: ReadSource, _ view: EngineView, _ walk: VersionWalk, values: Bool) {
    self.source = source
    self.view = view
    self.walk = walk
    self.values = values
  }

  /// The next older version; nil at the end.
  /// - Throws: `damaged` when it cannot be read.
  public mutating func next() throws(TidemarkError) -> Entry? {
    while let version = try walk.next() {
      guard try view.shows(version) else { continue }
      return try source.entry(version, values: values)
    }
    return nil
  }
}
