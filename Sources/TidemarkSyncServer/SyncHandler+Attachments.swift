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
    guard let engine = feed.contents else {
      throw PeerError(.malformed, "this server takes no content ahead of its change")
    }
    // It may be a value: whether an attachment is too large is told by the hello, and by the push.
    let rejection: Rejection? =
      request.attachment.length > max(options.attachmentBytes, Limits.valueBytes)
      ? .tooLarge(request.attachment, most: options.attachmentBytes)
      : access.mayReach(key: request.key) ? nil : Judge.outOfScope
    return AttachAnswer(
      received: rejection == nil ? try take(request, access, engine) : 0, rejection: rejection,
      range: try range(for: request.replica))
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
    guard let engine = feed.contents, options.attachmentBytes > 0 else {
      throw PeerError(.malformed, "this server takes no attachments")
    }
    let id = request.attachment.engineID
    guard try isNamed(id, by: request.key, access), let reader = try engine.openAttachment(id)
    else { return ContentAnswer(bytes: nil) }
    defer { reader.close() }
    let count = max(0, min(request.limit, reader.length - request.offset))
    return try LargeValues.shared.withRoom(for: count) {
      var part: [UInt8] = []
      part.reserveCapacity(count)
      while part.count < count {
        part += try reader.read(at: request.offset + part.count, count: count - part.count)
      }
      return ContentAnswer(bytes: part)
    }
  }

  /// Whether a key's entry names an attachment, as far as the caller's authorization reaches.
  private func isNamed(
    _ id: AttachmentID, by key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    guard let state = try feed.states(of: [key])[0], !state.isDeleted else { return false }
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

  // MARK: Taking parts

  /// Bytes of what an earlier opening has left that one call reads again.
  static let bytesPerLook = 256 << 20
  static let isBeingRead = PeerError(
    .busy, "what has come of a content is being read again", retryAfter: .seconds(0))
  /// Room on the disk that content does not take.
  private static let bytesLeftFree = 64 << 20

  /// - Returns: how much is there.
  private func take(
    _ request: AttachRequest, _ access: SyncAccess, _ engine: Engine
  ) throws -> Int {
    let id = request.attachment.engineID
    let owner = ArrivingAttachments.owner(request.replica, access)
    let name = ArrivingAttachments.Name(id: id, owner: owner)
    if try mayName(id, for: request.key, access), try engine.holdContent(of: id) != nil {
      return request.attachment.length
    }
    var part = feed.arriving.withLock { $0[name] }
    if !request.bytes.isEmpty || (request.attachment.length == 0 && part == nil) {
      try makeRoom(for: request, name, engine)
      part = try engine.attachmentPart(of: id, for: owner, begins: true)
      feed.arriving.withLock { $0[name] = part }
    }
    guard let part else { return 0 }
    do throws(TidemarkError) {
      if try part.verifyStored(most: Self.bytesPerLook) {
        let now = feed.now.sinceEpoch
        let received = try part.append(request.bytes, at: request.offset, now: now)
        feed.arriving.withLock { $0.notePart(of: name, at: now) }
        return received
      }
    } catch {
      if part.isOver { feed.arriving.withLock { $0.forget(part, of: owner) } }
      switch error.code {
      case .damaged: throw PeerError(.malformed, "a content is not what its hash says")
      case .closed where part.isOver:
        throw PeerError(.busy, "the content has come, or has made room", retryAfter: .seconds(0))
      default: throw error
      }
    }
    throw Self.isBeingRead
  }

  /// An upload that goes on is left alone for so long: a newcomer that took its room would lose it
  /// in turn. One that makes no progress goes.
  static let millisecondsUndisturbed: UInt64 = 60_000
  static let millisecondsKept: UInt64 = 7 * 86_400_000

  private func makeRoom(
    for request: AttachRequest, _ name: ArrivingAttachments.Name, _ engine: Engine
  ) throws {
    let idle = feed.time(before: Self.millisecondsUndisturbed)
    let most = options.attachmentUploads
    try feed.arriving.withLock { (arriving: inout ArrivingAttachments) throws(PeerError) in
      dropOldContent(&arriving, but: name)
      let isNew = arriving[name] == nil ? 1 : 0
      // Whole contents wait for their batch, which may name as many.
      let bounds: [(most: Int, more: Int, measure: (AttachmentPartFile) -> Int)] = [
        (most, isNew, { $0.mayBeWhole ? 0 : 1 }),
        (most + options.limits.changes, isNew, { _ in 1 }),
        (options.attachmentUploadBytes, request.bytes.count, { $0.storedBytes }),
      ]
      for bound in bounds where bound.more > 0 {
        while arriving.total(bound.measure) + bound.more > bound.most {
          guard
            arriving.dropSlow(since: idle, but: name, bound.measure)
              || arriving.dropSurplus(for: name.owner, bound.more, bound.measure)
          else {
            throw PeerError(.busy, "too many contents are on their way", retryAfter: .seconds(10))
          }
        }
      }
    }
    let rest = request.attachment.length - request.offset
    guard let free = engine.attachments.freeBytes, free < rest + Self.bytesLeftFree else { return }
    throw PeerError(
      .busy, "the disk has no room for \(rest) more bytes of a content",
      retryAfter: .seconds(60))
  }

  /// Gives up what nobody has gone on with for so long.
  func dropOldContent(
    _ arriving: inout ArrivingAttachments, but name: ArrivingAttachments.Name? = nil
  ) {
    arriving.dropUntouched(since: feed.time(before: Self.millisecondsKept), but: name)
  }
}
