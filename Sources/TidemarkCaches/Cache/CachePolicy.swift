/// The rules by which a ``Cache`` keeps what a server has.
///
/// ```swift
/// let policy = CachePolicy(maxAge: .seconds(60), capacity: 1_000, bytes: 20 << 20)
/// ```
public struct CachePolicy: Sendable, Hashable {
  /// For how long an entry counts as valid that does not say otherwise; zero for never.
  public var maxAge: Duration
  /// For how long an entry stays that is valid no more: then it goes with one of the cache's next
  /// writes; nil keeps it until it has to make room.
  public var maxStale: Duration?
  /// Most entries; nil for any number.
  public var capacity: Int?
  /// Most bytes of keys, values, labels and attachments; nil for any number. Beyond 4,096 entries
  /// each counts 192 bytes more, for its places in log and index.
  public var bytes: Int?

  /// Rules for a cache.
  /// - Parameters:
  ///   - maxAge: for how long an entry counts as valid that does not say otherwise.
  ///   - maxStale: for how long an entry stays that is valid no more; nil for any time.
  ///   - capacity: most entries; the one that was used least recently makes room.
  ///   - bytes: most bytes, see ``CachePolicy/bytes``.
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
