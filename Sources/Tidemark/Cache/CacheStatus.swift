/// How often a cache was asked, and what came of it, since the store was opened.
public struct CacheCounts: Sendable, Hashable {
  /// Reads that found a valid value.
  public var hits = 0
  /// Reads that found a value that is valid no more.
  public var staleHits = 0
  /// Reads that found nothing.
  public var misses = 0
  /// Entries that made room for others.
  public var evictions = 0
  /// Questions to sources.
  public var fetches = 0
  /// Reads for which no source was asked, or which shared another one's question.
  public var requestsAvoided = 0
  /// Bytes of values of which sources have said that they are still right.
  public var bytesSaved = 0

  /// No reads yet.
  public init() {}
}

/// The facts about a cache at one moment.
public struct CacheStatus: Sendable, Hashable {
  /// Its rules.
  public var policy: CachePolicy
  /// How many entries it has.
  public var entries: Int
  /// Bytes of their keys and values.
  public var bytes: Int
  /// How often it was asked.
  public var counts: CacheCounts
  /// The last use of the entry that makes room next; nil in an empty cache.
  public var leastRecentUse: Timestamp?
}
