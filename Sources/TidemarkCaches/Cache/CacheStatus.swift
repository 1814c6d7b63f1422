/// Counts of a cache's reads and their results. The cache stores them now and then; a crash loses
/// the counts since the last time.
public struct CacheCounts: Sendable, Hashable {
  /// The number of reads that found a valid value.
  public var hits = 0
  /// The number of reads that found a stale value.
  public var staleHits = 0
  /// The number of reads that needed no call of a source, or shared the call of another read.
  public var requestsAvoided = 0
  /// The number of reads that found no value.
  public var misses = 0
  /// The number of entries that were removed to make room for others.
  public var evictions = 0
  /// The number of entries that were removed because they were stale for longer than
  /// ``CachePolicy/maxStale``.
  public var expired = 0
  /// The number of calls of sources.
  public var fetches = 0
  /// The bytes of values that sources did not have to send again, since they answered
  /// ``FetchedValue/notModified(hash:maxAge:)``.
  public var bytesSaved = 0

  /// Creates counts that are all 0.
  public init() {}

  /// The share of reads that found a valid value, 0 to 1; nil when there were no reads.
  public var hitRatio: Double? {
    let reads = Double(hits) + Double(staleHits) + Double(misses)
    return reads > 0 ? Double(hits) / reads : nil
  }

  /// All counts, in the order in which they are kept.
  static var all: [WritableKeyPath<Self, Int>] {
    [
      \.hits, \.staleHits, \.misses, \.evictions, \.fetches, \.requestsAvoided, \.bytesSaved,
      \.expired,
    ]
  }

  mutating func add(_ other: Self) {
    for count in Self.all {
      self[keyPath: count] = self[keyPath: count].addingClamped(other[keyPath: count])
    }
  }
}

/// The facts about a cache at one moment: its policy, entries, bytes and counts.
public struct CacheStatus: Sendable, Hashable {
  /// The rules that the cache keeps to now.
  public var policy: CachePolicy
  /// The number of entries in the cache.
  public var entries: Int
  /// Bytes of the keys, values, labels and attachments of all entries, which
  /// ``CachePolicy/bytes`` bounds.
  public var bytes: Int
  /// The counts of the cache's reads, hits, misses and evictions.
  public var counts: CacheCounts
  /// The last use of the entry that makes room next; nil in an empty cache.
  public var leastRecentUse: Timestamp?
}
