public import TidemarkStore

/// A type whose objects have one collection, so that code can name the collection by the type.
///
/// ```swift
/// nonisolated struct Note: Codable, CollectionObject {
///   var id: String
///   var text: String
///
///   static func collection(in store: Store) throws -> ObjectCollection<Note, String> {
///     try store.collection(named: "notes", CollectionSchema(indexes: [ObjectIndex("text",
///     \.text)]))
///   }
/// }
/// ```
public protocol CollectionObject: Identifiable, Sendable where ID: CollectionID {
  /// Returns the type's collection in a store, declared with its indexes. Each property wrapper of
  /// TidemarkSwiftUI calls this once for its store. An error that this throws becomes the wrapper's
  /// error.
  static func collection(in store: Store) throws -> ObjectCollection<Self, ID>
}
