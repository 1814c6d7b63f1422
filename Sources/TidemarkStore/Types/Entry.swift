package import TidemarkEngine

/// One entry of a store: a version of a key, with its value and all that is known about it.
public struct Entry: Sendable, Hashable {
  /// The operation of an entry.
  public enum Kind: Sendable, Hashable {
    /// Wrote a value.
    case put
    /// Removed the key.
    case delete
    /// Renewed the validity of the value, which is that of an earlier put.
    case touch
    /// Gave up a cached value; the key reads as absent, but was not deleted.
    case evict
  }

  /// The key.
  public var key: Key
  /// The value; empty for a delete and where values were not asked for.
  public var value: [UInt8]
  /// The value's length in bytes, also where it was not asked for.
  public var valueLength: Int
  /// Where the entry stands in the store's order.
  public var sequence: UInt64
  /// The operation of the entry.
  public var kind: Kind
  /// The labels, in byte order.
  public var labels: [EntryLabel]
  /// The caller's own time.
  public var time: Timestamp?
  /// The caller's validator hash.
  public var hash: [UInt8]?
  /// For how long after ``validated`` the value counts as valid; nil means the default.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  package var maxAgeSeconds: UInt32?
  /// Whose data it is.
  public var storageClass: StorageClass
  package var schemaVersion: UInt32 = 0
  /// The file beside the log that belongs to the entry; opened by
  /// ``StoreReader/attachment(forKey:)``.
  public var attachment: AttachmentReference?
  /// The replica and sequence that the entry was first written with, where it came from another
  /// store.
  public var origin: Origin?
  /// When the oldest version since the key was last absent was committed. Nil where finding it
  /// would mean to walk the key's history: ``StoreReader/entry(forKey:)`` does that, scans do
  /// not.
  public var created: Timestamp?
  /// When the value was committed.
  public var updated: Timestamp
  /// When the value was last known to be valid: ``updated``, or the newest touch.
  public var validated: Timestamp
}

/// Whose data an entry is.
public enum StorageClass: Sendable, Hashable {
  /// The user's: never given up before it is safe elsewhere.
  case owned
  /// A copy of what a server has: may expire and be given up.
  case cache
}

/// The id of a change: where it was written first.
public struct Origin: Sendable, Hashable {
  /// The replica that wrote the entry first, 16 bytes.
  public var replica: [UInt8]
  /// The sequence that the entry has there.
  public var sequence: UInt64

  /// The id of a change.
  /// - Parameters:
  ///   - replica: the replica that wrote it first, 16 bytes.
  ///   - sequence: the sequence that it has there.
  public init(replica: [UInt8], sequence: UInt64) {
    self.replica = replica
    self.sequence = sequence
  }
}

extension Entry {
  package init(key: [UInt8], value: [UInt8], info: EntryInfo, created: Timestamp?) {
    let attributes = info.attributes
    self.init(
      key: Key(key), value: value, valueLength: info.valueLength, sequence: info.sequence,
      kind: Kind(info.kind), labels: info.labels.map { EntryLabel($0) }, time: attributes.time,
      hash: attributes.hash, maxAgeSeconds: attributes.maxAge,
      storageClass: StorageClass(attributes.entryClass), schemaVersion: attributes.schemaVersion,
      attachment: attributes.attachment.map { AttachmentReference($0) },
      origin: attributes.origin.map { Origin($0) },
      created: created, updated: HybridTime(info.updated).timestamp,
      validated: HybridTime(info.commitTime).timestamp)
  }
}

extension Origin {
  package init(_ origin: EntryAttributes.Origin) {
    self.init(replica: origin.replica, sequence: origin.sequence)
  }
}

extension Entry.Kind {
  /// The engine's own records are never shown, so they need no kind.
  init(_ kind: EntryKind) {
    switch kind {
    case .put, .record: self = .put
    case .delete: self = .delete
    case .touch: self = .touch
    case .evict: self = .evict
    }
  }
}

extension StorageClass {
  init(_ entryClass: EntryAttributes.Class) { self = entryClass == .cache ? .cache : .owned }
}

extension Slot {
  /// Whether the key holds a cached value.
  package var isLiveCached: Bool { !isDeleted && size.isCached }
}
