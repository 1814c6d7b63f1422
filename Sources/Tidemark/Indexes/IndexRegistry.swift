internal import TidemarkEngine

/// The collections of a store that have indexes, by the beginning of their keys.
struct IndexMembers: Sendable {
  fileprivate(set) var all: [CollectionIndexes] = []

  /// The indexes of the collection that a key belongs to.
  func indexes(of key: RawSpan) -> CollectionIndexes? { all.first { $0.contains(key) } }
}

/// Knows the indexes of a store's collections, and keeps them up with every commit.
///
/// The catalogs are read with the first write, so that opening a store costs nothing for them.
final class IndexRegistry: Sendable {
  private struct State {
    var members = IndexMembers()
    var isLoaded = false
    /// The engine's lineage that the members are of.
    var lineage = 0
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
  init(_ engine: Engine, usesThreads: Bool) {
    self.engine = engine
    self.usesThreads = usesThreads
    engine.derive(
      by: Derivation(
        concerns: { [self] key in
          // Where the catalogs cannot be read, the error is for the batch to tell.
          guard let members = try? members() else { return true }
          return members.indexes(of: key) != nil
        },
        prepare: { [self] batch throws(TidemarkError) in
          let members = try members()
          guard !members.all.isEmpty else { return nil }
          if usesThreads { mergeWhatIsDue() }
          return try IndexChange(batch, members, self)
        }))
  }

  /// All collections with indexes.
  func members() throws(TidemarkError) -> IndexMembers {
    let lineage = engine.lineage
    let (known, isCurrent) = state.withLock {
      ($0.isLoaded ? $0.members : nil, $0.lineage == lineage)
    }
    if let known {
      guard !isCurrent else { return known }
      try reload()
      return state.withLock { $0.members }
    }
    let found = try load()
    return state.withLock { state in
      if !state.isLoaded {
        state.members = found
        state.isLoaded = true
        state.lineage = lineage
      }
      return state.members
    }
  }

  private func load() throws(TidemarkError) -> IndexMembers {
    var members = IndexMembers()
    for (key, _) in try engine.derivedRows(IndexKeys.catalogs) {
      let catalog = try engine.withValue(forKey: key.rawSpan) { (value, _) throws(TidemarkError) in
        try IndexCatalog(decoding: value)
      }
      guard let catalog else { continue }
      let name = String(decoding: key[IndexKeys.catalogs.count...], as: UTF8.self)
      members.all.append(CollectionIndexes(name: name, catalog: catalog))
    }
    return members
  }

  /// Looks at the catalogs anew: another process may have declared other indexes while it had the
  /// store. Where these are not those that were declared here, what is written is marked until they
  /// are declared again.
  func reload() throws(TidemarkError) {
    let lineage = engine.lineage
    let known = state.withLock { state in
      // Documents may have other numbers by now.
      for index in state.texts.values { index.forget() }
      return state.isLoaded ? state.members.all : nil
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
    kept += found.all.filter { member in !kept.contains { $0.name == member.name } }
    state.withLock { state in
      state.members.all = kept
      state.lineage = lineage
    }
    engine.noteDerivationChange()
    for member in kept where member.now.evaluation != nil {
      try build(member, usesThread: usesThreads)
    }
  }

  /// A full-text index in use.
  func texts(_ number: UInt32) throws(TidemarkError) -> SearchIndex {
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
      if !state.members.all.contains(where: { $0 === indexes }) {
        state.members.all.append(indexes)
      }
    }
    engine.noteDerivationChange()
  }
}

extension Engine {
  /// The derived keys with a prefix, with the sequences of their entries.
  func derivedRows(
    _ prefix: [UInt8], limit: Int = .max
  ) throws(TidemarkError) -> [(key: [UInt8], sequence: UInt64)] {
    let view = try view()
    let scan = EngineScan(self, ScanQuery(prefix: prefix), view: view)
    var rows: [(key: [UInt8], sequence: UInt64)] = []
    while rows.count < limit {
      let page = try scan.nextPage(limit: min(1_024, limit - rows.count))
      if page.isEmpty { break }
      for row in page { rows.append((row.key, row.sequence)) }
    }
    return rows
  }
}
