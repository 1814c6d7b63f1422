/// The objects of a query at one time, with what has changed since the list before.
public struct ObjectList<Object: Sendable, ID: CollectionID>: Sendable {
  /// The objects, in order.
  public var objects: [Object] = []
  /// Their ids, in the same order.
  public var ids: [ID] = []
  /// The difference to the list before; all are inserted in the first one.
  public var changes = ObjectListChanges<ID>()
}

/// The difference between two lists, by id.
public struct ObjectListChanges<ID: CollectionID>: Sendable, Hashable {
  /// Objects that were not there before.
  public var inserted: [ID] = []
  /// Objects that are not there any more.
  public var removed: [ID] = []
  /// Objects that have another place among those that were there before; they may have changed,
  /// too.
  public var moved: [ID] = []
  /// Objects that have changed and kept their place among the others.
  public var updated: [ID] = []

  /// Whether nothing has changed.
  public var isEmpty: Bool {
    inserted.isEmpty && removed.isEmpty && moved.isEmpty && updated.isEmpty
  }
}
