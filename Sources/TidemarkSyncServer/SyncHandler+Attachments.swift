internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Takes a part of a content, ahead of the change that names it: of an attachment, or of a value
  /// that is too large to travel with its change. With no bytes, says how much is there.
  ///
  /// Content that the store has is not wanted once more, unless the caller's authorization reaches
  /// only a part of the entries: who knows a hash need not have the content. It has to be sent then
  /// by this replica with an authorization for the same, or be what the key's entry names already.
  /// - Throws: ``PeerError``: `malformed` for what makes no sense, and for content that is not what
  ///   its hash says; `forbidden`, `busy`, `unavailable`.
  public func attach(
    _ request: AttachRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> AttachAnswer {
    try settled(\.range) { try stageAttach(request, access) }
  }

  func stageAttach(_ request: AttachRequest, _ access: SyncAccess) throws -> AttachAnswer {
    guard access.canPush else {
      throw PeerError(.forbidden, "the authorization does not allow to write")
    }
    // It need not have come over a wire.
    try WireMessage.attachRequest(request).check()
    guard let contents = feed.contents else {
      throw PeerError(.malformed, "this server takes no content ahead of its change")
    }
    // It may be a value: whether an attachment is too large is told by the hello, and by the push.
    let rejection: Rejection? =
      request.attachment.length > max(options.attachmentBytes, Limits.valueBytes)
      ? .tooLarge(request.attachment, most: options.attachmentBytes)
      : access.mayReach(key: request.key) ? nil : ConflictDetector.outOfScope
    return AttachAnswer(
      received: rejection == nil ? try take(request, access, contents) : 0, rejection: rejection,
      range: range(try feed.look(FeedQuestion(of: request.replica))))
  }

  /// Answers with a part of the content of the attachment that a key's entry names.
  /// - Throws: ``PeerError``.
  public func fetch(
    _ request: ContentRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> ContentAnswer {
    try answering { try stageFetch(request, access) }
  }

  func stageFetch(_ request: ContentRequest, _ access: SyncAccess) throws -> ContentAnswer {
    try WireMessage.fetchRequest(request).check()
    guard let contents = feed.contents, options.attachmentBytes > 0 else {
      throw PeerError(.malformed, "this server takes no attachments")
    }
    let id = request.attachment.engineID
    guard try isNamed(id, by: request.key, access) else { return ContentAnswer(bytes: nil) }
    let count = max(0, min(request.limit, request.attachment.length - request.offset))
    return try LargeValues.shared.withRoom(for: count) {
      ContentAnswer(bytes: try contents.read(id, from: request.offset, count: count))
    }
  }

  /// Whether a key's entry names an attachment, as far as the caller's authorization reaches.
  private func isNamed(
    _ id: AttachmentID, by key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    guard let state = try feed.look(FeedQuestion(keys: [key])).states[0], !state.isDeleted else {
      return false
    }
    return state.head.attributes.attachment == id
      && (access.reaches(key: key, labels: state.head.labels)
        || PlantedSyncBug.isOn(.attachmentLent))
  }

  /// Whether a caller may name content that the store has.
  func mayName(
    _ id: AttachmentID, for key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    if access.scope == nil { return true }
    return try isNamed(id, by: key, access)
  }

  /// Bytes of what an earlier opening has left that one call reads again.
  static let bytesPerLook = 256 << 20

  /// - Returns: how much is there.
  private func take(
    _ request: AttachRequest, _ access: SyncAccess, _ contents: any FeedContents
  ) throws -> Int {
    let id = request.attachment.engineID
    if try mayName(id, for: request.key, access), try contents.hold(id) != nil {
      return request.attachment.length
    }
    return try contents.take(
      request.bytes, at: request.offset, of: access.upload(of: id, by: request.replica),
      within: options)
  }
}

extension SyncAccess {
  /// The name of an upload of a replica with this authorization. Its owner is 16 bytes of a hash of
  /// what it reaches, none for everything, and the replica.
  func upload(of id: AttachmentID, by replica: ReplicaID) -> UploadName {
    var reach = ReplicaID.none.bytes
    if let scope, !PlantedSyncBug.isOn(.waitingContentShared) {
      reach = Array(
        SHA256.hash(scope.canonicalBytes.rawSpan).prefix(ReplicaID.byteCount))
    }
    return UploadName(id: id, owner: reach + replica.bytes)
  }
}
