/// A read snapshot: the store as of one sequence, or as entries up to a date make it. Until it is
/// freed it "pins" the state that it needs: compaction keeps that.
/// Each entry header names its key's entry before it (`previous`). A view finds its version of a
/// key by walking these links down from the newest entry.
package final class EngineView: Sendable {
  package let reader: Reader
  package let sequence: UInt64
  /// Entries whose own time (given by the caller of the put) is later do not count; nil: all do.
  package let ownTimeLimit: Timestamp?
  /// The epoch of the sequence: what a crash loses is given out again in another epoch.
  package let epoch: UInt64
  /// The state at this and all later entries stay. It is below `sequence` where own times decide.
  let pinned: UInt64

  /// The caller has pinned the sequence, in the hold of the readers' lock that chose it.
  init(
    _ reader: Reader, sequence: UInt64, epoch: UInt64, pinned: UInt64? = nil,
    ownTimeLimit: Timestamp? = nil
  ) {
    self.reader = reader
    self.epoch = epoch
    self.sequence = sequence
    self.pinned = pinned ?? sequence
    self.ownTimeLimit = ownTimeLimit
  }

  deinit { reader.unpin(pinned) }

  /// Whether the view includes an entry of the log.
  package func shows(_ entry: LogEntry) throws(TidemarkError) -> Bool {
    guard entry.sequence <= sequence else { return false }
    guard let ownTimeLimit else { return true }
    return try entry.time() <= ownTimeLimit
  }

  /// The newest entry of a key that counts in the view.
  /// - Returns: nil when the key had no entry yet.
  func version(newest: UInt64) throws(TidemarkError) -> LogEntry? {
    var candidate = newest
    // Links lead strictly downward, so this ends.
    while true {
      guard let entry = try reader.linkedEntry(candidate) else {
        // Beneath an open view compaction drops tombstones and what is older: the key was absent.
        // But a writer in another process knows no views of this one, and may drop more.
        try reader.manifest.checkKept(pinned)
        return nil
      }
      if try shows(entry) { return entry }
      guard entry.head.previous > 0 else { return nil }
      candidate = entry.head.previous
    }
  }

  /// The entry of a key in the view; nil when the key was absent or deleted then.
  package func entry(forKey key: RawSpan) throws(TidemarkError) -> LogEntry? {
    // Before the index, which may lack a key whose tombstone another process has dropped.
    try reader.checkStands(self)
    guard let slot = try reader.slot(ofKey: key) else { return nil }
    if ownTimeLimit == nil, slot.sequence <= sequence, slot.isDeleted { return nil }
    guard let entry = try version(newest: slot.sequence), !entry.head.kind.removes else {
      return nil
    }
    try reader.check(entry, isOf: key)
    return entry
  }
}
