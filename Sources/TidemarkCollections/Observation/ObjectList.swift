public import TidemarkEngine

/// The objects of a query at one time, in order, with the changes since the list before.
///
/// ```swift
/// for note in list { print(note.title) }
/// let third = list[2]
/// ```
/// A list shares what has not changed with the one before, so that one change in a long list is
/// cheap.
public struct ObjectList<Object: Sendable, ID: CollectionID>: RandomAccessCollection, Sendable {
  let boxes: [ObjectBox<Object>]
  /// The ids of the list's objects, in the order of the list.
  public let ids: [ID]
  /// The changes since the list before. In the first list every object counts as inserted.
  public let changes: ObjectListChanges<ID>
  /// The errors of objects that could not be read, each with the object's id. The list may lack
  /// these objects; whether they meet its condition is unknown.
  public let unreadable: [TidemarkError]

  /// The position of the first object, which is 0.
  public var startIndex: Int { 0 }

  /// The position after the last object.
  public var endIndex: Int { boxes.count }

  /// The object at a position of the list.
  public subscript(position: Int) -> Object { boxes[position].object }

  /// The list's objects as an array.
  public var objects: [Object] { boxes.map(\.object) }
}

/// The difference between a list of objects and the list before, by the objects' ids.
public struct ObjectListChanges<ID: CollectionID>: Sendable, Hashable {
  /// The ids of objects that were not in the list before.
  public var inserted: [ID] = []
  /// The ids of objects that were in the list before and are gone.
  public var removed: [ID] = []
  /// The ids of objects whose position among the remaining ones has changed. Their content may have
  /// changed too.
  public var moved: [ID] = []
  /// The ids of objects whose content has changed and whose position among the others has not.
  public var updated: [ID] = []

  /// Whether the two lists are the same.
  public var isEmpty: Bool {
    inserted.isEmpty && removed.isEmpty && moved.isEmpty && updated.isEmpty
  }
}
