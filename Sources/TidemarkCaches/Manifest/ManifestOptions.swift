public import TidemarkEngine

/// How a collection is brought here.
public struct ManifestOptions: Sendable {
  /// How many items are fetched at a time; 1 to 64.
  public var parallelFetches = 8
  /// How long fetching one item may take; then it counts as failed, with `timedOut`.
  public var itemTimeout = Duration.seconds(60)
  /// How long the hash of the collection, and the list of items, may each take.
  public var listTimeout = Duration.seconds(600)
  /// How the hash, the list or an item is asked for again at once where that fails.
  public var retry = RetryPolicy()
  /// The sync is given up, and nothing switched, once more items than this have failed.
  public var mostFailures = 100
  /// When the switch counts as done; nil for the store's.
  public var durability: Durability?
  /// Is told how far it is, after each item.
  public var progress: (@Sendable (ManifestProgress) -> Void)?
  /// Waits; tests put their own in.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// Eight items at a time, a minute for each.
  public init() {}

  /// Asks the source, and asks again where that fails.
  func answer<Answer: Sendable>(
    within limit: Duration, _ ask: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    try await retry.answer(within: limit, timer: sleep, sleep: sleep, ask)
  }
}

extension CachePolicy {
  /// The rules for a cache that equals a collection: no bound, and valid until the source says
  /// otherwise or somebody marks an entry stale.
  public static var manifest: CachePolicy {
    CachePolicy(maxAge: .seconds(100 * 365 * 86_400), capacity: nil)
  }
}

/// How far a sync is.
public struct ManifestProgress: Sendable, Hashable {
  /// Items that are to be fetched in all, those of a sync before that was broken off among them.
  public var total = 0
  /// Items that are here.
  public var fetched = 0
  /// Items that have failed.
  public var failed = 0
  /// Bytes of values that were fetched by this sync.
  public var bytes = 0
}

/// An item that could not be fetched.
public struct ManifestFailure: Sendable {
  /// The key, without the cache's prefix.
  public var key: Key
  /// Why; `timedOut` where the source did not answer in time.
  public var error: any Error
}

/// The outcome of a sync. Where it was held, the counts are those of the switch that has not come.
public struct ManifestOutcome: Sendable {
  /// The three ends of a sync.
  public enum Kind: Sendable, Hashable {
    /// The collection is the one that is here.
    case unchanged
    /// The new generation is here.
    case switched
    /// The old generation stays: too many items have failed. What was fetched is kept for the next
    /// sync.
    case held
  }

  /// The end that the sync has come to.
  public var kind = Kind.unchanged
  /// Items that are new.
  public var added = 0
  /// Items that took the place of an older value.
  public var refetched = 0
  /// Entries that the collection has no more.
  public var deleted = 0
  /// Items that a sync before, which was broken off, had fetched already.
  public var resumed = 0
  /// Items whose key holds, or held, what the user wrote, which stays.
  public var owned = 0
  /// Items that have failed, and are asked for again by the next sync.
  public var outstanding = 0
  /// Why, for the first hundred of them.
  public var failures: [ManifestFailure] = []
}

/// The collection that a cache shows.
public struct ManifestStatus: Sendable {
  /// The sequence of the commit's last entry that switched to it: later generations have higher
  /// ones.
  public var generation: UInt64
  /// The hash of the collection.
  public var collectionHash: [UInt8]
  /// How many items it has.
  public var items: Int
  /// How many of them could not be fetched.
  public var outstanding: Int
  /// Whether it came with the program, and from no server yet.
  public var isPrefilled: Bool
  /// When it was switched to.
  public var switched: Timestamp
}
