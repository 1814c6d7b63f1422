internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

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
