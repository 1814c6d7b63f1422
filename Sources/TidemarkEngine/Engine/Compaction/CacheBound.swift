/// The limits of a log that holds nothing but caches with bounds, or little besides. Its segments
/// are short, and some of them are compacted once the log is an eighth longer than the bounds.
///
/// On the disk a quarter more than the bounds, and 8 MiB, are taken by ``logBytes``, the active
/// segment, one that waits for a compaction, a compaction's step and the ballast (space set aside).
struct CacheBound: Sendable, Hashable {
  /// The sum of the bounds of all caches, in bytes.
  let bytes: Int

  /// The length at which the active segment is sealed, in bytes.
  var segmentBytes: Int { max(Limits.leastCacheSegmentBytes, bytes / Limits.cacheSegments) }
  /// Bytes of segments that one step of a compaction rewrites, before it removes their files.
  var stepBytes: Int { max(Limits.leastCacheStepBytes, bytes / Limits.cacheSegments) }
  /// The length of the log from which on it is compacted, in bytes.
  var logBytes: Int { bytes + bytes / 8 + segmentBytes }

  /// - Returns: nil where more of the log stays than caches may keep: it holds other data.
  /// - Parameter cached: how many of the log's raw bytes are cached data that can go, counted by
  ///   classes of size: there may be up to twice as much.
  init?(_ bytes: Int, raw: Int, cached: Int) {
    guard bytes > 0, raw - 2 * cached <= bytes + bytes / 8 else { return nil }
    self.bytes = bytes
  }
}
