/// The store as it was after one sequence, or what entries with certain times of their own make of
/// it; what it needs stays until it goes.
package final class EngineView: Sendable {
  package let reader: Reader
  package let sequence: UInt64
  /// Entries with a later time of their own do not count; nil when all do.
  package let ownTimeLimit: Timestamp?
  /// The epoch of the sequence.
  package let epoch: UInt64
  /// The state of this sequence, and all behind it, is kept for the view.
  let pinned: UInt64

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

  /// Whether an entry of the log counts.
  package func shows(_ entry: LogEntry) throws(TidemarkError) -> Bool {
    guard entry.sequence <= sequence else { return false }
    guard let ownTimeLimit else { return true }
    return try entry.time() <= ownTimeLimit
  }

  /// The newest entry of a key that counts in the view.
  /// - Parameter newest: the key's newest sequence.
  /// - Returns: nil when the key had no entry yet.
  func version(newest: UInt64) throws(TidemarkError) -> LogEntry? {
    var candidate = newest
    // Links lead strictly downward, so this ends.
    while true {
      guard let entry = try reader.linkedEntry(candidate) else {
        try Reader.checkKept(pinned, reader.manifest)
        return nil
      }
      if try shows(entry) { return entry }
      guard entry.head.previous > 0 else { return nil }
      candidate = entry.head.previous
    }
  }

  /// The entry of a key in the view; nil when the key was absent or deleted then.
  package func entry(forKey key: RawSpan) throws(TidemarkError) -> LogEntry? {
    // Also when the key is not found: its tombstone may have gone with the history.
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
