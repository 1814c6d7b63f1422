internal import TidemarkEngine

/// A query of a collection while it is answered, over one state of the store.
struct ObjectQuery<Object: Sendable, ID: CollectionID> {
  private let core: CollectionCore<Object, ID>
  private let rows: RowQuery

  var plan: QueryPlan { rows.plan }

  /// - Parameter counted: so far rows are counted to choose between indexes.
  /// - Throws: `indexMissing`.
  init(
    _ core: CollectionCore<Object, ID>, _ condition: ObjectCondition<Object>,
    _ order: [ObjectOrder<Object>], counted: Int = 1_000
  ) throws(TidemarkError) {
    self.core = core
    rows = try RowQuery(core, condition, order, counted: counted)
  }

  /// The objects that were found, in order.
  /// - Parameters:
  ///   - limit: most of them.
  ///   - cursor: the last one of those before.
  func found(limit: Int?, after cursor: ObjectCursor?) throws(TidemarkError) -> [FoundObject] {
    try rows.found(limit: limit, after: cursor)
  }

  /// A cursor behind an object, which was found after another one.
  func cursor(behind last: FoundObject, after cursor: ObjectCursor?) -> ObjectCursor {
    rows.cursor(behind: last, after: cursor)
  }

  /// How many objects there are.
  func count() throws(TidemarkError) -> Int { try rows.count() }

  /// An object, if it meets the condition.
  func found(id: [UInt8]) throws(TidemarkError) -> FoundObject? { try rows.found(id: id) }

  /// Objects that are equal in what is sorted by come by their ids, in the direction of the walk.
  func precedes(_ a: FoundObject, _ b: FoundObject) -> Bool { rows.precedes(a, b) }

  /// An object as the query's state has it.
  func object(_ id: ID) throws(TidemarkError) -> Object? { try core.object(id, in: rows.view) }

  private func object(ofKeyBytes id: [UInt8]) throws(TidemarkError) -> Object? {
    guard let id = ID.id(ofKeyBytes: id[...]) else { return nil }
    return try object(id)
  }

  /// Calls `body` with objects that were found, as the query's state has them, and with their
  /// places among those; without those that are gone.
  /// - Throws: the first error in their order.
  func forEach(
    _ found: [FoundObject], _ body: (Int, Object) -> Void
  ) throws(TidemarkError) {
    guard found.count >= BoxFetch.least,
      let fetched = core.fetch(rows.view).fetch(found.map(\.id))
    else {
      for (place, row) in found.enumerated() {
        if let object = try object(ofKeyBytes: row.id) { body(place, object) }
      }
      return
    }
    for (place, row) in found.enumerated() {
      if let box = fetched.boxes[place] as? ObjectBox<Object> {
        body(place, box.object)
      } else if fetched.entries[place].sequence > 0, let object = try object(ofKeyBytes: row.id) {
        body(place, object)
      }
    }
  }
}
