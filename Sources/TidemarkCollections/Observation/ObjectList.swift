public import TidemarkEngine

/// The objects of a query at one time, in order, with what has changed since the list before.
///
/// ```swift
/// for note in list { print(note.title) }
/// let third = list[2]
/// ```
/// A list shares what has not changed with the one before, so that one change in a long list is
/// cheap.
public struct ObjectList<Object: Sendable, ID: CollectionID>: RandomAccessCollection, Sendable {
  let boxes: [ObjectBox<Object>]
  /// The ids of the objects, in the same order.
  public let ids: [ID]
  /// The difference to the list before; all are inserted in the first one.
  public let changes: ObjectListChanges<ID>
  /// Why objects cannot be read, each with its id, in their order: they may be missing here.
  /// Nothing else of them is known, so they may not even belong to the list.
  public let unreadable: [TidemarkError]

  /// The place of the first object.
  public var startIndex: Int { 0 }

  /// The place behind the last object.
  public var endIndex: Int { boxes.count }

  /// An object by its place.
  public subscript(position: Int) -> Object { boxes[position].object }

  /// The objects as an array.
  public var objects: [Object] { boxes.map(\.object) }
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
