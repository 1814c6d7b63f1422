/// Which versions and deletes a compaction may drop. Always `sequence <= needed`.
///
/// | Sequence of a version         | No count         | `versionsPerKey` is n          |
/// |-------------------------------|------------------|--------------------------------|
/// | above `needed`                | stays            | stays                          |
/// | above `sequence`, to `needed` | stays            | the n newest of its key stay   |
/// | to `sequence`                 | the newest stays | it stays if among the n newest |
///
/// Whatever the count, the newest version up to `needed` stays: the oldest open view reads it. A
/// delete goes if it is at or below both `sequence` and `deletes`. Versions that a sync peer pins
/// stay, and puts whose value a touch (an entry that renews a value's validity) points to.
struct CompactionFloor: Sendable {
  /// Up to here the retention's age or size lets superseded versions go; views from here on work.
  var sequence: UInt64
  /// At most this many versions of every key stay, counted from the newest one; nil for no count.
  var versionsPerKey: UInt32?
  /// The lowest state that a view, a projection or the next opening after a power cut needs.
  var needed: UInt64 = 0
  /// Deletes above this stay, whatever `sequence` says: a follower of the log has not read them.
  var deletes = UInt64.max
  /// Superseded versions of cached data up to here go, whatever the retention: the server has them.
  var cached: UInt64 = 0
  /// Whether a compaction may drop versions of keys that are not cached; `cached` decides on those.
  var drops: Bool { sequence > 0 || versionsPerKey != nil }
  /// Every version above this stays; those up to here are judged by the table.
  var limit: UInt64 { versionsPerKey == nil ? sequence : needed }
}
