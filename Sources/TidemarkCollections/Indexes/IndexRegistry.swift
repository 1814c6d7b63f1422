internal import TidemarkEngine

/// The collections of a store that have indexes, by the beginning of their keys.
struct IndexMembers: Sendable {
  /// In the order of those beginnings, none of which begins another: they end with the only slash.
  let all: [CollectionIndexes]

  fileprivate init(_ members: [CollectionIndexes] = []) {
    all = members.sorted { $0.prefix.lexicographicallyPrecedes($1.prefix) }
  }

  /// The indexes of the collection that a key belongs to.
  func indexes(of key: RawSpan) -> CollectionIndexes? {
    // Every write comes by here: a generic search allocates where nothing specializes it.
    var low = 0
    var high = all.count
    while low < high {
      let middle = (low + high) / 2
      let prefix = all[middle].prefix
      if prefix.rawSpan.compare(to: key) > 0 { high = middle } else { low = middle + 1 }
    }
    return low > 0 && all[low - 1].contains(key) ? all[low - 1] : nil
  }
}

/// Knows the indexes of a store's collections, and keeps them up with every commit.
///
/// The catalogs are read with the first write, so that opening a store costs nothing for them.
package final class IndexRegistry: StoreParticipant {
  private struct State {
    /// Nil until they are read.
    var members: IndexMembers?
    /// See `Engine.takeovers`: the number when the members were looked at last.
    var takeovers: UInt64 = 0
    /// Full-text indexes in use, by their numbers.
    var texts: [UInt32: SearchIndex] = [:]
  }

  // The engine holds what derives rows for it, and must not be held by it.
  unowned let engine: Engine
  private let state = Lock(State())
  private let usesThreads: Bool
  /// Held while indexes are declared: of two who do so the second finds what the first has made.
  let declaring = Lock(())

  /// - Parameter usesThreads: whether segments of full-text indexes are made on a thread of their
  ///   own.
  package init(_ engine: Engine, usesThreads: Bool) {
    self.engine = engine
    self.usesThreads = usesThreads
    engine.derive(
      by: IndexMaintenance(
        concerns: { [self] key in
          // Not the parameter, which this would hold for as long as the engine holds this.
          let version = self.engine.derivation?.version
          // Where the catalogs cannot be read, the error is for the batch to tell.
          guard let members = try? members() else { return true }
          if let version, members.all.isEmpty { self.engine.derivation?.noteIdle(at: version) }
          return members.indexes(of: key) != nil
        },
        prepare: { [self] batch throws(TidemarkError) in
          let members = try members()
          guard !members.all.isEmpty else { return nil }
          if usesThreads { mergeWhatIsDue() }
          return try IndexChange(batch, members, self)
        }))
  }

  func members() throws(TidemarkError) -> IndexMembers {
    let takeovers = engine.takeovers
    let (known, isCurrent) = state.withLock { ($0.members, $0.takeovers == takeovers) }
    if let known, isCurrent { return known }
    if known != nil {
      try reload()
      return state.withLock { $0.members ?? IndexMembers() }
    }
    let found = try load()
    return state.withLock { state in
      if let known = state.members { return known }
      state.members = found
      state.takeovers = takeovers
      return found
    }
  }

  private func load() throws(TidemarkError) -> IndexMembers {
    var members: [CollectionIndexes] = []
    for key in try engine.derivedKeys(IndexKeys.catalogs) {
      let catalog = try engine.reader.withValue(forKey: key.rawSpan) {
        (value, _) throws(TidemarkError) in
        try IndexCatalog(decoding: value)
      }
      guard let catalog else { continue }
      let name = String(decoding: key[IndexKeys.catalogs.count...], as: UTF8.self)
      members.append(CollectionIndexes(name: name, catalog: catalog))
    }
    return IndexMembers(members)
  }

  /// Looks at the catalogs anew: another process may have declared other indexes while it had the
  /// store. Where these are not those that were declared here, what is written is marked until they
  /// are declared again.
  package func reload() throws(TidemarkError) {
    let takeovers = engine.takeovers
    let known = state.withLock { state in
      // Documents may have other numbers by now.
      for index in state.texts.values { index.forget() }
      return state.members?.all
    }
    guard let known else { return }
    let found = try load()
    var kept: [CollectionIndexes] = []
    for member in known {
      guard let catalog = found.all.first(where: { $0.name == member.name })?.now.catalog else {
        // The store was replaced by one that does not know it.
        member.change { state in
          state.evaluation = nil
          state.schema += 1
        }
        continue
      }
      kept.append(member)
      member.change { state in
        // A program without the indexes may have written.
        state.mayHaveMarks = true
        guard catalog != state.catalog else { return }
        let isSame = catalog.rows.elementsEqual(state.catalog.rows) {
          $0.number == $1.number && $0.signature == $1.signature
        }
        state.catalog = catalog
        state.schema += 1
        if !isSame { state.evaluation = nil }
      }
    }
    state.withLock { state in
      // Collections stay that were declared, or found, since the look at what was known.
      let others = (state.members?.all ?? []).filter { member in
        !known.contains { $0 === member }
      }
      let there = kept + others
      let new = found.all.filter { member in !there.contains { $0.name == member.name } }
      state.members = IndexMembers(there + new)
      state.takeovers = takeovers
    }
    engine.derivation?.noteChange()
    for member in kept where member.now.evaluation != nil {
      // The member keeps the error, for who waits for its indexes: writers can go on.
      do { try build(member, usesThread: usesThreads) } catch {
        member.change { $0.failure = error }
      }
    }
  }

  /// A full-text index in use.
  func texts(_ number: UInt32) -> SearchIndex {
    state.withLock { state in
      if let known = state.texts[number] { return known }
      let index = SearchIndex(number, engine)
      state.texts[number] = index
      return index
    }
  }

  /// Ends the use of a full-text index that is gone.
  func dropTexts(_ number: UInt32) {
    let index = state.withLock { $0.texts.removeValue(forKey: number) }
    index?.state.withLock { $0.isDropped = true }
  }

  /// Makes segments of full-text indexes, where enough was written, beside everything else.
  private func mergeWhatIsDue() {
    let due = state.withLock { $0.texts.values.filter(\.isMergeDue) }
    for index in due {
      // The thread keeps what the index does not.
      let engine = engine
      _ = try? WorkerThread(name: "tidemark-text") {
        // The next write tries again.
        try? index.merge()
        withExtendedLifetime(engine) {}
      }
    }
  }

  /// Takes a collection up, or the newest catalog of one that is known.
  func install(_ indexes: CollectionIndexes) {
    state.withLock { state in
      let members = state.members?.all ?? []
      guard !members.contains(where: { $0 === indexes }) else { return }
      state.members = IndexMembers(members + [indexes])
    }
    engine.derivation?.noteChange()
  }
}

extension Store {
  var indexes: IndexRegistry { participant() }
}

extension Engine {
  package func derivedKeys(
    _ prefix: [UInt8], limit: Int = .max, in view: EngineView? = nil
  ) throws(TidemarkError) -> [[UInt8]] {
    try keys(ScanQuery(prefix: prefix), limit: limit, in: view)
  }

  /// - Parameter view: nil for the newest state.
  func keys(
    _ query: ScanQuery, limit: Int = .max, in view: EngineView? = nil
  ) throws(TidemarkError) -> [[UInt8]] {
    let pinned = if let view { view } else { try reader.view() }
    var keys: [[UInt8]] = []
    try EngineScan(reader, query, view: pinned).forEach(limit: limit) { keys.append($0.key) }
    return keys
  }

  /// Removes all derived keys with a prefix.
  /// - Parameter takeovers: see `OperationBatch.takeovers`.
  func removeDerived(
    _ prefix: [UInt8], ifTakeovers takeovers: UInt64? = nil
  ) throws(TidemarkError) {
    while true {
      let keys = try derivedKeys(prefix, limit: 1_024)
      if keys.isEmpty { return }
      var batch = OperationBatch()
      batch.takeovers = takeovers
      for key in keys { try batch.addDerived(key.rawSpan, nil) }
      _ = try stage(batch)
    }
  }
}

extension EngineScan {
  /// Calls `body` with the rows, or with the first of them.
  func forEach(
    limit: Int = .max, _ body: (ScanRow) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    var left = limit
    while left > 0 {
      let page = try nextPage(limit: min(1_024, left))
      if page.isEmpty { return }
      left -= page.count
      for row in page { try body(row) }
    }
  }
}
