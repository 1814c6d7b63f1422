internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// An entry of the log as replication sees it.
package struct LoggedChange {
  var sequence: UInt64
  var kind: EntryKind
  var key: [UInt8]
  var previous: UInt64
  /// Bytes of what a put gave.
  var valueLength: Int
  /// When its writer committed it: another store, where it came from there.
  package var commitTime: UInt64
  var labels: [EntryLabel]
  var attributes: EntryAttributes

  /// Whether this store wrote it, and replication is to carry it.
  var isOwn: Bool {
    attributes.origin == nil && attributes.entryClass == .owned
      && (kind == .put || kind == .delete)
  }

  /// Whether it is a change of another's, which the feed had lost and this store has brought back.
  var isBroughtBack: Bool { attributes.origin == nil && attributes.writerTime != 0 }

  /// - Parameter value: the value of a put; empty for a delete.
  func content(_ value: [UInt8]) -> SyncContent {
    guard kind == .put else { return SyncContent() }
    return SyncContent(value: value, labels: labels, attributes)
  }

  init(_ entry: LogEntry) throws(TidemarkError) {
    sequence = entry.sequence
    kind = entry.head.kind
    key = entry.key
    // Compaction keeps only the last of several touches: what they renew is the way to what was
    // before.
    previous = entry.head.kind == .touch ? entry.head.valueSequence : entry.head.previous
    valueLength = entry.head.valueLength
    commitTime = entry.head.commitTime
    labels = entry.labels.map { EntryLabel($0) }
    attributes = try entry.attributes()
    if attributes.writerTime != 0 { commitTime = attributes.writerTime }
  }
}

extension OperationBatch {
  /// Adds a put, or a delete, that replication makes.
  /// - Parameters:
  ///   - content: what the key gets; nil deletes it, also where it was never written.
  ///   - attributes: those of the entry beside what the content says.
  ///   - slot: the newest entry of the key, which must not have changed when it is committed.
  mutating func add(
    _ content: SyncContent?, ofKey key: [UInt8], _ attributes: EntryAttributes, upon slot: Slot?
  ) throws(TidemarkError) {
    let condition = addCondition(.entry(slot?.sequence ?? 0))
    guard let content else {
      return try add(
        .delete, key: key.rawSpan, attributes: attributes, condition: condition, isForced: true)
    }
    var attributes = attributes
    attributes.hash = content.hash
    attributes.maxAge = content.maxAgeSeconds
    attributes.attachment = content.attachment?.engineID
    let labels = try addLabelSet(content.labels.map(\.bytes))
    try add(
      .put, key: key.rawSpan, value: content.value.rawSpan, labelSet: labels,
      attributes: attributes, condition: condition)
  }
}
