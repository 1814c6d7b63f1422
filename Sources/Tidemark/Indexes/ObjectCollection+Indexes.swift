public import TidemarkEngine

extension ObjectCollection {
  /// The indexes that it was asked for with.
  public var indexes: [IndexStatus] {
    get throws(TidemarkError) {
      let state = core.indexes?.now
      return core.layouts(state?.catalog).map { layout in
        IndexStatus(
          name: layout.row.name, isUnique: layout.row.isUnique,
          isComplete: layout.row.isComplete,
          objectsDone: layout.row.isComplete ? nil : state?.objectsDone)
      }
    }
  }

  /// Waits until the indexes are complete: those that are new, or of another version, are built
  /// beside everything else.
  /// - Throws: why they could not be built; a later declaration tries again.
  public func indexesBuilt() async throws(TidemarkError) {
    guard let indexes = core.indexes else { return }
    await withCheckedContinuation { continuation in
      let waits = indexes.change { state in
        if state.isBuilding { state.waiting.append(continuation) }
        return state.isBuilding
      }
      if !waits { continuation.resume() }
    }
    if let failure = indexes.now.failure { throw failure }
  }

  /// The ids of objects that are in no index: they cannot be decoded or indexed, or were written by
  /// a program that has asked for the collection without its indexes and not been looked at since.
  public func unindexed() throws(TidemarkError) -> [ID] {
    guard let state = core.indexes?.now else { return [] }
    let marks = IndexKeys.marks(ofCollection: state.catalog.number)
    return try store.engine.derivedKeys(marks)
      .compactMap { ID.id(ofKeyBytes: $0[marks.count...]) }
  }
}

/// The state of an index.
public struct IndexStatus: Sendable, Hashable {
  /// The name.
  public var name: String
  /// Whether a value leads to one object at most.
  public var isUnique: Bool
  /// Whether all objects are in it; until then no query uses it.
  public var isComplete: Bool
  /// How many objects the builder has looked at; nil when it is complete.
  public var objectsDone: Int?
}

extension CollectionCore {
  /// The indexes that queries may use.
  var usableLayouts: [IndexLayout] {
    guard let state = indexes?.now else { return [] }
    return state.usable(layouts(state.catalog))
  }
}
