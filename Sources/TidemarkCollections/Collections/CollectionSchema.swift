/// The rules of a collection: its labels, indexes and version, and how older objects are read.
///
/// ```swift
/// let schema = CollectionSchema<Note>(
///   version: 2, labels: { $0.tags.map { EntryLabel($0) } },
///   upcasts: [Upcast(from: 1) { $0["title"] = $0["name"] }])
/// ```
public struct CollectionSchema<Object: Sendable>: Sendable {
  /// The version of the objects that this program writes, 0 to 4,294,967,295. Increase it when you
  /// add an ``Upcast``.
  public var version: UInt32
  /// Computes the labels of an object; the collection stores them with it.
  public var labels: @Sendable (Object) -> [EntryLabel]
  /// The steps that turn objects of older versions into the current one.
  public var upcasts: [Upcast]
  /// Values for fields that a stored object lacks, by their paths. Use it for properties that are
  /// new in the type.
  ///
  /// ```swift
  /// // var colour = "none" was added, and to the elements of `parts` a size.
  /// CollectionSchema<Note>(defaults: ["colour": "none", "parts.*.size": 1])
  /// ```
  /// A path has the names from the object on with dots between; `*` is any element of an array, or
  /// any name. Whatever wrote the object, and with which version, a default is taken where the type
  /// needs the field, after the upcasts; an optional property needs none.
  public var defaults: [String: JSONValue]
  /// The properties by which queries find and sort objects. A collection that is declared without
  /// indexes keeps those of its last declaration.
  public var indexes: [ObjectIndex<Object>]

  /// Creates the rules of a collection. Without parameters objects have no labels, no indexes and
  /// no upcasts.
  /// - Parameters:
  ///   - version: the version of the objects that this program writes.
  ///   - labels: the labels of an object.
  ///   - indexes: the properties by which objects are found and sorted.
  ///   - upcasts: steps from older versions.
  ///   - defaults: values of fields that an object lacks, see ``defaults``.
  public init(
    version: UInt32 = 0, labels: @escaping @Sendable (Object) -> [EntryLabel] = { _ in [] },
    indexes: [ObjectIndex<Object>] = [], upcasts: [Upcast] = [],
    defaults: [String: JSONValue] = [:]
  ) {
    self.version = version
    self.labels = labels
    self.indexes = indexes
    self.upcasts = upcasts
    self.defaults = defaults
  }
}

/// A step from one version of a collection's objects to the next. It runs when an older object is
/// read. The stored object stays as it is until it is written again.
public struct Upcast: Sendable {
  /// The version of the objects that the step takes; its result has the next version.
  public let version: UInt32
  /// Changes an object of ``version``, as JSON, into one of the next version.
  public let change: @Sendable (inout JSONValue) throws -> Void

  /// Creates a step from one version of the objects to the next.
  /// - Parameters:
  ///   - version: the version of the objects that the step takes; its result has the next version.
  ///   - change: changes an object, given as JSON, to the next version.
  public init(
    from version: UInt32, _ change: @escaping @Sendable (inout JSONValue) throws -> Void
  ) {
    self.version = version
    self.change = change
  }
}
