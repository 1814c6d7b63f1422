public import TidemarkEngine

extension StoreReader {
  /// The entries of a query.
  /// - Parameters:
  ///   - query: which entries.
  ///   - cursor: where an earlier call ended, by ``Rows/cursor`` or ``Page/next``; nil for the
  ///     beginning.
  /// - Throws: `invalidArgument` when the cursor belongs to a query of another order.
  public func entries(
    _ query: EntryQuery, after cursor: PageCursor? = nil
  ) throws(TidemarkError) -> Rows {
    try Rows(source, query, after: cursor)
  }

  /// Entries by prefix and labels.
  ///
  /// ```swift
  /// var rows = try store.entries(prefix: "note/", labels: .all("inbox"), descending: true)
  /// while let entry = try rows.next() { print(entry.key, entry.valueLength) }
  /// ```
  /// - Parameters:
  ///   - prefix: only keys that begin with this: text, bytes, a ``Key``.
  ///   - labels: only entries with these labels.
  ///   - order: by what entries are ordered.
  ///   - descending: whether the largest comes first.
  ///   - limit: most entries to return.
  public func entries(
    prefix: some BytesConvertible = "", labels: LabelFilter = .everything,
    order: EntryQuery.Order = .key,
    descending: Bool = false, limit: Int? = nil
  ) throws(TidemarkError) -> Rows {
    try entries(
      EntryQuery(prefix: prefix, labels: labels, order: order, descending: descending, limit: limit)
    )
  }

  /// The keys of a query, without reading anything else.
  /// - Parameters:
  ///   - query: which keys.
  ///   - cursor: where an earlier call ended; nil for the beginning.
  /// - Throws: `invalidArgument` when the cursor belongs to a query of another order.
  public func keys(
    _ query: EntryQuery, after cursor: PageCursor? = nil
  ) throws(TidemarkError) -> KeyRows {
    try KeyRows(source, query, after: cursor)
  }

  /// Keys by prefix and labels, without reading anything else.
  public func keys(
    prefix: some BytesConvertible = "", labels: LabelFilter = .everything,
    order: EntryQuery.Order = .key,
    descending: Bool = false, limit: Int? = nil
  ) throws(TidemarkError) -> KeyRows {
    try keys(
      EntryQuery(prefix: prefix, labels: labels, order: order, descending: descending, limit: limit)
    )
  }

  /// Calls `body` with key and value of every entry of a query, without copies.
  ///
  /// ```swift
  /// var bytes = 0
  /// try store.scan(EntryQuery(prefix: "note/")) { key, value in bytes += value.byteCount }
  /// ```
  @inlinable
  public func scan(
    _ query: EntryQuery = EntryQuery(), _ body: (_ key: RawSpan, _ value: RawSpan) -> Void
  ) throws(TidemarkError) {
    try source.scan(query) { key, value in
      body(key, value)
      return true
    }
  }

  /// Calls `body`, which may throw, with key and value of every entry of a query, without copies.
  /// - Throws: what `body` throws, which ends the scan; else `TidemarkError`.
  @inlinable
  public func scan<E: Error>(
    _ query: EntryQuery = EntryQuery(), _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> Void
  ) throws {
    var failure: E?
    try source.scan(query) { key, value in
      do throws(E) { try body(key, value) } catch { failure = error }
      return failure == nil
    }
    if let failure { throw failure }
  }

  /// How many entries a query has, or how many keys there are.
  public func count(_ query: EntryQuery = EntryQuery()) throws(TidemarkError) -> Int {
    let source = source
    if query.isUnrestricted, source.view == nil {
      return min(try source.engine.reader.countKeys(), max(0, query.limit ?? .max))
    }
    var query = query
    // Counting needs no order, and that of the key needs no sorting.
    query.order = .key
    query.values = false
    var count = 0
    try source.scan(query) { _, _ in
      count += 1
      return true
    }
    return count
  }

  /// All labels in byte order, with how many keys carry each.
  public func labels() throws(TidemarkError) -> [LabelCount] {
    let source = source
    if source.view == nil {
      return try source.engine.reader.labelCounts().map {
        LabelCount(label: EntryLabel($0.label), count: $0.count)
      }
    }
    var counts: [EntryLabel: Int] = [:]
    var rows = try entries(EntryQuery(values: false))
    while let entry = try rows.next() {
      for label in entry.labels { counts[label, default: 0] += 1 }
    }
    return counts.map { LabelCount(label: $0.key, count: $0.value) }
      .sorted { $0.label < $1.label }
  }
}
