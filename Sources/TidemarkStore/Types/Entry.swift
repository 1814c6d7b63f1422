package import TidemarkEngine

/// One entry of a store's log: a version of a key, with its value and metadata.
public struct Entry: Sendable, Hashable {
  /// The operation of an entry: put, delete, touch or evict.
  @nonexhaustive
  public enum Kind: Sendable, Hashable {
    /// The entry wrote a value.
    case put
    /// The entry removed the key.
    case delete
    /// The entry renewed the validity of an earlier put's value. It refers to that value and does
    /// not repeat it.
    case touch
    /// The entry removed a cached value to make room. The key reads as absent, though nobody
    /// deleted it.
    case evict
  }

  /// The key that the entry wrote or removed.
  public var key: Key
  /// The value that was written; empty for a delete, and where the read asked for no values.
  public var value: [UInt8]
  /// The length of the value in bytes, also where the read asked for no values.
  public var valueLength: Int
  /// The entry's number in the store: entries are numbered in the order of their commits.
  public var sequence: UInt64
  /// The operation that the entry stands for: put, delete, touch or evict.
  public var kind: Kind
  /// The labels of this version of the key, in byte order.
  public var labels: [EntryLabel]
  /// The time that the writer gave in ``PutOptions/time``; nil when none was given.
  public var time: Timestamp?
  /// The validator hash that the writer gave, such as an ETag; nil when none was given.
  public var hash: [UInt8]?
  /// How long the value counts as valid after ``validated``; nil means the default.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  package var maxAgeSeconds: UInt32?
  /// Whether the user owns the value, or the value is a copy of a server's data.
  public var storageClass: StorageClass
  package var schemaVersion: UInt32 = 0
  /// The file beside the log that belongs to the entry; nil when there is none.
  /// ``StoreReader/attachment(forKey:)`` opens it.
  public var attachment: AttachmentReference?
  /// The replica that wrote the entry first, and its sequence there; nil when this store wrote it.
  public var origin: EntryOrigin?
  /// The commit time of the oldest version since the key was last absent. Nil where only a read of
  /// older versions would tell: ``StoreReader/entry(forKey:)`` reads them, scans do not.
  public var created: Timestamp?
  /// The time of the put that wrote the value, by the store's clock.
  public var updated: Timestamp
  /// The time at which the value was last known to be valid: the commit time of this put or touch.
  public var validated: Timestamp
}

/// The owner of an entry's data: the user or a server.
public enum StorageClass: Sendable, Hashable {
  /// The user owns the data, and the store never evicts it.
  case owned
  /// A server owns the data: the entry is a copy that may expire and be evicted.
  case cache
}

/// The id of a change in all replicas: the replica that wrote it first, and its sequence there.
public struct EntryOrigin: Sendable, Hashable {
  /// The replica that wrote the entry first, 16 bytes.
  public var replica: [UInt8]
  /// The sequence that the entry has at the replica that wrote it first.
  public var sequence: UInt64

  /// Creates the id of a change from the replica that made it and its sequence there.
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
      origin: attributes.origin.map { EntryOrigin($0) },
      created: created, updated: HybridTime(info.updated).timestamp,
      validated: HybridTime(info.commitTime).timestamp)
  }
}

extension EntryOrigin {
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
