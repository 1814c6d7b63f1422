public import TidemarkEngine

/// Settings of a cache's sync with a ``MirrorSource``: parallel fetches, time limits, retries and
/// progress.
public struct MirrorOptions: Sendable {
  /// The number of items that are fetched at a time, 1 to 64; 8 by default.
  public var parallelFetches = 8
  /// How long fetching one item may take, 60 seconds by default. After that the item counts as
  /// failed, with `timedOut`.
  public var itemTimeout = Duration.seconds(60)
  /// How long the collection's hash and its list may each take; 600 seconds by default.
  public var listTimeout = Duration.seconds(600)
  /// The rule by which a failed request for the hash, the list or an item is repeated; by default
  /// it is not.
  public var retry = RetryPolicy()
  /// The most items that may fail, 100 by default. When more fail, the sync ends and keeps the old
  /// generation.
  public var mostFailures = 100
  /// The durability of the commit that switches to the new generation; nil for the store's.
  public var durability: Durability?
  /// A closure that is called with the sync's progress after each item; nil for none.
  public var progress: (@Sendable (MirrorProgress) -> Void)?
  /// Waits; tests put their own in.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// Creates the default settings: 8 items at a time, and 60 seconds for each.
  public init() {}

  /// Asks the source, and asks again where that fails.
  func answer<Answer: Sendable>(
    within limit: Duration, _ ask: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    try await retry.answer(within: limit, timer: sleep, sleep: sleep, ask)
  }
}

extension CachePolicy {
  /// The policy for a cache that mirrors a whole collection: no bound, and entries stay valid until
  /// the source says otherwise or somebody marks them stale.
  public static var manifest: CachePolicy {
    CachePolicy(maxAge: .seconds(100 * 365 * 86_400), capacity: nil)
  }
}

/// The progress of a sync, as ``MirrorOptions/progress`` gets it.
public struct MirrorProgress: Sendable, Hashable {
  /// The number of items to fetch in all, with those that an earlier interrupted sync has fetched.
  public var total = 0
  /// The number of items that are fetched so far.
  public var fetched = 0
  /// The number of items that could not be fetched so far.
  public var failed = 0
  /// The bytes of values that this sync has fetched so far.
  public var bytes = 0
}

/// An item that a sync could not fetch, with the error.
public struct MirrorFailure: Sendable {
  /// The item's key, without the cache's prefix.
  public var key: Key
  /// The error of the last attempt; `timedOut` when the source did not answer in time.
  public var error: any Error
}

/// The result of a sync. When its kind is `held`, the counts are those of the switch that has not
/// happened.
public struct MirrorOutcome: Sendable {
  /// The way in which a sync ended.
  @nonexhaustive
  public enum Kind: Sendable, Hashable {
    /// The collection's hash is the same as at the last sync, so nothing was fetched.
    case unchanged
    /// The cache shows the new generation.
    case switched
    /// The cache still shows the old generation, since too many items failed. The next sync uses
    /// the items that were fetched.
    case held
  }

  /// Whether the sync found no change, has switched, or kept the old generation.
  public var kind = Kind.unchanged
  /// The number of items that were not in the cache before.
  public var added = 0
  /// The number of items that replaced an older value.
  public var refetched = 0
  /// The number of entries that were removed because the collection no longer has them.
  public var deleted = 0
  /// The number of items that an earlier interrupted sync had fetched already.
  public var resumed = 0
  /// The number of items that were skipped because the user's own data holds, or held, their key.
  public var owned = 0
  /// The number of items that failed; the next sync fetches them again.
  public var outstanding = 0
  /// The first hundred failed items with their errors.
  public var failures: [MirrorFailure] = []
}

/// The generation of a mirrored collection that a cache shows.
public struct MirrorStatus: Sendable {
  /// The number of the generation: the sequence of the last entry of the commit that switched to
  /// it. A later generation has a higher one.
  public var generation: UInt64
  /// The hash of the collection in this generation, as the source gave it.
  public var collectionHash: [UInt8]
  /// The number of items in the collection.
  public var items: Int
  /// The number of items that could not be fetched.
  public var outstanding: Int
  /// Whether the data came with the program, so that no server has sent any yet.
  public var isPrefilled: Bool
  /// The time at which the cache switched to this generation.
  public var switched: Timestamp
}
