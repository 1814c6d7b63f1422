internal import TidemarkEngine

/// A query of a collection while it is answered, over one state of the store.
struct ObjectQuery<Object: Sendable, ID: CollectionID> {
  private let core: CollectionCore<Object, ID>
  let rows: RowQuery

  /// - Parameter counted: so far rows are counted to choose between indexes.
  /// - Throws: `indexMissing`, `invalidArgument`.
  init(
    _ core: CollectionCore<Object, ID>, _ condition: ObjectCondition<Object>,
    _ order: [ObjectOrder<Object>], counted: Int = 1_000
  ) throws(TidemarkError) {
    self.core = core
    let state = core.indexes?.now
    rows = try RowQuery(
      core.store.engine, core.name, core.prefix, condition.checked(), order.map(\.planned), state,
      core.layouts(state?.catalog), counted)
  }

  /// Tells of the objects that are in no index, and so missing from the answer.
  /// - Returns: their ids.
  @discardableResult
  func tellUnindexed(_ tell: UnreadableObjects) throws(TidemarkError) -> Set<[UInt8]> {
    let ids = try rows.unindexed()
    for id in ids { try tell.tell(try core.unindexed(id, in: rows.view)) }
    return Set(ids)
  }

  /// The reason why an object is in no index; nil for one that is in all.
  func unindexed(id: [UInt8]) throws(TidemarkError) -> TidemarkError? {
    try rows.filter.isUnindexed(id) ? try core.unindexed(id, in: rows.view) : nil
  }

  /// Calls `body` with objects that were found, as the query's state has them, and with their
  /// places among those; without those that are gone.
  /// - Parameters:
  ///   - known: ids of which was told already.
  ///   - tell: is told of objects that cannot be read.
  func forEach(
    _ found: [FoundObject], known: Set<[UInt8]> = [], _ tell: UnreadableObjects,
    _ body: (Int, ObjectBox<Object>) -> Void
  ) throws(TidemarkError) {
    for (place, answer) in try core.fetch(rows.view).fetch(found.map(\.id)).enumerated() {
      let isKnown = known.contains(found[place].id)
      if let box = try tell.box(answer, of: core, unless: isKnown) { body(place, box) }
    }
  }
}
