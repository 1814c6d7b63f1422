/// An entry of a ``Cache``: a value with its hash, labels, validity and use.
public struct CachedEntry<Value: Sendable>: Sendable {
  /// The entry's key, without the cache's prefix.
  public var key: Key
  /// The cached value: the server's last one, or the user's own where ``isOwned`` is true.
  public var value: Value
  /// The labels that the value was put with, in byte order.
  public var labels: [EntryLabel]
  /// The validator hash that the server gave with the value, such as an ETag; nil when it gave
  /// none.
  public var hash: [UInt8]?
  /// The file beside the log that belongs to the value; nil when there is none.
  public var attachment: AttachmentReference?
  /// Whether the value was valid at the time of the read; false for a stale value.
  public var isValid: Bool
  /// The time until which the value is valid; nil when it is the user's own and never gets stale.
  public var validUntil: Timestamp?
  /// The time at which the key got its first value since it was last absent. In a store with
  /// bounded caches it may be the time of the last put. Nil where finding it would take reading the
  /// key's history: ``Cache/entry(forKey:)`` does that, reads through a cache do not.
  public var created: Timestamp?
  /// The time at which the value was written.
  public var updated: Timestamp
  /// The time at which the server last sent or confirmed the value. Reading the value does not
  /// change it.
  public var validated: Timestamp
  /// The time of the last read of the entry, or of its put when nobody has read it.
  public var lastUse: Timestamp?
  /// The number of reads of the entry.
  public var uses: Int
  /// Whether the user wrote the value. Then it never gets stale, and the cache never removes it.
  public var isOwned: Bool
}
