internal import TidemarkEngine

/// What a put may say besides key, value and labels.
public struct PutOptions: Sendable, Hashable {
  /// The entry's own time, any value; views by own time show or leave out the entry by it.
  public var time: Timestamp?
  /// A validator hash, opaque, up to 64 bytes: an ETag, a checksum of the source.
  public var hash: [UInt8]?
  /// For how long the value counts as valid, in whole seconds, rounded up; nil means the default.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  package var maxAgeSeconds: UInt32?
  /// Who owns the data. A put of a cached value throws `conflict` where the key's newest entry, a
  /// delete as well, is the user's.
  public var storageClass = StorageClass.owned
  /// The replica and sequence that wrote the entry first; nil where this store does.
  public var origin: Origin?
  /// Sequences of entries of this store that a peer must have before this one: those in the
  /// receipts of earlier writes. At most 16.
  public var after: [UInt64] = []
  /// A file beside the log that belongs to the entry: content that is too large for a value, or
  /// that is read in parts. Once no entry names the file, compaction removes it.
  public var attachment: StagedAttachment?
  /// Entries with a higher priority are sent to a peer first; 0 is usual. But changes of one key go
  /// in the order of the writes, and an entry goes after those in its ``after``, which go as early
  /// as its own priority asks.
  public var priority = 0
  package var schemaVersion: UInt32 = 0

  /// No options, which most puts have; faster than the initializer with default arguments.
  public init() {}

  /// Options of a put.
  /// - Parameters:
  ///   - time: the caller's own time of the entry.
  ///   - hash: a validator hash, up to 64 bytes.
  ///   - maxAge: for how long the value counts as valid.
  ///   - storageClass: who owns the data.
  ///   - origin: where the entry was written first.
  ///   - after: sequences of entries of this store that a peer must have before this one.
  ///   - priority: entries with a higher one are sent to a peer first; 0 is usual.
  ///   - attachment: a file beside the log that belongs to the entry.
  public init(
    time: Timestamp? = nil, hash: [UInt8]? = nil, maxAge: Duration? = nil,
    storageClass: StorageClass = .owned, origin: Origin? = nil, after: [UInt64] = [],
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
  /// The key is absent.
  case absent
  /// The key is present.
  case present
  /// The key is present, and its newest entry has this sequence.
  case sequence(UInt64)
  /// The key is present with this validator hash.
  case hash([UInt8])
}
