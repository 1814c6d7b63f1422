/// New segments that are ready to take the place of old ones.
struct CompactionSwap: Sendable {
  var inputs: [Segment]
  /// What MANIFEST lists of the new segments; empty where no entry stays.
  var rows: [Manifest.Segment]
  /// Superseded bytes of each of `rows`.
  var superseded: [SpaceUsage.Row]
  /// Bytes of cached data in the inputs that could go when the rewrite began. What was given up
  /// since is counted for the new segments.
  var cachedBefore: Int
  /// The highest tombstone that was dropped. A sorted run of the index that ends before it still
  /// has the deleted key, so that the run must go.
  var droppedThrough: UInt64
  /// The highest cached version that was dropped: up to it, what an entry names as its `previous`
  /// may be gone.
  var evictedThrough: UInt64
}
