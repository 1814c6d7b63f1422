internal import TidemarkEngine

/// Optional properties of a put: time, validator hash, validity, owner, attachment and priority.
public struct PutOptions: Sendable, Hashable {
  /// The entry's own time, of any value; nil for none. Views by own time show or leave out the
  /// entry by it.
  public var time: Timestamp?
  /// A validator hash for the value, such as an ETag: up to 64 opaque bytes; nil for none.
  public var hash: [UInt8]?
  /// How long the value counts as valid, in whole seconds, rounded up; nil means the default.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  package var maxAgeSeconds: UInt32?
  /// Whether the user or a server owns the data; the user by default. A put of a cached value
  /// throws `conflict` where the key's newest entry is the user's, also when that is a delete.
  public var storageClass = StorageClass.owned
  /// The replica that wrote the entry first, and its sequence there; nil when this store does.
  public var origin: EntryOrigin?
  /// Sequences of this store's entries that a peer must have before this one, from the receipts of
  /// earlier writes. At most 16.
  public var after: [UInt64] = []
  /// A file beside the log that belongs to the entry; nil for none. Use it for content that is too
  /// large for a value, or that is read in parts. Once no entry names the file, compaction removes
  /// it.
  public var attachment: StagedAttachment?
  /// The rank of the entry when changes are sent to a peer: a higher priority goes first, and 0 is
  /// usual. Changes of one key go in the order of the writes. An entry goes after those in its
  /// ``after``, which go as early as its own priority asks.
  public var priority = 0
  package var schemaVersion: UInt32 = 0

  /// Creates options with all defaults; faster than the initializer with parameters.
  public init() {}

  /// Creates options for a put. Every parameter has a default, so that you name only those you
  /// need.
  /// - Parameters:
  ///   - time: the entry's own time; nil for none.
  ///   - hash: a validator hash such as an ETag, up to 64 bytes; nil for none.
  ///   - maxAge: how long the value counts as valid; nil means the default.
  ///   - storageClass: whether the user or a server owns the data; the user by default.
  ///   - origin: the replica that wrote the entry first, and its sequence there; nil for this
  ///     store.
  ///   - after: sequences of this store's entries that a peer must have before this one; at most
  ///     16.
  ///   - priority: the rank when changes are sent to a peer; a higher one goes first, and 0 is
  ///     usual.
  ///   - attachment: a file beside the log that belongs to the entry; nil for none.
  public init(
    time: Timestamp? = nil, hash: [UInt8]? = nil, maxAge: Duration? = nil,
    storageClass: StorageClass = .owned, origin: EntryOrigin? = nil, after: [UInt64] = [],
    priority: Int = 0, attachment: StagedAttachment? = nil
  ) {
    (self.time, self.hash, self.storageClass) = (time, hash, storageClass)
    (self.origin, self.after) = (origin, after)
    (self.priority, self.attachment) = (priority, attachment)
    self.maxAge = maxAge
  }

  /// Whether a put says nothing besides key, value and labels; every property is compared here.
  var isEmpty: Bool {
    time == nil && hash == nil && maxAgeSeconds == nil && storageClass == .owned && origin == nil
      && after.isEmpty && priority == 0 && attachment == nil && schemaVersion == 0
  }

  /// The engine's form.
  var attributes: EntryAttributes {
    var attributes = EntryAttributes()
    attributes.time = time
    attributes.hash = hash
    attributes.maxAge = maxAgeSeconds
    attributes.entryClass = storageClass == .cache ? .cache : .owned
    attributes.origin = origin.map { .init(replica: $0.replica, sequence: $0.sequence) }
    attributes.after = after
    attributes.priority = Int64(priority)
    attributes.schemaVersion = schemaVersion
    attributes.attachment = attachment?.hold.id
    return attributes
  }
}

/// A compare-and-set condition on the state of a key before the batch. If it does not hold, nothing
/// of the batch is committed and the write throws `conflict`.
public enum WriteCondition: Sendable, Hashable {
  /// The key must have no value.
  case absent
  /// The key must have a value.
  case present
  /// The key must have a value, and its newest entry must have this sequence.
  case sequence(UInt64)
  /// The key must have a value with this validator hash.
  case hash([UInt8])
}
