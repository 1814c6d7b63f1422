public import TidemarkEngine

/// Objects of one type in a store, each under an id of its own.
///
/// ```swift
/// struct Note: Codable, Identifiable {
///   var id: String
///   var text: String
/// }
/// let notes = try store.collection(Note.self, named: "notes")
/// try await notes.put(Note(id: "1", text: "Buy milk"))
/// try await notes.update("1") { $0.text += " and bread" }
/// let note = try notes.get("1")
/// ```
/// An object is the value of the key `NAME/ID`, so that history, undo, views, labels, replication
/// and `logtool` have it as any other. Reads are synchronous; what was read before comes from a
/// cache of decoded objects.
public struct ObjectCollection<Object: Sendable, ID: CollectionID>: ObjectReader {
  /// The collection's rules; of no use outside the library.
  public let core: CollectionCore<Object, ID>

  /// The name, with which its keys begin.
  public var name: String { core.name }

  /// The store.
  public var store: Store { core.store }

  /// Where reads go; of no use outside the library.
  public var source: ReadSource { core.store.source }
}

/// A collection as it was at one point of the store's history.
public struct CollectionView<Object: Sendable, ID: CollectionID>: ObjectReader {
  /// The collection's rules; of no use outside the library.
  public let core: CollectionCore<Object, ID>
  /// Where reads go; of no use outside the library.
  public let source: ReadSource
}

/// A source that objects can be read from: a ``ObjectCollection``, or a ``CollectionView``, which
/// shows one state for ever.
public protocol ObjectReader<Object, ID>: Sendable {
  associatedtype Object: Sendable
  associatedtype ID: CollectionID
  /// The collection's rules; of no use outside the library.
  var core: CollectionCore<Object, ID> { get }
  /// Where reads go; of no use outside the library.
  var source: ReadSource { get }
}

extension ObjectCollection {
  /// The collection as a view of the store has it: what was there at a sequence or on a date.
  public func at(_ view: StoreView) -> CollectionView<Object, ID> {
    CollectionView(core: core, source: view.source)
  }
}

extension Store {
  /// The collection of objects that have an `id`, as JSON.
  ///
  /// ```swift
  /// let notes = try store.collection(Note.self, named: "notes")
  /// ```
  /// - Parameters:
  ///   - type: the objects' type.
  ///   - name: 1 to 255 bytes, without a `/`; the keys of the objects are `NAME/ID`.
  ///   - schema: labels, the version of the objects, and steps from older ones.
  /// - Throws: `invalidArgument`.
  public func collection<Object: Codable & Sendable & Identifiable>(
    _ type: Object.Type = Object.self, named name: String,
    _ schema: CollectionSchema<Object> = CollectionSchema()
  ) throws(TidemarkError) -> ObjectCollection<Object, Object.ID> where Object.ID: CollectionID {
    try collection(type, named: name, coding: .json, schema) { $0.id }
  }

  /// The collection of objects whose id is a property or made of them, as JSON.
  ///
  /// ```swift
  /// let packages = try store.collection(Package.self, named: "packages") { $0.name }
  /// ```
  public func collection<Object: Codable & Sendable, ID: CollectionID>(
    _ type: Object.Type = Object.self, named name: String,
    _ schema: CollectionSchema<Object> = CollectionSchema(),
    id: @escaping @Sendable (Object) -> ID
  ) throws(TidemarkError) -> ObjectCollection<Object, ID> {
    try collection(type, named: name, coding: .json, schema, id: id)
  }

  /// The collection of objects that are coded somehow.
  /// - Parameters:
  ///   - type: the objects' type.
  ///   - name: 1 to 255 bytes, without a `/`.
  ///   - coding: how objects become bytes.
  ///   - schema: labels, the version of the objects, and steps from older ones.
  ///   - id: the id of an object.
  public func collection<Object: Sendable, ID: CollectionID>(
    _ type: Object.Type = Object.self, named name: String, coding: CollectionCoding<Object>,
    _ schema: CollectionSchema<Object> = CollectionSchema(), id: @escaping @Sendable (Object) -> ID
  ) throws(TidemarkError) -> ObjectCollection<Object, ID> {
    let core = try CollectionCore(self, name, coding, schema, id)
    try core.declare()
    return ObjectCollection(core: core)
  }
}
