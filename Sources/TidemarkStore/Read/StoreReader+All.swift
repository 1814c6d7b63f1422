public import TidemarkEngine

extension StoreReader {
  /// Calls `body` with every entry of a query; some megabytes of them are in memory at a time.
  ///
  /// ```swift
  /// try store.forEach(EntryQuery(prefix: "note/")) { entry in print(entry.key) }
  /// ```
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

  /// All entries of a query at once, for what wants an array.
  ///
  /// ```swift
  /// let newest = try store.all(
  ///   EntryQuery(prefix: "note/", order: .time, descending: true, limit: 20))
  /// ```
  /// They are all in memory: for more than some thousand take ``page(_:limit:after:)``,
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

  /// All entries with a prefix and labels at once; see ``all(_:)``.
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
