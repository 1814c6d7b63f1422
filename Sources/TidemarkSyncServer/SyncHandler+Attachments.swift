internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Stores a part of an upload: of an attachment, or of a value too large for a push, before the
  /// push of the change that refers to it. Without bytes, answers how many are stored.
  ///
  /// Content that the store has need not be uploaded again. But where the caller's authorization
  /// reaches only some entries, knowing a hash does not give access to the content: the replica
  /// must upload it, with the same authorization, unless the key's entry refers to it already.
  /// - Throws: ``PeerError``: `malformed` for an invalid request or content without the stated
  ///   hash; `forbidden`, `busy`, `unavailable`.
  public func attach(
    _ request: AttachRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> AttachAnswer {
    try settled(\.range) { try stageAttach(request, access) }
  }

  func stageAttach(_ request: AttachRequest, _ access: SyncAccess) throws -> AttachAnswer {
    guard access.canPush else {
      throw PeerError(.forbidden, "the authorization does not allow to write")
    }
    // A caller in this process may pass a request that no decoder has checked.
    try WireMessage.attachRequest(request).check()
    guard let contents = feed.contents else {
      throw PeerError(.malformed, "this server takes no content ahead of its change")
    }
    // It may be a value's, so that bound counts, too; the push rejects attachments that are larger.
    let rejection: SyncRejection? =
      request.attachment.length > max(options.attachmentBytes, Limits.valueBytes)
      ? .tooLarge(request.attachment, most: options.attachmentBytes)
      : access.mayReach(key: request.key) ? nil : ConflictDetector.outOfScope
    return AttachAnswer(
      received: rejection == nil ? try take(request, access, contents) : 0, rejection: rejection,
      range: range(try feed.look(FeedQuestion(of: request.replica))))
  }

  /// Answers with a part of the content of the attachment that a key's entry refers to.
  /// - Parameters:
  ///   - request: the key, the content and the part of it.
  ///   - access: the entries that the caller's authorization reaches.
  /// - Throws: ``PeerError`` when the request is invalid or the store cannot be read.
  public func fetch(
    _ request: ContentRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> ContentAnswer {
    let answer = try answer(.fetchRequest(request), access: access)
    guard case .fetchAnswer(let part) = answer else { return ContentAnswer(bytes: nil) }
    return part
  }

  func stageFetch(_ request: ContentRequest, _ access: SyncAccess) throws -> [UInt8]? {
    try WireMessage.fetchRequest(request).check()
    guard request.position == .beginning else { return try partOfValue(request, access) }
    guard let contents = feed.contents, options.attachmentBytes > 0 else {
      throw PeerError(.malformed, "this server takes no attachments")
    }
    let id = request.attachment.engineID
    guard try isNamed(id, by: request.key, access) else { return nil }
    let count = max(0, min(request.limit, request.attachment.length - request.offset))
    return try LargeValues.shared.withRoom(for: count) {
      try contents.read(id, from: request.offset, count: count)
    }
  }

  /// Whether a key's entry refers to an attachment, and the caller may read that entry.
  private func isNamed(
    _ id: AttachmentID, by key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    guard let state = try feed.look(FeedQuestion(keys: [key])).states[0], !state.isDeleted else {
      return false
    }
    return state.head.attributes.attachment == id
      && (access.reaches(key: key, labels: state.head.labels)
        || PlantedSyncBug.isOn(.attachmentLent))  // a fault that only tests switch on
  }

  /// Whether a caller may refer to content that the store has without uploading it.
  func mayName(
    _ id: AttachmentID, for key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    if access.scope == nil { return true }
    return try isNamed(id, by: key, access)
  }

  /// How many bytes of uploads from before a restart one call may read again, to hash them.
  static let bytesPerLook = 256 << 20

  /// - Returns: how many bytes of the content are stored.
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
  /// The key of an upload by a replica with this authorization. Its owner is 16 bytes of a hash of
  /// the scope (zeros for everything), and the replica: others may not see or use the upload.
  func upload(of id: AttachmentID, by replica: ReplicaID) -> UploadName {
    var reach = ReplicaID.none.bytes
    if let scope, !PlantedSyncBug.isOn(.waitingContentShared) {
      reach = Array(
        SHA256.hash(scope.canonicalBytes.rawSpan).prefix(ReplicaID.byteCount))
    }
    return UploadName(id: id, owner: reach + replica.bytes)
  }
}
