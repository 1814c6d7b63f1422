public import TidemarkEngine

/// An implementation detail of the library's own extensions.
@_documentation(visibility: internal)
public struct ReadSource: Sendable {
  /// A store closes itself when its last reference goes, so each reader holds one.
  let store: Store
  /// Shows one state, and keeps compaction from dropping its entries while it is open; nil for the
  /// state that is the newest at each read.
  package let view: EngineView?

  package init(store: Store, view: EngineView?) { (self.store, self.view) = (store, view) }

  package var engine: Engine { store.engine }

  /// The view, or a new one of the newest state. The caller holds it as long as it reads.
  package func pinned() throws(TidemarkError) -> EngineView {
    if let view { return view }
    return try engine.reader.view()
  }

  /// A scan of the rows of a query in the view, or in the newest state; it holds the view.
  /// - Returns: nil when no key can match.
  package func scan(
    _ query: EntryQuery, after position: ScanPosition
  ) throws(TidemarkError) -> EngineScan? {
    let view = try pinned()
    return query.scanQuery.map { EngineScan(engine.reader, $0, view: view, after: position) }
  }

  /// Calls `body` with key and value of the entries of a query, until it returns false.
  @usableFromInline
  package func scan(
    _ query: EntryQuery,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(TidemarkError) -> Bool
  ) throws(TidemarkError) {
    guard let scan = try self.scan(query, after: .start) else { return }
    // The scan's view must stay open until the last value was read.
    defer { extendLifetime(scan) }
    try scan.forEach(limit: query.limit, values: query.values, body)
  }

  /// An entry's value, for a touch that of the put it renews; empty for a delete or an eviction.
  package func value(of info: EntryInfo) throws(TidemarkError) -> [UInt8] {
    if info.kind.removes { return [] }
    return try engine.reader.withValue(of: info.valueSequence) { (value, _) in
      [UInt8](copying: value)
    }
  }

  /// An entry of the log as callers see it.
  /// - Parameters:
  ///   - values: whether to read the value too.
  ///   - walks: whether to walk the key's older versions to find `created`, where need be.
  func entry(_ found: LogEntry, values: Bool, walks: Bool = false) throws(TidemarkError) -> Entry {
    let info = try engine.reader.info(found)
    return Entry(
      key: found.key, value: values ? try value(of: info) : [], info: info,
      created: try created(info, walks: walks))
  }

  /// When the oldest version since the key was last absent was committed. Compaction writes it into
  /// the entries that it keeps; a key's first entry (`previous` 0) is that version itself. Of other
  /// entries only a walk over the older versions tells, else the answer is nil.
  package func created(_ info: EntryInfo, walks: Bool) throws(TidemarkError) -> Timestamp? {
    if info.kind.removes { return nil }
    if info.created != 0 { return HybridTime(info.created).timestamp }
    if info.previous == 0 { return HybridTime(info.commitTime).timestamp }
    return walks ? HybridTime(try engine.reader.history.created(info)).timestamp : nil
  }
}
