extension Engine {
  /// The content that comes in parts for somebody; see ``AttachmentFiles/part(of:for:beginning:)``.
  /// - Parameter begins: whether it may begin to come.
  package func attachmentPart(
    of id: AttachmentID, for owner: [UInt8], begins: Bool
  ) throws(TidemarkError) -> AttachmentPartFile? {
    try writer.checkWritable()
    return try attachments.part(
      of: id, for: owner, beginning: begins ? millisecondsNow : nil)
  }

  /// Content that nobody goes on with goes after so long.
  private static let millisecondsToLive: UInt64 = 30 * 86_400_000

  /// Takes away what has come of contents that nobody has gone on with for so long, or whose key
  /// was changed: they begin anew.
  func dropOldParts() throws(TidemarkError) {
    let now = millisecondsNow
    let key = try keys.current()
    for (_, part) in try attachments.parts()
    where part.touched < now - min(now, Self.millisecondsToLive) || part.keyID != key {
      part.cancel()
    }
  }

  /// Holds on to an attachment whose content is here.
  /// - Returns: nil where it is not, or was released.
  package func holdContent(of id: AttachmentID) throws(TidemarkError) -> AttachmentHold? {
    guard let hold = try attachments.held(id), let reader = try openAttachment(id) else {
      return nil
    }
    reader.close()
    return hold
  }

  /// Leaves notes that the content of these is elsewhere, where it is not here.
  package func noteElsewhere(_ ids: [AttachmentID]) throws(TidemarkError) -> [AttachmentHold] {
    guard !ids.isEmpty else { return [] }
    try writer.checkWritable()
    return try attachments.noteElsewhere(ids)
  }

  /// The pins of all peers that still give signs of life, but for one; nil for one that cannot be
  /// read.
  package func livePins(butOf name: [UInt8]) throws(TidemarkError) -> [RetentionPin?] {
    try RetentionPin.all(in: reader)
      .filter { [reader] in $0.name != name && !($0.pin?.isGone(in: reader) ?? false) }.map(\.pin)
  }

  /// The newest entries of keys whose attachments are elsewhere, in the order of the log.
  package func entriesWithoutContent() throws(TidemarkError) -> [UInt64] {
    var released: Set<[UInt8]> = []
    for hash in try attachments.hashes() {
      if try attachments.header(of: hash)?.isReleased ?? false { released.insert(hash) }
    }
    guard !released.isEmpty else { return [] }
    var found: [UInt64] = []
    for use in try attachmentUses() where released.contains(use.hash) && !use.isCached {
      if try isNewest(use) { found.append(use.sequence) }
    }
    return found
  }
}
