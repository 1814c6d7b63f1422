public import TidemarkEngine

/// A list that a server gives in pages, and that it may give anew at any time.
///
/// A new first page begins a new generation, and makes all pages of the older ones void in the same
/// commit. Generations are numbered by the log, so that the newest is the one with the highest
/// number, also after a crash.
///
/// ```swift
/// let inbox = cache.list("inbox")
/// let reader = try await inbox.begin(try await server.page(0))
/// while let page = try await server.page(reader.pages) { try await reader.put(page) }
/// ```
/// The pages are entries of the cache, `inbox/` with the numbers of generation and page in
/// hexadecimal, and make room as others do.
public struct PagedList<Page: Sendable>: Sendable {
  let cache: Cache<Page>
  /// The name of the list, which its keys begin with.
  public let name: Key

  /// Begins a new generation with its first page; all older pages are void.
  /// - Parameters:
  ///   - page: the first page; a cursor of the server's for the next one belongs into it.
  ///   - maxAge: for how long it is valid; nil for the cache's policy.
  /// - Returns: a reader of the new generation.
  /// - Throws: what ``Cache/put(_:_:labels:hash:maxAge:attachment:durability:)`` throws.
  @discardableResult
  public func begin(
    _ page: Page, maxAge: Duration? = nil
  ) async throws(TidemarkError) -> PageReader<Page> {
    // Two that begin at a time get two numbers at least where one has seen the other's page.
    let newest = try newest() ?? 0
    let generation = max(newest, cache.store.lastSequence) + 1
    var batch = try cache.batch(key(generation, 0), page, [], nil, maxAge)
    var rows = try cache.store.keys(EntryQuery(prefix: cache.full(prefix), values: false))
    let first = cache.full(key(generation, 0))
    while let key = try rows.next() {
      if key.bytes == first { continue }
      try batch.operations.addEviction(of: key.bytes.rawSpan, at: 0)
    }
    _ = try await cache.store.commit(batch, nil)
    return try PageReader(self, generation)
  }

  /// A reader of the newest generation, which it sees to its end; nil where there is none.
  public func reader() throws(TidemarkError) -> PageReader<Page>? {
    guard let newest = try newest() else { return nil }
    let reader = try PageReader(self, newest)
    // Without its first page it is what is left of a generation.
    return try reader.page(0) == nil ? nil : reader
  }

  /// The number of the newest generation; nil where there is none.
  func newest() throws(TidemarkError) -> UInt64? {
    let query = EntryQuery(prefix: cache.full(prefix), descending: true, limit: 1, values: false)
    var rows = try cache.store.keys(query)
    guard let key = try rows.next() else { return nil }
    let rest = key.bytes.dropFirst(cache.region.prefix.count + prefix.bytes.count)
    return UInt64(String(decoding: rest.prefix(16), as: UTF8.self), radix: 16)
  }

  private var prefix: Key { Key(name.bytes + [UInt8(ascii: "/")]) }

  /// The key of a page, without the cache's prefix: numbers have as many digits each, so that byte
  /// order is theirs.
  func key(_ generation: UInt64, _ page: Int) -> Key {
    Key(
      prefix.bytes + Self.digits(generation, 16) + [UInt8(ascii: "/")]
        + Self.digits(UInt64(page), 8))
  }

  static func digits(_ number: UInt64, _ count: Int) -> [UInt8] {
    let text = Array(String(number, radix: 16).utf8)
    return [UInt8](repeating: UInt8(ascii: "0"), count: max(0, count - text.count)) + text
  }
}

extension Cache {
  /// A list that a server gives in pages, each of which is a value of this cache.
  /// - Parameter name: of the list; none may begin with another one's name and a slash.
  public func list(_ name: some BytesConvertible) -> PagedList<Value> {
    PagedList(cache: self, name: Key(name))
  }
}
