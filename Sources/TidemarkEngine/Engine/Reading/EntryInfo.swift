/// The newest entry of a key, without its value. After a touch (an entry that renews the validity
/// of a key's value without writing it) it combines the touch with the put that has the value.
package struct EntryInfo: Sendable {
  /// The sequence of the entry: of the touch, if it is one.
  package var sequence: UInt64
  package var kind: EntryKind
  /// The sequence of the put that holds the value; `sequence` unless the entry is a touch.
  package var valueSequence: UInt64
  package var valueLength: Int
  package var labels: [[UInt8]]
  package var commitTime: UInt64
  /// Commit time of the put.
  package var updated: UInt64
  /// The sequence of the key's entry before this one; 0 for none.
  package var previous: UInt64
  /// Commit time of the oldest version since the key was last absent; 0 where the entry does not
  /// say it, as compaction writes it only into a version beneath which it drops others.
  package var created: UInt64
  /// Whether the entry is the last of its batch.
  package var endsBatch: Bool
  /// The attributes of the put, with what a touch has renewed.
  package var attributes: EntryAttributes
}

extension EntryInfo {
  /// What the entry's own header says. For a touch ``renewing(_:)`` adds what its put says.
  init(ofOwn entry: LogEntry) throws(TidemarkError) {
    let head = entry.head
    self.init(
      sequence: head.sequence, kind: head.kind,
      valueSequence: head.kind == .touch ? head.valueSequence : head.sequence,
      valueLength: head.valueLength, labels: entry.labels, commitTime: head.commitTime,
      updated: head.commitTime, previous: head.previous, created: head.created,
      endsBatch: head.endsBatch, attributes: try entry.attributes())
  }

  /// This touch, completed with the labels, value and attributes of the put that it renews.
  func renewing(_ put: LogEntry) throws(TidemarkError) -> EntryInfo {
    var info = self
    let renewed = info.attributes
    info.attributes = try put.attributes()
    if let maxAge = renewed.maxAge { info.attributes.maxAge = maxAge }
    if let hash = renewed.hash { info.attributes.hash = hash }
    info.labels = put.labels
    info.valueSequence = put.sequence
    info.valueLength = put.head.valueLength
    info.updated = put.head.commitTime
    // Compaction writes it into the oldest version that it keeps, which the touch may be.
    info.created = put.head.created != 0 ? put.head.created : created
    return info
  }

  /// Encoded for the hot cache, without the sequence.
  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(kind.rawValue)
    writer.u8(endsBatch ? 1 : 0)
    for number in [valueSequence, UInt64(valueLength), commitTime, updated, previous, created] {
      writer.varint(number)
    }
    writer.varint(labels.count)
    for label in labels { writer.blob(label) }
    attributes.encode(into: &writer)
    return writer.bytes
  }

  /// The same of what ``encoded()`` gave.
  init(decoding bytes: RawSpan, sequence: UInt64) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard let kind = EntryKind(rawValue: try reader.u8()) else { throw FormatError("no such kind") }
    let endsBatch = try reader.u8() == 1
    let valueSequence = try reader.varint()
    let valueLength = try reader.varint(atMost: Limits.factsBytes)
    let (commitTime, updated) = (try reader.varint(), try reader.varint())
    let (previous, created) = (try reader.varint(), try reader.varint())
    var labels: [[UInt8]] = []
    for _ in 0..<(try reader.varint(atMost: Limits.factsBytes)) { labels.append(try reader.blob()) }
    let attributes = try EntryAttributes(decoding: try bytes.slice(reader.offset, reader.remaining))
    self.init(
      sequence: sequence, kind: kind, valueSequence: valueSequence, valueLength: valueLength,
      labels: labels, commitTime: commitTime, updated: updated, previous: previous,
      created: created, endsBatch: endsBatch, attributes: attributes)
  }
}
