internal import TidemarkEngine

extension Store {
  /// The value of a key, as it changes: at once, then whenever it is another one.
  ///
  /// ```swift
  /// for try await value in store.values(forKey: "settings") { show(value) }
  /// ```
  /// - Parameters:
  ///   - key: the key.
  ///   - interval: the least time between two values.
  public func values(
    forKey key: some BytesConvertible, minimumInterval interval: Duration = .zero
  ) -> Observed<[UInt8]?> {
    let key = Key(key)
    return Observed(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(key: key.bytes)) { try self.value(forKey: key) }
    }
  }

  /// The entries of a query, as they change: all of them at once, then whenever one is another.
  ///
  /// Each time the query is asked anew; ``ObjectCollection/observe(_:sort:limit:minimumInterval:)``
  /// looks only at what has changed.
  /// - Parameters:
  ///   - query: which entries.
  ///   - interval: the least time between two states.
  public func observe(
    _ query: EntryQuery, minimumInterval interval: Duration = .zero
  ) -> Observed<[Entry]> {
    Observed(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(prefix: query.prefix.bytes)) {
        var rows = try self.entries(query)
        var entries: [Entry] = []
        while let entry = try rows.next() { entries.append(entry) }
        return entries
      }
    }
  }

  /// How many entries a query has, as that changes.
  /// - Parameters:
  ///   - query: which entries.
  ///   - interval: the least time between two counts.
  public func observeCount(
    _ query: EntryQuery = EntryQuery(), minimumInterval interval: Duration = .zero
  ) -> Observed<Int> {
    Observed(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(prefix: query.prefix.bytes)) { try self.count(query) }
    }
  }
}
