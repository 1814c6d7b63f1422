public import TidemarkEngine

/// Where reads go.
public struct ReadSource: Sendable {
  /// Kept open while somebody reads.
  let store: Store
  /// Nil for the newest state, whatever that is when it is read.
  package let view: EngineView?

  package init(store: Store, view: EngineView?) {
    self.store = store
    self.view = view
  }

  package var engine: Engine { store.engine }

  /// The view, or one of the newest state.
  package func pinned() throws(TidemarkError) -> EngineView {
    if let view { return view }
    return try engine.reader.view()
  }

  /// A scan of the rows of a query. It keeps the view that has them.
  /// - Returns: nil when no key can match.
  package func scan(
    _ query: EntryQuery, after position: ScanPosition
  ) throws(TidemarkError) -> EngineScan? {
    let view = try pinned()
    return query.scanQuery.map { EngineScan(engine.reader, $0, view: view, after: position) }
  }

  /// Calls `body` with key and value of every entry of a query, until it says that it is enough.
  @usableFromInline
  package func scan(
    _ query: EntryQuery,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(TidemarkError) -> Bool
  ) throws(TidemarkError) {
    guard let scan = try self.scan(query, after: .start) else { return }
    defer { extendLifetime(scan) }
    try scan.forEach(limit: query.limit, values: query.values, body)
  }

  package func value(of info: EntryInfo) throws(TidemarkError) -> [UInt8] {
    if info.kind.removes { return [] }
    return try engine.reader.withValue(of: info.valueSequence) { (value, _) in
      [UInt8](copying: value)
    }
  }

  /// An entry of the log as callers see it.
  /// - Parameters:
  ///   - values: whether to read the value too.
  ///   - walks: whether to walk the key's history for the time of its creation.
  func entry(
    _ found: LogEntry, values: Bool, walks: Bool = false
  ) throws(TidemarkError) -> Entry {
    let info = try engine.reader.info(found)
    return Entry(
      key: found.key, value: values ? try value(of: info) : [], info: info,
      created: try created(info, walks: walks))
  }

  /// When the oldest version since the key was last absent was committed.
  package func created(_ info: EntryInfo, walks: Bool) throws(TidemarkError) -> Timestamp? {
    if info.kind.removes { return nil }
    if info.created != 0 { return HybridTime(info.created).timestamp }
    if info.previous == 0 { return HybridTime(info.commitTime).timestamp }
    return walks ? HybridTime(try engine.reader.history.created(info)).timestamp : nil
  }
}
