/// Says which versions and deletes a compaction may drop; `sequence <= needed`.
///
/// | Sequence of a version         | No count         | `versionsPerKey` is n          |
/// |-------------------------------|------------------|--------------------------------|
/// | above `needed`                | stays            | stays                          |
/// | above `sequence`, to `needed` | stays            | the n newest of its key stay   |
/// | to `sequence`                 | the newest stays | it stays if among the n newest |
///
/// Whatever the count, the newest version up to `needed` stays. Deletes up to both `sequence` and
/// `deletes` go. What peers pin, and puts that touches renew, stays besides.
struct CompactionFloor: Sendable {
  /// What the retention's age and bytes let go; views at or above it can still be answered.
  var sequence: UInt64
  /// At most this many versions of every key stay, counted from the newest one; nil for no count.
  var versionsPerKey: UInt32?
  /// The least that an open view, a projection or the next opening after a power cut needs.
  var needed: UInt64 = 0
  /// Deletes with a higher sequence stay, also at or below the limit: a peer, or somebody who
  /// follows the log, has not read them yet. The index has forgotten their keys; only the log has
  /// them.
  var deletes = UInt64.max
  /// Cached versions at or below go once something newer has replaced them, whatever else stays.
  var cached: UInt64 = 0
  /// Whether a compaction may drop versions of keys that are not cached; `cached` decides on those.
  var drops: Bool { sequence > 0 || versionsPerKey != nil }
  /// Everything above stays.
  var limit: UInt64 { versionsPerKey == nil ? sequence : needed }
}
