/// A collection of another system, most often a server, that a ``Cache`` mirrors as a whole.
///
/// The collection has a hash, and so has each of its items. As long as the first stays the same
/// nothing else is asked for; when it changes, the list is, and then the items that differ.
///
/// ```swift
/// struct Catalogue: MirrorSource {
///   func collectionHash() async throws -> [UInt8] { try await server.version() }
///   func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws {
///     for try await line in server.index() { try add(MirrorItem(line.key, hash: line.hash)) }
///   }
///   func fetch(_ item: MirrorItem) async throws -> MirrorValue<[UInt8]> {
///     MirrorValue(try await server.item(item.key.text))
///   }
/// }
/// ```
public protocol MirrorSource<Value>: Sendable {
  /// The type of the items' values.
  associatedtype Value: Sendable

  /// Returns the hash of the whole collection, up to 64 bytes. It must change whenever an item is
  /// added, changed or removed, and only then.
  func collectionHash() async throws -> [UInt8]

  /// Lists the items, in any order. A key that comes with two different hashes counts as an item
  /// that has failed, since nobody knows which is right.
  ///
  /// The list must be as new as the hash that was told before, or newer.
  /// - Parameter add: takes an item; what it throws ends the sync, also where it is not passed on.
  func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws

  /// Fetches the value of an item. Several calls run at a time; each should end soon when its task
  /// is cancelled.
  func fetch(_ item: MirrorItem) async throws -> MirrorValue<Value>
}

/// An item of a collection's list: its key and hash, without the value.
public struct MirrorItem: Sendable, Hashable {
  /// The item's key, without the cache's prefix.
  public var key: Key
  /// The hash of the item's value and all that belongs to it, 1 to 64 bytes.
  public var hash: [UInt8]

  /// Creates an item for a collection's list.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - hash: the hash of the value, 1 to 64 bytes.
  public init(_ key: Key, hash: [UInt8]) {
    self.key = key
    self.hash = hash
  }
}

/// The value of an item as ``MirrorSource/fetch(_:)`` returns it.
public struct MirrorValue<Value: Sendable>: Sendable {
  /// The item's value, which the cache stores.
  public var value: Value
  /// The labels of the item, up to 64; nil keeps those that the key has.
  public var labels: [EntryLabel]?
  /// The hash that the fetched value really has; nil for the listed one. When it differs from the
  /// listed hash, the cache does not take the value, and the next sync fetches it.
  public var hash: [UInt8]?
  /// How long the value is valid; nil for the time that the cache's policy says.
  public var maxAge: Duration?
  /// A file beside the log that belongs to the value; nil for none. Write it to the cache's store
  /// first, with ``Store/attachmentWriter()``.
  public var attachment: StagedAttachment?

  /// Creates the value of an item.
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
