/// How often a cache was asked, and what came of it. The counts are kept with the order of use: a
/// crash takes those since it was written last.
public struct CacheCounts: Sendable, Hashable {
  /// Reads that found a valid value.
  public var hits = 0
  /// Reads that found a value that is valid no more.
  public var staleHits = 0
  /// Reads for which no source was asked, or which shared another one's question.
  public var requestsAvoided = 0
  /// Reads that found nothing.
  public var misses = 0
  /// Entries that made room for others.
  public var evictions = 0
  /// Entries that went since they had been stale for as long as the policy keeps them.
  public var expired = 0
  /// Questions to sources.
  public var fetches = 0
  /// Bytes of values of which sources have said that they are still right.
  public var bytesSaved = 0

  /// No reads yet.
  public init() {}

  /// The share of reads that found a valid value; nil where nothing was read.
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

/// The facts about a cache at one moment.
public struct CacheStatus: Sendable, Hashable {
  /// Its rules.
  public var policy: CachePolicy
  /// How many entries it has.
  public var entries: Int
  /// Bytes of the keys, values, labels and attachments of all entries, which
  /// ``CachePolicy/bytes`` bounds.
  public var bytes: Int
  /// How often it was asked.
  public var counts: CacheCounts
  /// The last use of the entry that makes room next; nil in an empty cache.
  public var leastRecentUse: Timestamp?
}
