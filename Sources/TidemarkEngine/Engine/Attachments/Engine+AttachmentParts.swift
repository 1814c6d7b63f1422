/// Uploads of attachments in parts, and attachments whose content is elsewhere, at a peer: of these
/// the store has a stub, a file of a header alone.
extension Engine {
  /// The part file of an owner's upload; see ``AttachmentFiles/part(of:for:beginning:)``.
  /// - Parameter begins: whether a file is begun where there is none.
  package func attachmentPart(
    of id: AttachmentID, for owner: [UInt8], begins: Bool
  ) throws(TidemarkError) -> AttachmentPartFile? {
    try writer.checkWritable()
    return try attachments.part(of: id, for: owner, beginning: begins ? millisecondsNow : nil)
  }

  /// An upload ends when no part has come for so long.
  private static let millisecondsToLive: UInt64 = 30 * 86_400_000

  /// Removes part files to which no part has come for long. Also those with another key than new
  /// files, which a change of keys does not rewrite: such an upload begins anew.
  func dropOldParts() throws(TidemarkError) {
    let now = millisecondsNow
    let key = try keys.current()
    for (_, part) in try attachments.parts()
    where part.touched < now - min(now, Self.millisecondsToLive) || part.keyID != key {
      part.cancel()
    }
  }

  /// Keeps an attachment from being swept.
  /// - Returns: nil where the content is not here.
  package func holdContent(of id: AttachmentID) throws(TidemarkError) -> AttachmentHold? {
    // A hold comes for a stub, too; only whole files can be opened.
    guard let hold = try attachments.held(id), let reader = try openAttachment(id) else {
      return nil
    }
    reader.close()
    return hold
  }

  /// Writes stubs of the attachments that are not here. See ``AttachmentFiles/noteElsewhere(_:)``.
  package func noteElsewhere(_ ids: [AttachmentID]) throws(TidemarkError) -> [AttachmentHold] {
    guard !ids.isEmpty else { return [] }
    try writer.checkWritable()
    return try attachments.noteElsewhere(ids)
  }

  /// The retention pins, which say what a peer needs of the log, of all peers that give signs of
  /// life but one; nil for a pin that cannot be read.
  package func livePins(butOf name: [UInt8]) throws(TidemarkError) -> [RetentionPin?] {
    try RetentionPin.all(in: reader)
      .filter { [reader] in $0.name != name && !($0.pin?.isGone(in: reader) ?? false) }.map(\.pin)
  }

  /// The newest entries of keys whose attachments are stubs, in the order of the log, but for
  /// cached entries.
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
