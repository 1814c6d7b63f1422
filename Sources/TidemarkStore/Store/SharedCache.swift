internal import TidemarkEngine

/// A cache of decoded blocks and entry headers of the log, shared by several stores.
///
/// Each store has caches of its own unless its configuration names one of these; a program with
/// hundreds of stores gives all of them the same, so that those in use have the memory of those
/// that are not:
///
/// ```swift
/// let cache = SharedCache(bytes: 256 << 20)
/// var configuration = Store.Configuration(cacheBytes: 0)
/// configuration.sharedCache = cache
/// ```
/// Values by their keys are cached by each store by itself, within its
/// ``Store/Configuration/cacheBytes``.
/// What a closed store leaves here is evicted as others need the room; until then the content of
/// an encrypted store stays in memory in plain form.
public final class SharedCache: Sendable {
  let caches: LogCaches

  /// Creates a cache to share between stores.
  /// - Parameter bytes: the most bytes of memory that all stores together keep in it; at least 128
  ///   KiB.
  public init(bytes: Int) { caches = LogCaches(bytes: bytes) }

  /// The bytes of memory that the cache uses now, for all of its stores.
  public var bytes: Int { caches.bytes }
}
