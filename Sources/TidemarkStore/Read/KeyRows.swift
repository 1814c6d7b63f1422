public import TidemarkEngine

/// Keys of a query, read from the index page by page when they are asked for, without values.
///
/// ```swift
/// var keys = try store.keys(prefix: "note/")
/// while let key = try keys.next() { print(key) }
/// ```
public struct KeyRows: ~Copyable {
  /// Holds a reference to the store, which closes itself when the last one goes.
  private let source: ReadSource
  /// The scan and its view, which shows one state throughout; nil when no key can match.
  private let scan: EngineScan?
  /// Where `page` begins: behind the last row of the page before it.
  private var pageStart: ScanPosition
  private var page: [ScanRow] = []
  /// How many rows of the page were returned.
  private var returned = 0
  /// The sizes of pages: they grow, and together do not exceed the query's limit.
  private var sizes: PageSizes
  /// The sequence of the newest entry of the key that was returned last; 0 before the first.
  public private(set) var sequence: UInt64 = 0

  init(_ source: ReadSource, _ query: EntryQuery, after cursor: PageCursor?) throws(TidemarkError) {
    let start = try PageCursor.position(cursor, of: query)
    scan = try source.scan(query, after: start)
    self.source = source
    pageStart = start
    sizes = PageSizes(limit: query.limit)
  }

  /// Reads the next key of the query; nil at the end.
  public mutating func next() throws(TidemarkError) -> Key? {
    guard let scan else { return nil }
    // The keys of a page that was read before must not outlive a close or a suspension.
    try source.engine.reader.checkReadable()
    if returned == page.count {
      guard let size = sizes.next() else { return nil }
      pageStart = position
      page = try scan.nextPage(limit: size)
      returned = 0
      guard !page.isEmpty else {
        // The end, for later calls as well.
        sizes = PageSizes(limit: 0)
        return nil
      }
      sizes.took(page.count)
    }
    defer { returned += 1 }
    sequence = page[returned].sequence
    return Key(page[returned].key)
  }

  private var position: ScanPosition {
    guard let scan, returned > 0 else { return pageStart }
    return scan.position(behind: returned - 1, of: page)
  }

  /// The cursor with which a later query goes on after the last key that was returned. Nil before
  /// the first key, unless the query itself began at a cursor.
  public var cursor: PageCursor? { PageCursor(behind: position) }
}
