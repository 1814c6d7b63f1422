/// The rules of a collection beside how its objects become bytes.
///
/// ```swift
/// let schema = CollectionSchema<Note>(
///   version: 2, labels: { $0.tags.map { EntryLabel($0) } },
///   upcasts: [Upcast(from: 1) { $0["title"] = $0["name"] }])
/// ```
public struct CollectionSchema<Object: Sendable>: Sendable {
  /// The version of the objects that this program writes; 0 to 4,294,967,295.
  public var version: UInt32
  /// The labels of an object.
  public var labels: @Sendable (Object) -> [EntryLabel]
  /// The steps from older versions to this one.
  public var upcasts: [Upcast]
  /// Values of fields that an object lacks, by their paths, such as those that are new in the type.
  ///
  /// ```swift
  /// // var colour = "none" was added, and to the elements of `parts` a size.
  /// CollectionSchema<Note>(defaults: ["colour": "none", "parts.*.size": 1])
  /// ```
  /// A path has the names from the object on with dots between; `*` is any element of an array, or
  /// any name. Whatever wrote the object, and with which version, a default is taken where the type
  /// needs the field, after the upcasts; an optional property needs none.
  public var defaults: [String: JSONValue]
  /// The properties by which objects are found and sorted. A collection that is asked for without
  /// any has those that it was asked for with before.
  public var indexes: [ObjectIndex<Object>]

  /// The rules of a collection.
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

/// A step from one version of a collection's objects to the next: it runs when an older object is
/// read. What is stored stays as it is until the object is written again.
public struct Upcast: Sendable {
  /// The version that it takes.
  public let version: UInt32
  /// The change of an object of that version to the next one.
  public let change: @Sendable (inout JSONValue) throws -> Void

  /// A step.
  /// - Parameters:
  ///   - version: the version that it takes; it makes the next one of it.
  ///   - change: changes an object.
  public init(
    from version: UInt32, _ change: @escaping @Sendable (inout JSONValue) throws -> Void
  ) {
    self.version = version
    self.change = change
  }
}
