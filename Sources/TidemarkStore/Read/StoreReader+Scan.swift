public import TidemarkEngine

extension StoreReader {
  /// Returns the entries of a query, to read one after the other.
  /// - Parameters:
  ///   - query: which entries.
  ///   - cursor: where an earlier call ended, by ``EntryRows/cursor`` or ``EntryPage/next``; nil
  ///     for the beginning.
  /// - Throws: `invalidArgument` when the cursor belongs to a query of another order.
  public func entries(
    _ query: EntryQuery, after cursor: PageCursor? = nil
  ) throws(TidemarkError) -> EntryRows { try EntryRows(source, query, after: cursor) }

  /// Returns the entries whose keys have a prefix and that carry labels, to read one after the
  /// other.
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
    order: EntryQuery.Order = .key, descending: Bool = false, limit: Int? = nil
  ) throws(TidemarkError) -> EntryRows {
    try entries(
      EntryQuery(prefix: prefix, labels: labels, order: order, descending: descending, limit: limit)
    )
  }

  /// Returns the keys of a query; values are not read.
  /// - Parameters:
  ///   - query: which keys.
  ///   - cursor: where an earlier call ended; nil for the beginning.
  /// - Throws: `invalidArgument` when the cursor belongs to a query of another order.
  public func keys(
    _ query: EntryQuery, after cursor: PageCursor? = nil
  ) throws(TidemarkError) -> KeyRows { try KeyRows(source, query, after: cursor) }

  /// Returns the keys that have a prefix and whose entries carry labels; values are not read.
  public func keys(
    prefix: some BytesConvertible = "", labels: LabelFilter = .everything,
    order: EntryQuery.Order = .key, descending: Bool = false, limit: Int? = nil
  ) throws(TidemarkError) -> KeyRows {
    try keys(
      EntryQuery(prefix: prefix, labels: labels, order: order, descending: descending, limit: limit)
    )
  }

  /// Calls `body` with key and value of every entry of a query, without copies; with `values` false
  /// in the query the value is empty.
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
    // A scan throws `TidemarkError` alone, so what `body` throws is thrown once the scan has ended.
    try source.scan(query) { key, value in
      do throws(E) { try body(key, value) } catch { failure = error }
      return failure == nil
    }
    if let failure { throw failure }
  }

  /// How many entries a query finds; without a query, how many keys there are.
  public func count(_ query: EntryQuery = EntryQuery()) throws(TidemarkError) -> Int {
    let source = source
    if query.isUnrestricted, source.view == nil {
      // The index counts its keys; a view of the past has to scan them.
      return min(try source.engine.reader.countKeys(), max(0, query.limit ?? .max))
    }
    var query = query
    // The count is the same in any order, and only the order of keys needs no sorting.
    query.order = .key
    query.values = false
    var count = 0
    try source.scan(query) { _, _ in
      count += 1
      return true
    }
    return count
  }

  /// Reads all labels of the store in byte order, each with the number of keys that carry it.
  public func labels() throws(TidemarkError) -> [LabelCount] {
    let source = source
    if source.view == nil {
      return try source.engine.reader.labelCounts()
        .map { LabelCount(label: EntryLabel($0.label), count: $0.count) }
    }
    // The index has only the counts of the newest state: a view reads all its entries.
    var counts: [EntryLabel: Int] = [:]
    try forEach(EntryQuery(values: false)) { entry in
      for label in entry.labels { counts[label, default: 0] += 1 }
    }
    return counts.map { LabelCount(label: $0.key, count: $0.value) }
      .sorted { $0.label < $1.label }
  }

  /// Calls `body` with every entry of a query; some megabytes of them are in memory at a time.
  public func forEach(
    _ query: EntryQuery = EntryQuery(), _ body: (Entry) -> Void
  ) throws(TidemarkError) {
    var rows = try entries(query)
    while let entry = try rows.next() { body(entry) }
  }

  /// Calls `body`, which may throw, with every entry of a query; some megabytes of them are in
  /// memory at a time.
  /// - Throws: what `body` throws, which ends the loop; else `TidemarkError`.
  public func forEach<E: Error>(
    _ query: EntryQuery = EntryQuery(), _ body: (Entry) throws(E) -> Void
  ) throws {
    var rows = try entries(query)
    while let entry = try rows.next() { try body(entry) }
  }

  /// Reads all entries of a query into one array.
  ///
  /// ```swift
  /// let newest = try store.all(
  ///   EntryQuery(prefix: "note/", order: .time, descending: true, limit: 20))
  /// ```
  /// They are all in memory: for more than some thousand use ``page(_:limit:after:)``,
  /// ``forEach(_:_:)-(_,(Entry)->Void)`` or ``entries(_:after:)``.
  /// - Throws: `limitExceeded` when keys and values are more than 256 MiB.
  public func all(_ query: EntryQuery) throws(TidemarkError) -> [Entry] {
    var rows = try entries(query)
    var entries: [Entry] = []
    var bytes = 0
    while let entry = try rows.next() {
      bytes += entry.key.bytes.count + entry.value.count
      guard bytes <= Limits.gatheredBytes else {
        throw TidemarkError(
          .limitExceeded,
          "the entries have more than \(Limits.gatheredBytes >> 20) MiB; read them in pages")
      }
      entries.append(entry)
    }
    return entries
  }

  /// Reads all entries whose keys have a prefix and that carry labels into one array.
  ///
  /// For more than some thousand use ``entries(_:after:)``; see ``all(_:)``.
  /// - Parameters:
  ///   - prefix: only keys that begin with this: text, bytes, a ``Key``.
  ///   - labels: only entries with these labels.
  ///   - order: by what entries are ordered.
  ///   - descending: whether the largest comes first.
  ///   - limit: most entries to return.
  public func all(
    prefix: some BytesConvertible = "", labels: LabelFilter = .everything,
    order: EntryQuery.Order = .key, descending: Bool = false, limit: Int? = nil
  ) throws(TidemarkError) -> [Entry] {
    try all(
      EntryQuery(prefix: prefix, labels: labels, order: order, descending: descending, limit: limit)
    )
  }
}
