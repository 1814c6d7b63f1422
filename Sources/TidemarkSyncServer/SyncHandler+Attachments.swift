internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Takes a part of an attachment's content, ahead of the change that names it; with no bytes,
  /// says how much is there.
  ///
  /// Content that the store has is not wanted once more, unless the caller's authorization reaches
  /// only a part of the entries: who knows a hash need not have the content. It has to be sent then
  /// by this replica, or be what the key's entry names already.
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
    let engine = try contents()
    let rejection: Rejection? =
      request.attachment.length > options.attachmentBytes
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
    let engine = try contents()
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

  /// The store that has the content of attachments.
  private func contents() throws(PeerError) -> Engine {
    guard let engine = feed.contents, options.attachmentBytes > 0 else {
      throw PeerError(.malformed, "this server takes no attachments")
    }
    return engine
  }

  /// Whether a key's entry names an attachment, as far as the caller's authorization reaches.
  private func isNamed(
    _ id: AttachmentID, by key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    guard let state = try feed.states(of: [key])[0], !state.isDeleted else { return false }
    return state.head.attributes.attachment == id
      && access.reaches(key: key, labels: state.head.labels)
  }

  /// The content of an attachment, if it is here and the caller may name it.
  private func hold(
    _ id: AttachmentID, for key: [UInt8], _ replica: ReplicaID, _ access: SyncAccess,
    _ engine: Engine
  ) throws(TidemarkError) -> AttachmentHold? {
    if access.scope != nil {
      let name = ArrivingAttachments.Name(replica: replica, attachment: id)
      let hasBrought = feed.arriving.withLock { $0.hasBrought(name) }
      if !hasBrought, try !isNamed(id, by: key, access) { return nil }
    }
    return try engine.holdContent(of: id)
  }

  // MARK: Taking parts

  /// Bytes of what an earlier opening has left that one call reads again.
  private static let bytesPerLook = 256 << 20
  /// Room on the disk that content does not take.
  private static let bytesLeftFree = 64 << 20

  /// - Returns: how much is there.
  private func take(
    _ request: AttachRequest, _ access: SyncAccess, _ engine: Engine
  ) throws -> Int {
    let id = request.attachment.engineID
    let name = ArrivingAttachments.Name(replica: request.replica, attachment: id)
    if try hold(id, for: request.key, request.replica, access, engine) != nil {
      return request.attachment.length
    }
    let begins = !request.bytes.isEmpty || request.attachment.length == 0
    if begins { try makeRoom(for: request, name, engine) }
    guard
      let part = try engine.attachmentPart(of: id, for: request.replica.bytes, begins: begins)
    else { return 0 }
    feed.arriving.withLock { $0[name] = part }
    guard try part.look(most: Self.bytesPerLook) else {
      throw PeerError(
        .busy, "what has come of an attachment is being read again", retryAfter: .seconds(0))
    }
    let received = try part.append(request.bytes, at: request.offset, now: feed.now.sinceEpoch)
    guard received == request.attachment.length else { return received }
    do throws(TidemarkError) {
      let hold = try part.finish()
      feed.arriving.withLock { $0.arrive(name, hold, at: feed.now.sinceEpoch) }
      return received
    } catch {
      feed.arriving.withLock { $0[name] = nil }
      guard error.code == .damaged else { throw error }
      throw PeerError(.malformed, "an attachment's content is not what its hash says")
    }
  }

  private func makeRoom(
    for request: AttachRequest, _ name: ArrivingAttachments.Name, _ engine: Engine
  ) throws {
    let idle = feed.time(before: Self.millisecondsUndisturbed)
    try feed.arriving.withLock { (arriving: inout ArrivingAttachments) throws(PeerError) in
      dropOldAttachments(&arriving, but: name)
      func isFull() -> Bool {
        arriving.bytes + request.bytes.count > options.attachmentUploadBytes
          || arriving[name] == nil && arriving.count >= options.attachmentUploads
      }
      guard isFull() else { return }
      for old in arriving.untouched(since: idle, but: name) where isFull() { arriving.drop(old) }
      guard !isFull() else {
        throw PeerError(.busy, "too many attachments are on their way", retryAfter: .seconds(10))
      }
    }
    let rest = request.attachment.length - request.offset
    guard let free = engine.attachments.freeBytes, free < rest + Self.bytesLeftFree else { return }
    throw PeerError(
      .busy, "the disk has no room for \(rest) more bytes of an attachment",
      retryAfter: .seconds(60))
  }

  /// Gives up what nobody has gone on with for so long.
  func dropOldAttachments(
    _ arriving: inout ArrivingAttachments, but name: ArrivingAttachments.Name? = nil
  ) {
    let time = feed.time(before: Self.millisecondsKept)
    for old in arriving.untouched(since: time, but: name) { arriving.drop(old) }
  }

  // MARK: Naming them

  /// Holds on to the attachments that a batch names, as far as their content has come, until it is
  /// in the feed.
  func holdAttachments(
    of request: PushRequest, _ access: SyncAccess
  ) throws -> [AttachmentID: AttachmentHold] {
    guard options.attachmentBytes > 0, let engine = feed.contents else { return [:] }
    var holds: [AttachmentID: AttachmentHold] = [:]
    for change in request.changes {
      guard let id = change.content.attachment?.engineID,
        let hold = try hold(id, for: change.key, request.replica, access, engine)
      else { continue }
      holds[id] = hold
    }
    return holds
  }

  /// Makes sure that the content of everything that a batch names is on the disk, and stays there.
  /// - Throws: ``PeerError`` of kind `busy` when the content of one has not come.
  func checkAttachments(
    of request: PushRequest, _ holds: [AttachmentID: AttachmentHold]
  ) throws(PeerError) {
    if PlantedSyncBug.isOn(.attachmentNotAwaited) { return }
    let isHere = request.changes.allSatisfy {
      $0.content.attachment.map { holds[$0.engineID] != nil } ?? true
    }
    guard isHere else {
      throw PeerError(
        .busy, "the content of an attachment has not been uploaded", retryAfter: .seconds(0))
    }
  }
}
