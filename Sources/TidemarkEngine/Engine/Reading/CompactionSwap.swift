/// New segments that are ready to take the place of old ones.
struct CompactionSwap: Sendable {
  var inputs: [Segment]
  var rows: [Manifest.Segment]
  /// Superseded bytes of every row.
  var superseded: [SpaceUsage.Row]
  /// Bytes of cached data in the inputs that could go before they were rewritten.
  var cachedBefore: Int
  /// The highest tombstone that was dropped.
  var droppedThrough: UInt64
  /// The highest cached version that was dropped.
  var evictedThrough: UInt64
}

/// The entries that may go: everything superseded at or below the floor.
struct CompactionFloor: Sendable {
  /// Views at or above it stay answerable.
  var sequence: UInt64
  /// At most this many versions of every key stay.
  var versionsPerKey: UInt32?
  /// The least that an open view, or the next opening after a power cut, needs: everything above
  /// stays, whatever the count of versions, and so does each key's first version at or below.
  var needed: UInt64 = 0
  /// Deletes above stay, also below the limit: somebody has yet to hear of them. The index knows
  /// nothing of those; only who reads the log finds them.
  var deletes = UInt64.max
  /// Cached versions at or below go once something newer has replaced them.
  var cached: UInt64 = 0
  /// Whether anything may go at all.
  var drops: Bool { sequence > 0 || versionsPerKey != nil }
  /// Everything above stays.
  var limit: UInt64 { versionsPerKey == nil ? sequence : needed }
}
