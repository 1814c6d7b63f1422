/// Reads the newest items of a list through a cache of intervals; see ``IntervalPaging``.
///
/// ```swift
/// let cache = try store.cache(of: [Message].self, prefix: "chat/7/", policy: .manifest)
/// let reader = IntervalReader(cache, paging: IntervalPaging(size: 20), id: \.id) { ids in
///   try await server.messages(in: ids)
/// }
/// let page = try await reader.newest(20, through: 4_711)
/// let older = try await reader.newest(20, through: page.last.map { $0.id - 1 } ?? 0)
/// ```
/// An interval that is not full yet is kept with an age of zero: it is asked for again, and serves
/// where that fails.
public struct IntervalReader<Element: Sendable>: Sendable {
  private let cache: Cache<[Element]>
  /// The cut of the ids.
  public let paging: IntervalPaging
  private let id: @Sendable (Element) -> Int64
  private let fetch: @Sendable (Range<Int64>) async throws -> [Element]

  /// A reader.
  /// - Parameters:
  ///   - cache: keeps the intervals, by the first of their ids.
  ///   - paging: the cut of the ids.
  ///   - id: the id of an item.
  ///   - fetch: asks for the items whose ids lie in an interval, in any order; ids may be missing.
  public init(
    _ cache: Cache<[Element]>, paging: IntervalPaging,
    id: @escaping @Sendable (Element) -> Int64,
    fetch: @escaping @Sendable (Range<Int64>) async throws -> [Element]
  ) {
    self.cache = cache
    self.paging = paging
    self.id = id
    self.fetch = fetch
  }

  /// The newest items up to an id, the newest first.
  ///
  /// Where ids are missing it goes on with older intervals until there are enough items.
  /// - Parameters:
  ///   - count: how many are wanted.
  ///   - last: the highest id that is wanted.
  ///   - newest: the highest id that was given out, as far as anybody knows; nil for `last`. An
  ///     interval that ends behind it is asked for again.
  ///   - lowest: the lowest id of the list.
  ///   - mostIntervals: no more intervals than this are read.
  /// - Throws: what `fetch` throws where an interval is not here; what reading and writing the
  ///   store throws.
  public func newest(
    _ count: Int, through last: Int64, newest: Int64? = nil, from lowest: Int64 = 0,
    mostIntervals: Int = 64
  ) async throws -> [Element] {
    var found: [Element] = []
    guard count > 0, last >= lowest else { return found }
    let newest = max(last, newest ?? last)
    var interval = paging.interval(containing: last)
    for _ in 0..<max(1, mostIntervals) {
      let items = try await items(in: interval, newest: newest)
      found += items.filter { id($0) <= last && id($0) >= lowest }
        .sorted { id($0) > id($1) }
      guard found.count < count, interval.lowerBound > lowest else { break }
      interval = paging.interval(containing: interval.lowerBound - 1)
    }
    return Array(found.prefix(count))
  }

  private func items(in interval: Range<Int64>, newest: Int64) async throws -> [Element] {
    let isClosed = paging.isClosed(interval, newest: newest)
    let source = CacheSource<[Element]> { [fetch] _ in
      .value(try await fetch(interval), maxAge: isClosed ? Self.forEver : .zero)
    }
    let read = try await cache.read(Self.key(interval), .cacheFirst, from: source)
    if let value = read.value { return value }
    if let error = read.error { throw error }
    return []
  }

  /// A hundred years.
  private static var forEver: Duration { .seconds(100 * 365 * 86_400) }

  /// The key of an interval: its first id, so that byte order is that of ids.
  private static func key(_ interval: Range<Int64>) -> Key {
    let number = UInt64(bitPattern: interval.lowerBound) ^ (1 << 63)
    return Key(PagedList<[Element]>.digits(number, 16))
  }
}
