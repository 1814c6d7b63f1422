/// A collection that somebody else keeps, a server above all, and that a ``Cache`` is to equal.
///
/// The collection has a hash, and so has each of its items. As long as the first stays the same
/// nothing else is asked for; when it changes, the list is, and then the items that differ.
///
/// ```swift
/// struct Catalogue: ManifestSource {
///   func collectionHash() async throws -> [UInt8] { try await server.version() }
///   func list(_ add: @Sendable (ManifestItem) throws -> Void) async throws {
///     for try await line in server.index() { try add(ManifestItem(line.key, hash: line.hash)) }
///   }
///   func fetch(_ item: ManifestItem) async throws -> ManifestValue<[UInt8]> {
///     ManifestValue(try await server.item(item.key.text))
///   }
/// }
/// ```
public protocol ManifestSource<Value>: Sendable {
  /// The type of the values.
  associatedtype Value: Sendable

  /// The hash of the collection as a whole, up to 64 bytes: equal as long as no item is added,
  /// changed or removed.
  func collectionHash() async throws -> [UInt8]

  /// Lists the items, in any order. A key that comes with two different hashes counts as an item
  /// that has failed, since nobody knows which is right.
  ///
  /// The list must be as new as the hash that was told before, or newer.
  /// - Parameter add: takes an item; what it throws ends the sync, also where it is not passed on.
  func list(_ add: @Sendable (ManifestItem) throws -> Void) async throws

  /// Fetches the value of an item; is called for several at a time, and should heed cancellation.
  func fetch(_ item: ManifestItem) async throws -> ManifestValue<Value>
}

/// An item of a collection, without its value.
public struct ManifestItem: Sendable, Hashable {
  /// The key, without the cache's prefix.
  public var key: Key
  /// The hash of the value and all that belongs to it, 1 to 64 bytes.
  public var hash: [UInt8]

  /// An item.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - hash: the hash of the value, 1 to 64 bytes.
  public init(_ key: Key, hash: [UInt8]) {
    self.key = key
    self.hash = hash
  }
}

/// The value of an item as it was fetched.
public struct ManifestValue<Value: Sendable>: Sendable {
  /// The value.
  public var value: Value
  /// Up to 64 labels; nil for those that the key has.
  public var labels: [EntryLabel]?
  /// The hash that the value really has, where the source knows it: one that has changed since it
  /// was listed is not taken, and fetched with the next sync. Nil for the one that was listed.
  public var hash: [UInt8]?
  /// For how long the value is valid; nil for the cache's policy.
  public var maxAge: Duration?
  /// A file beside the log that belongs to the value, written to the cache's store before: see
  /// ``Store/attachmentWriter()``.
  public var attachment: StagedAttachment?

  /// A value.
  /// - Parameters:
  ///   - value: the value.
  ///   - labels: up to 64; nil for those that the key has.
  ///   - hash: the hash that it really has; nil for the one that was listed.
  ///   - maxAge: for how long it is valid; nil for the cache's policy.
  ///   - attachment: a file beside the log that belongs to it.
  public init(
    _ value: Value, labels: [EntryLabel]? = nil, hash: [UInt8]? = nil, maxAge: Duration? = nil,
    attachment: StagedAttachment? = nil
  ) {
    self.attachment = attachment
    self.value = value
    self.labels = labels
    self.hash = hash
    self.maxAge = maxAge
  }
}
