public import TidemarkEngine

extension Store {
  /// The caches that were used in this store, in this opening or an earlier one, by prefix.
  ///
  /// They are known by a small file that each writes beside the log now and then: a cache that was
  /// used for the first time shortly before a crash may be missing.
  /// - Throws: `damaged`, `closed`, `inputOutput`.
  public func knownCaches() throws(TidemarkError) -> [KnownCache] {
    var found: [[UInt8]: CacheRegion] = [:]
    let most = Self.mostKnown
    for saved in try SavedOrder.all(engine.writer, most: most, withUses: false).map(\.cache) {
      found[saved.prefix] = CacheRegion(engine, prefix: saved.prefix, policy: saved.policy)
    }
    for region in registry.regions.withLock({ $0 }) { found[region.prefix] = region }
    let sorted = found.values.sorted { $0.prefix.lexicographicallyPrecedes($1.prefix) }
    return try sorted.map { (region) throws(TidemarkError) in
      KnownCache(prefix: Key(region.prefix), status: try region.status())
    }
  }

  /// All keys as one cache with the rules that a cache has by default, to look at entries of which
  /// no cache is known.
  package func cacheOfEverything() -> Cache<[UInt8]> {
    let region = CacheRegion(engine, prefix: [], policy: CachePolicy())
    return Cache(store: self, region: region, coding: .bytes)
  }

  /// Most caches that are looked for.
  private static let mostKnown = 4_096
}

/// A cache that was used in a store, as ``Store/knownCaches()`` lists them.
public struct KnownCache: Sendable, Hashable {
  /// The prefix with which the cache's keys begin.
  public var prefix: Key
  /// The facts about the cache, with the policy that it was given last.
  public var status: CacheStatus
}

extension Cache {
  /// Lists the entries that make room next, the least recently used first.
  /// - Parameter limit: how many at most.
  /// - Returns: the entries; to list them is no use of any.
  public func leastRecentlyUsed(
    limit: Int = 20
  ) throws(TidemarkError) -> [CachedEntry<Value>] {
    var entries: [CachedEntry<Value>] = []
    for use in try region.leastRecent(limit) {
      guard let entry = try region.engine.reader.entryIfKept(at: use.sequence) else { continue }
      let key = Key(Array(entry.key.dropFirst(region.prefix.count)))
      if let cached = try peek(key), !cached.isOwned { entries.append(cached) }
    }
    return entries
  }
}
