/// Walks the versions of a key that compaction has kept, newest first, deletes among them: from the
/// index to the newest one, then by each entry's link to the key's previous sequence. Nothing is
/// gathered on the way: a key may have millions.
package struct VersionWalk {
  private let reader: Reader
  private let key: [UInt8]
  private let newestWanted: UInt64
  /// The sequence of the next version to look at; 0 at the end.
  private var upcoming: UInt64

  package init(
    _ reader: Reader, ofKey key: RawSpan, upTo sequence: UInt64 = .max
  ) throws(TidemarkError) {
    self.reader = reader
    self.key = [UInt8](copying: key)
    newestWanted = sequence
    upcoming = try reader.slot(ofKey: key)?.sequence ?? 0
  }

  /// The next older version; nil at the end.
  package mutating func next() throws(TidemarkError) -> LogEntry? {
    // The decoder of heads refuses a link that does not lead to a lower sequence, so this ends.
    while upcoming > 0 {
      guard let entry = try reader.linkedEntry(upcoming) else {
        // Compaction has dropped this version, and with it the link to older ones.
        upcoming = 0
        return nil
      }
      try reader.check(entry, isOf: key.rawSpan)
      upcoming = entry.head.previous
      if entry.sequence <= newestWanted { return entry }
    }
    return nil
  }
}
