/// The rules of a ``Cache``: how long its entries are valid, and how many entries and bytes it
/// keeps.
///
/// ```swift
/// let policy = CachePolicy(maxAge: .seconds(60), capacity: 1_000, bytes: 20 << 20)
/// ```
public struct CachePolicy: Sendable, Hashable {
  /// How long an entry is valid when its put says nothing else; 300 seconds by default. With zero
  /// it is stale at once.
  public var maxAge: Duration
  /// How long a stale entry stays. After that one of the cache's next writes removes it. Nil, the
  /// default, keeps it until it has to make room.
  public var maxStale: Duration?
  /// The most entries in the cache, 150 by default; nil for any number.
  public var capacity: Int?
  /// The most bytes of keys, values, labels and attachments; nil, the default, for any number. Each
  /// entry beyond the first 4,096 counts 192 bytes more, for its places in log and index.
  public var bytes: Int?

  /// Creates the rules of a cache.
  /// - Parameters:
  ///   - maxAge: how long an entry is valid when its put says nothing else; 300 seconds by default.
  ///   - maxStale: how long a stale entry stays; nil, the default, until it has to make room.
  ///   - capacity: the most entries, 150 by default. The least recently used entry makes room.
  ///   - bytes: the most bytes of all entries, see ``CachePolicy/bytes``; nil for any number.
  public init(
    maxAge: Duration = .seconds(300), maxStale: Duration? = nil, capacity: Int? = 150,
    bytes: Int? = nil
  ) {
    self.maxAge = maxAge
    self.maxStale = maxStale
    self.capacity = capacity
    self.bytes = bytes
  }
}
