public import TidemarkEngine

extension ObjectCollection {
  /// The state of the indexes that this collection was declared with.
  public var indexes: [IndexStatus] {
    get throws(TidemarkError) {
      let state = core.indexes?.now
      let left = try state?.mayHaveMarks == true ? unindexed().count : 0
      return core.layouts(state?.catalog).map { layout in
        IndexStatus(
          name: layout.row.name, isUnique: layout.row.isUnique,
          isComplete: layout.row.isComplete && left == 0,
          objectsDone: layout.row.isComplete ? nil : state?.objectsDone, unindexed: left)
      }
    }
  }

  /// Waits until the indexes are complete: those that are new, or of another version, are built
  /// beside everything else. Objects that cannot be read are in none, see ``unindexed()``; queries
  /// tell of them.
  /// - Throws: why they could not be built; a later declaration tries again. `cancelled`.
  public func indexesBuilt() async throws(TidemarkError) {
    guard let indexes = core.indexes else { return }
    do { try await indexes.builderStop.first { indexes.now.isBuilding ? nil : () } } catch {
      throw TidemarkError(.cancelled, "the task was cancelled; the indexes are built all the same")
    }
    if let failure = indexes.now.failure { throw failure }
  }

  /// The objects that have a value of a unique index together, by their ids.
  ///
  /// A write of this program never makes them; two replicas do that give one value to two objects
  /// at a time, and so may an import, and a unique index that is declared over objects. All are
  /// kept. The first id of each group is the smallest by its bytes, on every replica: let that
  /// object keep the value, and change or delete the others.
  ///
  /// ```swift
  /// for ids in try notes.duplicates(ofIndex: "slug") {
  ///   for id in ids.dropFirst() { try await notes.update(id) { $0.slug += "-\(id)" } }
  /// }
  /// ```
  /// - Parameter name: the name of a unique index. All of its rows are looked at.
  /// - Throws: `indexMissing` when it is none, or is being built.
  public func duplicates(ofIndex name: String) throws(TidemarkError) -> [[ID]] {
    guard let layout = core.usableLayouts.first(where: { $0.row.name == name && $0.row.isUnique })
    else {
      throw core.indexMissing(
        "collection \(self.name) has no unique index \(name) that is complete")
    }
    var groups: [[[UInt8]]] = []
    var last: (term: [UInt8], ids: [[UInt8]]) = ([], [])
    var scan = try RowScan(store.engine, layout.row.number, TermRange())
    while true {
      let row = try scan.nextRow()
      if let row, row.term.elementsEqual(last.term) {
        last.ids.append(Array(row.id))
        continue
      }
      if last.ids.count > 1, !IndexTerm.hasNothing(last.term) { groups.append(last.ids) }
      guard let row else { break }
      last = (Array(row.term), [Array(row.id)])
    }
    return groups.map { ids in
      ids.sorted { $0.lexicographicallyPrecedes($1) }.compactMap { ID.id(ofKeyBytes: $0[...]) }
    }
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

/// The state of one index of a collection: whether it is complete, or how far it is built.
public struct IndexStatus: Sendable, Hashable {
  /// The index's name.
  public var name: String
  /// Whether the index is unique, so that one value leads to one object at most.
  public var isUnique: Bool
  /// Whether the index holds all objects of its collection.
  public var isComplete: Bool
  /// The number of objects that the builder has looked at; nil when the index is built. Until then
  /// no query uses the index.
  public var objectsDone: Int?
  /// The number of objects that are in no index; see ``ObjectCollection/unindexed()``.
  public var unindexed = 0
}

extension CollectionCore {
  func indexMissing(_ words: String) -> TidemarkError {
    TidemarkError(.indexMissing, words, object: ObjectPlace(collection: name))
  }

  /// The indexes that queries may use.
  var usableLayouts: [IndexLayout] {
    guard let state = indexes?.now else { return [] }
    return state.usable(layouts(state.catalog))
  }
}
