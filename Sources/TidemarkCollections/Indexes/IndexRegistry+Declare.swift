internal import TidemarkEngine

extension IndexRegistry {
  /// Declares the indexes of a collection: from now on every commit keeps them up, and those that
  /// are new are filled.
  /// - Parameters:
  ///   - indexes: names, signatures and whether values are there once only, in the order of the
  ///     evaluation.
  ///   - evaluation: makes the terms of a value.
  ///   - usesThread: whether new indexes are filled on a thread of their own.
  func declare(
    _ name: String, _ indexes: [IndexCatalog.Row],
    usesThread: Bool, _ evaluation: @escaping CollectionIndexes.Evaluation
  ) throws(TidemarkError) -> (indexes: CollectionIndexes, schema: Int) {
    guard indexes.count <= IndexCatalog.mostRows else {
      throw TidemarkError(
        .invalidArgument,
        "collection \(name) has \(indexes.count) indexes; it has at most \(IndexCatalog.mostRows)")
    }
    let found = try declaring.withLock { _ throws(TidemarkError) in
      let members = try members()
      let known = members.all.first { $0.name == name }
      let before = known?.now
      var catalog = try Self.catalog(of: name, indexes, members)
      if let known, let before {
        if before.evaluation != nil, before.catalog == catalog { return (known, before.schema) }
        if before.evaluation == nil, !PlantedBug.isOn(.formNotInIndex) {
          let stale = try staleIndexes(known, catalog, evaluation)
          catalog = try Self.catalog(of: name, indexes, members, without: stale)
        }
      }
      // The catalog is on its way to the disk before anybody makes rows for it.
      if before?.catalog != catalog { try commit(catalog, name) }
      let member = known ?? CollectionIndexes(name: name, catalog: catalog)
      let schema = member.change { state in
        state.catalog = catalog
        state.evaluation = evaluation
        state.schema += 1
        return state.schema
      }
      install(member)
      return (member, schema)
    }
    try build(found.0, usesThread: usesThread)
    return found
  }

  /// The indexes that have other rows of some of a collection's objects, the first and the last,
  /// than are made of them now.
  private func staleIndexes(
    _ member: CollectionIndexes, _ catalog: IndexCatalog, _ evaluate: CollectionIndexes.Evaluation
  ) throws(TidemarkError) -> Set<UInt32> {
    let state = CollectionIndexes.State(catalog: catalog)
    var stale: Set<UInt32> = []
    for fromEnd in [false, true] {
      for key in try engine.reader.firstKeys(withPrefix: member.prefix, limit: 8, fromEnd: fromEnd)
      {
        // An object that cannot be read says nothing of the indexes.
        guard let (stored, now) = try? rows(of: key, member, state, evaluate) else { continue }
        for index in catalog.rows where index.isComplete {
          // The number of a document is any.
          let length = index.isText ? 8 : Int.max
          func terms(_ rows: [DerivedRow]) -> Set<[UInt8]> {
            Set(rows.filter { $0.index == index.number }.map { Array($0.term.suffix(length)) })
          }
          if terms(stored) != terms(now) { stale.insert(index.number) }
        }
      }
    }
    return stale
  }

  /// The rows that are stored of an object, and those that are made of it now; nil where it is
  /// marked.
  private func rows(
    of key: [UInt8], _ member: CollectionIndexes, _ state: CollectionIndexes.State,
    _ evaluate: CollectionIndexes.Evaluation
  ) throws(TidemarkError) -> (stored: [DerivedRow], now: [DerivedRow])? {
    guard let object = try engine.reader.view().stored(key) else { return nil }
    let id = member.id(of: key)
    let now = try state.rows(evaluate(object.bytes, object.version, id), id: id.count)
    let rowsKey = IndexKeys.objects(ofCollection: state.catalog.number) + id
    let stored = try engine.reader.withValue(forKey: rowsKey.rawSpan) {
      (value, _) throws(TidemarkError) in try IndexKeys.decode(value)
    }
    // A mark is committed with the removal of the rows, so it is looked for behind them.
    let mark = IndexKeys.marks(ofCollection: state.catalog.number) + id
    guard try engine.reader.newestEntry(ofKey: mark.rawSpan) == 0 else { return nil }
    return (stored ?? [], now)
  }

  /// The catalog with these indexes: those that it has already keep their numbers.
  /// - Parameter stale: numbers of indexes that are built anew.
  private static func catalog(
    of name: String, _ wanted: [IndexCatalog.Row], _ members: IndexMembers,
    without stale: Set<UInt32> = []
  ) throws(TidemarkError) -> IndexCatalog {
    let catalogs = members.all.map(\.now.catalog)
    let known = members.all.first { $0.name == name }?.now.catalog
    var catalog =
      known ?? IndexCatalog(number: 1 + (catalogs.map(\.number).max() ?? 0))
    var next = 1 + (catalogs.map(\.lastIndex).max() ?? 0)
    var rows: [IndexCatalog.Row] = []
    for index in wanted {
      guard !rows.contains(where: { $0.name == index.name }) else {
        throw TidemarkError(
          .invalidArgument, "collection \(name) has two indexes of the name \(index.name)")
      }
      if let row = catalog.rows.first(where: {
        $0.name == index.name && $0.signature == index.signature && !stale.contains($0.number)
      }) {
        rows.append(row)
        continue
      }
      var row = index
      row.number = next
      catalog.lastIndex = next
      next += 1
      rows.append(row)
    }
    let kept = Set(rows.map(\.number))
    catalog.dropped += catalog.rows.map(\.number).filter { !kept.contains($0) }
    catalog.rows = rows
    return catalog
  }

  func commit(_ catalog: IndexCatalog, _ name: String) throws(TidemarkError) {
    var batch = OperationBatch()
    let key = IndexKeys.catalogs + Array(name.utf8)
    try batch.addDerived(key.rawSpan, catalog.encoded.rawSpan)
    _ = try engine.stage(batch)
  }

  /// Fills what is not complete, and looks again at what is marked.
  func build(_ member: CollectionIndexes, usesThread: Bool) throws(TidemarkError) {
    let marks = IndexKeys.marks(ofCollection: member.now.catalog.number)
    let hasMarks = try !engine.derivedKeys(marks, limit: 1).isEmpty
    let isDue = member.change { state in
      guard !state.isBuilding else { return false }
      if !hasMarks, state.marksMade == 0 { state.mayHaveMarks = false }
      state.failure = nil
      state.isBuilding = state.mayHaveMarks || !state.catalog.isComplete
      return state.isBuilding
    }
    guard isDue else { return }
    let builder = IndexBuilder(engine: engine, registry: self, member: member)
    do throws(TidemarkError) {
      guard usesThread, try !builder.isSmall() else { return builder.run() }
      _ = try WorkerThread(name: "tidemark-index") { builder.run() }
    } catch {
      member.change { state in
        state.isBuilding = false
        state.failure = error
      }
      member.builderStop.raise()
      throw error
    }
  }
}
