/// A value of a ``Cache`` with what is known about it.
public struct CachedEntry<Value: Sendable>: Sendable {
  /// The key, without the cache's prefix.
  public var key: Key
  /// The value.
  public var value: Value
  /// The labels, in byte order.
  public var labels: [EntryLabel]
  /// The validator hash, such as an ETag.
  public var hash: [UInt8]?
  /// The file beside the log that belongs to the value.
  public var attachment: AttachmentReference?
  /// Whether the value was valid when it was read.
  public var isValid: Bool
  /// Until when the value is valid; nil where nothing ends that: it is the user's own.
  public var validUntil: Timestamp?
  /// When the key came into being; in a store of bounded caches that may be when the value was
  /// written. Nil where it would take reading the key's history: ``Cache/entry(forKey:)`` does
  /// that, reads through a cache do not.
  public var created: Timestamp?
  /// When the value was written.
  public var updated: Timestamp
  /// When the value was last known to be right; reading it does not change that.
  public var validated: Timestamp
  /// When it was read last, or written where nobody has read it.
  public var lastUse: Timestamp?
  /// How often it was read.
  public var uses: Int
  /// Whether the user wrote it: then it is valid for ever and is never given up.
  public var isOwned: Bool
}
