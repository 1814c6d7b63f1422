/// How a log that may be all of caches with bounds is kept within these: it is in short segments,
/// of which a few at a time are rewritten once it takes an eighth more.
///
/// A log of ``logBytes``, the segment that is being written, the one that waits for a compaction, a
/// step of that and the ballast take a quarter more than the caches may keep, and 8 MiB.
struct CacheBound: Sendable, Hashable {
  /// Most bytes that the caches keep.
  let bytes: Int

  /// A segment is sealed once it has so many.
  var segmentBytes: Int { max(Limits.leastCacheSegmentBytes, bytes / Limits.cacheSegments) }
  /// Segments of so many bytes are rewritten together, and given back before the next.
  var stepBytes: Int { max(Limits.leastCacheStepBytes, bytes / Limits.cacheSegments) }
  /// The log is compacted once it takes so many.
  var logBytes: Int { bytes + bytes / 8 + segmentBytes }

  /// - Returns: nil where more stays of the log than caches may keep.
  /// - Parameters:
  ///   - bytes: most bytes that the caches keep, as far as they have a bound.
  ///   - raw: raw bytes of the log.
  ///   - cached: how many of them are cached data that can go, counted by classes of size: there
  ///     may be up to twice as much.
  init?(_ bytes: Int, raw: Int, cached: Int) {
    guard bytes > 0, raw - 2 * cached <= bytes + bytes / 8 else { return nil }
    self.bytes = bytes
  }
}
