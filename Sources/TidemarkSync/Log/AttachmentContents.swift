internal import TidemarkEngine

/// The content of the attachments that entries of a log name, as a session sees it.
struct AttachmentContents {
  private let engine: Engine

  init(_ engine: Engine) { self.engine = engine }

  /// Whether content is here.
  func isHere(_ id: AttachmentID) throws(TidemarkError) -> Bool {
    try engine.holdContent(of: id) != nil
  }

  /// Opens content to be read; nil when it is not here.
  func open(_ id: AttachmentID) throws(TidemarkError) -> AttachmentFileReader? {
    try engine.openAttachment(id)
  }

  /// Content that comes in parts for somebody, from its beginning if there is none yet.
  func part(
    of id: AttachmentID, for owner: [UInt8]
  ) throws(TidemarkError) -> AttachmentPartFile? {
    try engine.attachmentPart(of: id, for: owner, begins: true)
  }

  /// Takes content away and remembers that it was here.
  func release(_ id: AttachmentID) throws(TidemarkError) { try engine.releaseAttachment(id) }

  /// The newest entries of keys whose content is elsewhere, in the order of the log.
  func entriesWithoutContent() throws(TidemarkError) -> [UInt64] {
    try engine.entriesWithoutContent()
  }

  /// Leaves notes that content is elsewhere, where it is not here.
  func noteElsewhere(_ ids: [AttachmentID]) throws(TidemarkError) -> [AttachmentHold] {
    try engine.noteElsewhere(ids)
  }
}
