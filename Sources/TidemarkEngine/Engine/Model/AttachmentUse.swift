/// An entry of the log that names an attachment (a file beside the log, named after its content).
struct AttachmentUse: Sendable {
  var sequence: UInt64
  var hash: [UInt8]
  /// Cached entries use an attachment only while they are their key's newest, or a view is open.
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
