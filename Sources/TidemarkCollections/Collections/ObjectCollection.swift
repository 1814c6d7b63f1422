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
  /// An implementation detail of the library's own extensions.
  @_documentation(visibility: internal)
  public let core: CollectionCore<Object, ID>

  /// The collection's name; the keys of its objects are the name, a slash and the id.
  public var name: String { core.name }

  /// The store that holds the collection's objects.
  public var store: Store { core.store }

  /// An implementation detail of the library's own extensions.
  @_documentation(visibility: internal)
  public var source: ReadSource { core.store.source }
}

/// A collection as it was at one point of the store's history; ``ObjectCollection/at(_:)`` makes
/// it.
public struct CollectionView<Object: Sendable, ID: CollectionID>: ObjectReader {
  /// An implementation detail of the library's own extensions.
  @_documentation(visibility: internal)
  public let core: CollectionCore<Object, ID>
  /// An implementation detail of the library's own extensions.
  @_documentation(visibility: internal)
  public let source: ReadSource
}

/// A source that objects can be read from: a ``ObjectCollection``, or a ``CollectionView``, which
/// shows one state for ever.
public protocol ObjectReader<Object, ID>: Sendable {
  /// The type of the objects that can be read.
  associatedtype Object: Sendable
  /// The type of the objects' ids.
  associatedtype ID: CollectionID
  /// An implementation detail of the library's own extensions.
  @_documentation(visibility: internal)
  var core: CollectionCore<Object, ID> { get }
  /// An implementation detail of the library's own extensions.
  @_documentation(visibility: internal)
  var source: ReadSource { get }
}

extension ObjectCollection {
  /// Returns the collection as a view of the store shows it: the objects at a sequence or on a
  /// date.
  public func at(_ view: StoreView) -> CollectionView<Object, ID> {
    CollectionView(core: core, source: view.source)
  }
}

extension Store {
  /// Returns the collection of objects that have an `id`, stored as JSON.
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

  /// Returns the collection of objects whose id a closure computes, such as a property, stored as
  /// JSON.
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

  /// Returns a collection with a coding of your own for its objects.
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
