internal import TidemarkEngine

/// Fills the indexes of a collection with the objects that were there before them.
///
/// Writers go on meanwhile, and keep up what they write themselves. A builder that was killed
/// begins anew with the next declaration: an object that has its rows costs a look.
struct IndexBuilder: Sendable {
  private static let objectsPerCommit = 256
  /// A collection of so few objects is built on the spot.
  private static let few = 64

  let engine: Engine
  let registry: IndexRegistry
  let member: CollectionIndexes

  /// Whether there is so little to do that nobody minds to wait for it.
  func isSmall() throws(TidemarkError) -> Bool {
    let catalog = member.now.catalog
    let prefix =
      catalog.isComplete ? IndexKeys.marks(ofCollection: catalog.number) : member.prefix
    return try engine.derivedKeys(prefix, limit: Self.few).count < Self.few
  }

  func run() {
    while true {
      do throws(TidemarkError) {
        let schema = member.now.schema
        try drop()
        try fill()
        try finish(schema)
      } catch {
        member.change { $0.failure = error }
      }
      // Indexes that were declared meanwhile come next.
      let isDone = member.change { state in
        state.isBuilding = state.failure == nil && !state.catalog.isComplete
        return !state.isBuilding
      }
      if isDone { return member.builderStop.raise() }
    }
  }

  /// Removes the rows of indexes that are gone.
  private func drop() throws(TidemarkError) {
    for number in member.now.catalog.dropped {
      registry.dropTexts(number)
      try engine.removeDerived(SearchKeys.catalog(number))
      try engine.removeDerived(SearchKeys.blocks(number))
      try engine.removeDerived(SearchKeys.lengths(number))
      try engine.removeDerived(IndexKeys.rows(ofIndex: number))
    }
  }

  /// Makes the rows of all objects, or of those that are marked where the rest is complete.
  private func fill() throws(TidemarkError) {
    let state = member.now
    let isFilled = state.catalog.rows.allSatisfy(\.isComplete)
    if isFilled && !state.mayHaveMarks { return }
    let marks = IndexKeys.marks(ofCollection: state.catalog.number)
    let prefix = isFilled ? marks : member.prefix
    let view = try engine.reader.view()
    let scan = EngineScan(engine.reader, ScanQuery(prefix: prefix), view: view)
    member.change { $0.objectsDone = 0 }
    while true {
      let page = try scan.nextPage(limit: Self.objectsPerCommit)
      if page.isEmpty { break }
      var batch = OperationBatch()
      batch.rederived = page.map { row in
        isFilled ? member.prefix + row.key[marks.count...] : row.key
      }
      _ = try engine.stage(batch)
      member.change { $0.objectsDone += page.count }
    }
    let left = try engine.derivedKeys(marks, limit: 1)
    member.change { now in
      // One that was made since the look may not be in it.
      if now.marksMade == state.marksMade { now.mayHaveMarks = !left.isEmpty }
    }
  }

  /// Says that the indexes are complete, if they are still those that were filled.
  private func finish(_ schema: Int) throws(TidemarkError) {
    try registry.declaring.withLock { _ throws(TidemarkError) in
      let state = member.now
      guard state.schema == schema, !state.catalog.isComplete else { return }
      var catalog = state.catalog
      catalog.dropped = []
      for index in catalog.rows.indices { catalog.rows[index].isComplete = true }
      try registry.commit(catalog, member.name)
      member.change { state in
        if state.schema == schema { state.catalog = catalog }
      }
    }
  }
}
