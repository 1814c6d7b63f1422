internal import TidemarkEngine

/// Memory for what several stores have read and decoded of their logs.
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
/// Values by their keys are kept by each store by itself, within its
/// ``Store/Configuration/cacheBytes``.
/// When a store is closed, its part goes as others need the room; that of an encrypted store is in
/// memory as plain as while it was open.
public final class SharedCache: Sendable {
  let caches: LogCaches

  /// - Parameter bytes: most bytes of memory that all stores keep in it; at least 128 KiB.
  public init(bytes: Int) {
    caches = LogCaches(bytes: bytes)
  }

  /// Bytes of memory in use.
  public var bytes: Int { caches.bytes }
}
