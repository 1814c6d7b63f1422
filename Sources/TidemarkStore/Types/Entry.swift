package import TidemarkEngine

/// One entry of a store's log: a version of a key, with its value and metadata.
public struct Entry: Sendable, Hashable {
  /// The operation of an entry.
  public enum Kind: Sendable, Hashable {
    /// Wrote a value.
    case put
    /// Removed the key.
    case delete
    /// Renewed the validity of the value of an earlier put, which it refers to and does not repeat.
    case touch
    /// Removed a cached value to make room; the key reads as absent, though nobody deleted it.
    case evict
  }

  /// The key.
  public var key: Key
  /// The value; empty for a delete and where values were not asked for.
  public var value: [UInt8]
  /// The value's length in bytes, also where the value was not asked for.
  public var valueLength: Int
  /// The entry's sequence: entries are numbered in the order of their commits.
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
  /// Whether the user or a server owns the data.
  public var storageClass: StorageClass
  package var schemaVersion: UInt32 = 0
  /// The file beside the log that belongs to the entry; opened by
  /// ``StoreReader/attachment(forKey:)``.
  public var attachment: AttachmentReference?
  /// The replica and sequence that the entry was first written with, where it came from another
  /// store.
  public var origin: Origin?
  /// When the oldest version since the key was last absent was committed. Nil where only a walk
  /// over older versions tells: ``StoreReader/entry(forKey:)`` makes one, scans do not.
  public var created: Timestamp?
  /// When the value was committed, by the put.
  public var updated: Timestamp
  /// When the value was last known to be valid: the commit time of this entry, a put or a touch.
  public var validated: Timestamp
}

/// Who owns the data of an entry.
public enum StorageClass: Sendable, Hashable {
  /// The user: the store never evicts it.
  case owned
  /// A server: the entry is a copy that may expire and be evicted.
  case cache
}

/// The id of a change in all replicas: the replica that wrote it first, and its sequence there.
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
    (self.replica, self.sequence) = (replica, sequence)
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
  /// Records, the engine's own entries, are never shown to programs, so they need no kind.
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

// A slot is what the index knows of a key's newest entry.
extension Slot {
  /// Whether the key is present and its value is cached.
  package var isLiveCached: Bool { !isDeleted && size.isCached }
}
