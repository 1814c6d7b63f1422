public import TidemarkEngine

/// Keys of a query, read when they are asked for; values and all else stay untouched.
///
/// ```swift
/// var keys = try store.keys(prefix: "note/")
/// while let key = try keys.next() { print(key) }
/// ```
public struct KeyRows: ~Copyable {
  /// Keeps the store open.
  private let source: ReadSource
  /// Keeps what the rows name; nil when no key can match.
  private let scan: EngineScan?
  /// Behind the pages that were dropped.
  private var start: ScanPosition
  private var page: [ScanRow] = []
  /// How many rows of the page were taken.
  private var taken = 0
  private var sizes: PageSizes
  /// The sequence of the newest entry of the key that was returned last; 0 before the first.
  public private(set) var sequence: UInt64 = 0

  init(
    _ source: ReadSource, _ query: EntryQuery, after cursor: PageCursor?
  ) throws(TidemarkError) {
    let start = try PageCursor.position(cursor, of: query)
    scan = try source.scan(query, after: start)
    self.source = source
    self.start = start
    sizes = PageSizes(limit: query.limit)
  }

  /// The next key; nil at the end.
  public mutating func next() throws(TidemarkError) -> Key? {
    guard let scan else { return nil }
    if taken == page.count {
      guard let size = sizes.next() else { return nil }
      start = position
      page = try scan.nextPage(limit: size)
      taken = 0
      guard !page.isEmpty else {
        sizes = PageSizes(limit: 0)
        return nil
      }
      sizes.took(page.count)
    }
    defer { taken += 1 }
    sequence = page[taken].sequence
    return Key(page[taken].key)
  }

  private var position: ScanPosition {
    guard let scan, taken > 0 else { return start }
    return scan.position(behind: taken - 1, of: page)
  }

  /// Where a later call goes on behind the key that was returned last; nil before the first of a
  /// query that began at its beginning.
  public var cursor: PageCursor? { PageCursor(behind: position) }
}
