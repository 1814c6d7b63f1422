package import TidemarkEngine

/// The value of a record in the log. `code` describes its fields once, for writing and for reading.
package protocol StoredRecord {
  /// An empty value to read into.
  init()
  mutating func code(_ record: inout FrameCursor) throws(FormatError)
}

extension StoredRecord {
  /// - Throws: if a part of it is longer than it may be; such a record could not be read.
  package func encoded(capacity: Int = 64) throws(TidemarkError) -> [UInt8] {
    var (value, record) = (self, FrameCursor(writing: capacity))
    do { try value.code(&record) } catch {
      throw TidemarkError(.limitExceeded, error.reason, cause: error)
    }
    return record.out.bytes
  }

  package mutating func decode(_ bytes: RawSpan) throws(FormatError) {
    var record = FrameCursor(reading: [UInt8](copying: bytes))
    try code(&record)
    try record.finish()
  }

  /// - Parameter bytes: those of ``encoded(capacity:)``.
  package init(decoding bytes: RawSpan) throws(FormatError) {
    self.init()
    try decode(bytes)
  }
}

// Parts of messages that are in records of stores, too.

extension ReplicaMark {
  /// A mark, as in an answer, but without its bounds: a feed stores planned positions.
  package mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.varint(&number)
    try record.u64(&batchID.bits)
    var visitor = WireVisitor(record)
    try visitor.verdicts(&verdicts)
    record = visitor.frame
  }
}

extension FeedEntry {
  /// An entry, as in a page with only this one.
  package mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    var entries = record.isReading ? [] : [self]
    try record.entries(&entries)
    guard entries.count == 1 else { throw FormatError("more than one entry") }
    self = entries[0]
  }
}

extension SyncScope {
  /// Labels and key prefixes, of any length.
  package mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    var (labels, prefixes) = record.isReading ? ([], []) : (labels, prefixBytes)
    try record.contents(&labels, atMost: .max, each: 1, bytes: .max)
    try record.contents(&prefixes, atMost: .max, each: 1, bytes: .max)
    if record.isReading { self = SyncScope(labels: labels, prefixBytes: prefixes) }
  }
}
