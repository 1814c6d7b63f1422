/// Walks the versions of a key that are kept, newest first, deletes among them. Nothing is gathered
/// on the way: a key may have millions.
package struct VersionWalk {
  private let reader: Reader
  private let key: [UInt8]
  private let last: UInt64
  private var upcoming: UInt64

  /// - Parameters:
  ///   - key: the key.
  ///   - sequence: newer versions are passed over.
  package init(
    _ reader: Reader, ofKey key: RawSpan, upTo sequence: UInt64 = .max
  ) throws(TidemarkError) {
    self.reader = reader
    self.key = [UInt8](copying: key)
    last = sequence
    upcoming = try reader.slot(ofKey: key)?.sequence ?? 0
  }

  /// The next older version; nil at the end.
  package mutating func next() throws(TidemarkError) -> LogEntry? {
    // Links lead strictly downward, so this ends.
    while upcoming > 0 {
      guard let entry = try reader.linkedEntry(upcoming) else {
        upcoming = 0
        return nil
      }
      try reader.check(entry, isOf: key.rawSpan)
      upcoming = entry.head.previous
      if entry.sequence <= last { return entry }
    }
    return nil
  }
}
