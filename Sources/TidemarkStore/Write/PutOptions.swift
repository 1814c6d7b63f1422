internal import TidemarkEngine

/// The properties of a put beside key, value and labels.
public struct PutOptions: Sendable, Hashable {
  /// The caller's own time of the entry, any value; views by own time go by it.
  public var time: Timestamp?
  /// A validator hash, opaque, up to 64 bytes: an ETag, a checksum of the source.
  public var hash: [UInt8]?
  /// For how long the value counts as valid, in whole seconds, rounded up; nil means the default.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  package var maxAgeSeconds: UInt32?
  /// Whose data it is. A cached value is refused with `conflict` where the key holds, or held, what
  /// the user wrote.
  public var storageClass = StorageClass.owned
  /// Where the entry was written first; nil for here.
  public var origin: Origin?
  /// Sequences of entries of this store that a peer must have before this one: those in the
  /// receipts of earlier writes. At most 16.
  public var after: [UInt64] = []
  /// A file beside the log that belongs to the entry: content that is too large for a value, or
  /// that is read in parts. It is part of the entry, and goes with it.
  public var attachment: StagedAttachment?
  /// Entries with a higher priority go to a peer first: above 0 before what is usual, below 0 when
  /// nothing else is left. A hint, which yields to order: a key's changes go in the order of the
  /// writes, entries go behind what they come after, and what others wait for does not wait itself.
  public var priority = 0

  package var schemaVersion: UInt32 = 0

  /// No options: what most puts have, and faster than the same with arguments.
  public init() {}

  /// Options of a put.
  /// - Parameters:
  ///   - time: the caller's own time of the entry.
  ///   - hash: a validator hash, up to 64 bytes.
  ///   - maxAge: for how long the value counts as valid.
  ///   - storageClass: whose data it is.
  ///   - origin: where the entry was written first.
  ///   - after: sequences of entries of this store that a peer must have before this one.
  ///   - priority: what goes to a peer first; 0 is usual.
  ///   - attachment: a file beside the log that belongs to the entry.
  public init(
    time: Timestamp? = nil, hash: [UInt8]? = nil, maxAge: Duration? = nil,
    storageClass: StorageClass = .owned, origin: Origin? = nil, after: [UInt64] = [],
    priority: Int = 0, attachment: StagedAttachment? = nil
  ) {
    self.time = time
    self.hash = hash
    self.storageClass = storageClass
    self.origin = origin
    self.after = after
    self.priority = priority
    self.attachment = attachment
    self.maxAge = maxAge
  }

  var isEmpty: Bool {
    time == nil && hash == nil && maxAgeSeconds == nil && storageClass == .owned && origin == nil
      && after.isEmpty && priority == 0 && attachment == nil && schemaVersion == 0
  }

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

/// The state in which a key must be for a write to go through; if it is not, nothing of the
/// batch is committed and the error is `conflict`.
public enum WriteCondition: Sendable, Hashable {
  /// There is no such key.
  case absent
  /// There is such a key.
  case present
  /// The key's newest entry has this sequence.
  case sequence(UInt64)
  /// The key is there with this validator hash.
  case hash([UInt8])
}
