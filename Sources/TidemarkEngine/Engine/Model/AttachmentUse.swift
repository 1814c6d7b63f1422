/// An entry that names an attachment.
struct AttachmentUse: Sendable {
  var sequence: UInt64
  var hash: [UInt8]
  var isCached: Bool

  /// Nil for an entry that names none.
  init?(_ entry: LogEntry) throws(TidemarkError) {
    guard entry.head.kind == .put, entry.head.attributesLength > 0 else { return nil }
    let attributes = try entry.attributes()
    guard let attachment = attributes.attachment else { return nil }
    sequence = entry.sequence
    hash = attachment.hash
    isCached = attributes.entryClass == .cache
  }
}
