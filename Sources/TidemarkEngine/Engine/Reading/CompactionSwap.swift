/// New segments that are ready to take the place of old ones.
struct CompactionSwap: Sendable {
  var inputs: [Segment]
  var rows: [Manifest.Segment]
  /// Superseded bytes of every row.
  var superseded: [SpaceUsage.Row]
  /// Bytes of cached data in the inputs that could go before they were rewritten.
  var cachedBefore: Int
  /// The highest tombstone that was dropped: a run of the index that ends before it would bring the
  /// key back.
  var droppedThrough: UInt64
  /// The highest cached version that was dropped: links up to it may name what is gone.
  var evictedThrough: UInt64
}

/// The entries that may go: everything superseded at or below the floor.
struct CompactionFloor: Sendable {
  /// Superseded entries at or below it go; views at or above it can still be answered.
  var sequence: UInt64
  /// At most this many versions of every key stay.
  var versionsPerKey: UInt32?
  /// The least that an open view, or the next opening after a power cut, needs: everything above
  /// stays, whatever the count of versions, and so does each key's first version at or below.
  var needed: UInt64 = 0
  /// Deletes with a higher sequence stay, also at or below the limit: a peer, or somebody who
  /// follows the log, has not read them yet. The index has forgotten their keys; only the log has
  /// them.
  var deletes = UInt64.max
  /// Cached versions at or below go once something newer has replaced them.
  var cached: UInt64 = 0
  /// Whether anything may go at all.
  var drops: Bool { sequence > 0 || versionsPerKey != nil }
  /// Everything above stays.
  var limit: UInt64 { versionsPerKey == nil ? sequence : needed }
}
