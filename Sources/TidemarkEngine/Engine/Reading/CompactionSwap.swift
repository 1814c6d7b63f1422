/// A new segment, written and synced, that one update of MANIFEST is to put in the place of others.
struct CompactionSwap: Sendable {
  var inputs: [Segment]
  /// What MANIFEST is to list of the new segment; nil if no entry stays.
  var row: Manifest.Segment?
  /// Bytes of superseded versions in the new segment, as the compaction counted them.
  var superseded: SpaceUsage.Row
  /// Superseded bytes of cached data in `inputs` when the rewrite began; later ones are added.
  var cachedBefore: Int
  /// The highest tombstone that was dropped. Sorted runs of the index that end before it must go:
  /// they still have the deleted key.
  var droppedThrough: UInt64
  /// The highest cached version that was dropped: links (`previous`) up to here may lead nowhere.
  var evictedThrough: UInt64
}
