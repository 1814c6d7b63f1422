internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// How often a batch is judged anew because the store's own program has written in between.
  private static let attempts = 16

  /// Takes a numbered batch, if it is the next one of its replica, and answers with the mark.
  ///
  /// A batch that was taken before is answered as it was then. With another id in its place, or
  /// with a hole before it, nothing is taken and the mark says how far the replica has come.
  ///
  /// Batches are judged and appended one after the other; calls that wait for the disk share its
  /// syncs.
  /// - Throws: ``PeerError``: `malformed` for what is too large or makes no sense, `forbidden`,
  ///   `leaseExpired`, `unavailable` when the feed cannot be written to: whether the batch was
  ///   taken is not known then.
  public func push(
    _ request: PushRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> PushAnswer {
    try settled(\.range) { try stagePush(request, access) }
  }

  func stagePush(_ request: PushRequest, _ access: SyncAccess) throws -> PushAnswer {
    guard access.canPush else {
      throw PeerError(.forbidden, "the authorization does not allow to write")
    }
    try check(request)
    let replica = request.replica
    let large = request.changes.reduce(0) { $0 + ($1.content.blob?.length ?? 0) }
    let namesContent = large > 0 || request.changes.contains { $0.content.attachment != nil }
    // Content is worth looking for if it may be the turn of the batch.
    let mayBeTaken =
      try namesContent && isTurn(of: request, feed.mark(of: replica))
      && hasLease(replica)
    let mark = try LargeValues.shared.withRoom(for: mayBeTaken ? large : 0) {
      var whole = request
      var content = PushedContent()
      if mayBeTaken {
        content.owner = ArrivingAttachments.owner(replica, access)
        try findContent(of: &whole, &content, access)
      }
      return try turn.withLock { _ throws(any Error) in try take(whole, &content, access) }
    }
    if mark.mark.number > 0 { try feed.leases.withLock { try $0.notePush(of: replica, feed) } }
    // Also a batch that was taken before may not be on the disk yet.
    return PushAnswer(
      mark: mark.mark, range: try range(for: replica, through: mark.position.offset),
      current: try current(of: request, mark.mark, through: mark.position.offset, access))
  }

  private func isTurn(of request: PushRequest, _ mark: FeedMark) -> Bool {
    mark.mark.precedes(request) || PlantedSyncBug.isOn(.markNotChecked)
  }

  /// Whether a replica may push, as far as leases say.
  private func hasLease(_ replica: ReplicaID) -> Bool {
    guard let seconds = options.leaseSeconds, seconds > 0 else { return true }
    return feed.leases.withLock { $0[replica] }?.expires ?? 0 > feed.now.sinceEpoch
  }

  /// Refuses what is no batch.
  private func check(_ request: PushRequest) throws {
    guard request.number > 0, request.batchID != .none else {
      throw PeerError(.malformed, "batches are numbered from 1 and have an id other than 0")
    }
    guard request.changes.count <= options.limits.changes else {
      throw PeerError(
        .malformed,
        "the batch has \(request.changes.count) changes; at most \(options.limits.changes)")
    }
    guard Set(request.changes.lazy.map(\.sequence)).count == request.changes.count else {
      throw PeerError(.malformed, "the batch has two changes with the same sequence")
    }
    // They need not have come over a wire.
    for change in request.changes { try change.content.blob?.checkBlob() }
    let sizes = request.changes.lazy.map {
      $0.key.count + ($0.content.blob?.length ?? $0.content.value.count)
    }
    let bytes = sizes.reduce(0, +)
    // One entry may be larger than a message is meant to be, but not the rest as well.
    guard bytes - (sizes.max() ?? 0) <= options.limits.bytes else {
      throw PeerError(
        .malformed, "the batch has \(bytes) bytes; about \(options.limits.bytes) are allowed")
    }
  }

  /// Appends the batch, unless the mark says that it is not its turn.
  /// - Returns: the replica's mark then.
  private func take(
    _ request: PushRequest, _ content: inout PushedContent, _ access: SyncAccess
  ) throws -> FeedMark {
    let mark = try feed.mark(of: request.replica)
    guard isTurn(of: request, mark) else { return mark }
    guard hasLease(request.replica) else {
      throw PeerError(
        .leaseExpired, "the lease has run out: compare everything, then say hello, then push")
    }
    try checkHello(of: request, access)
    try checkContent(of: request, content, access)
    // The holds must last until the entries are there.
    defer { withExtendedLifetime(content) {} }
    for _ in 0..<Self.attempts {
      var judge = Judge(
        request, feed: feed, access: access, policies: try feed.policies(),
        validators: options.validators)
      let judged = try judge.run()
      try adoptContent(of: judged, &content)
      switch try feed.append(judged) {
      case .appended(let mark):
        dropValues(content)
        return mark
      case .markIs(let mark): return mark
      case .conflict: break
      }
    }
    throw TidemarkError(.conflict, "the keys of the batch change too fast to be judged; try again")
  }

  /// Refuses a batch that was formed by what another hello has told.
  private func checkHello(of request: PushRequest, _ access: SyncAccess) throws {
    guard
      try feed.range().contains(request.knownHead) || PlantedSyncBug.isOn(.lateBatchForgotten)
    else {
      throw PeerError(.busy, "the feed was restored from an older copy since: say hello again")
    }
    // No comparison would look for a change that is taken here and out of reach at the next hello.
    guard request.reach.map({ $0 == access.reach }) ?? true || PlantedSyncBug.isOn(.reachIgnored)
    else {
      throw PeerError(
        .busy, "the authorization reaches other entries than at the last hello: say hello again",
        retryAfter: .seconds(0))
    }
  }
}

/// The content that a batch names and that has come ahead of it.
struct PushedContent {
  /// The owner under which the uploads of the batch are filed.
  fileprivate(set) var owner: [UInt8] = []
  /// Content that the store has as attachments, kept until the entries name it.
  fileprivate(set) var holds: [AttachmentID: AttachmentHold] = [:]
  /// Attachments that have come and are no attachments of the store yet.
  fileprivate var attachments: [AttachmentID: AttachmentPartFile] = [:]
  /// Values that are in their places; their files are of no use once the batch is in the feed.
  fileprivate var values: [AttachmentID: AttachmentPartFile] = [:]
  /// Bytes of what an earlier opening has left that may still be read again.
  fileprivate var bytesToLook = SyncHandler.bytesPerLook
}

extension SyncHandler {
  /// Puts the large values of a batch in their places and finds its attachments, as far as they are
  /// there. That takes long, and is done before anything is locked; what has come stays as it is.
  func findContent(
    of request: inout PushRequest, _ found: inout PushedContent, _ access: SyncAccess
  ) throws {
    guard let engine = feed.contents else { return }
    var values: [AttachmentID: [UInt8]] = [:]
    for index in request.changes.indices {
      let (key, content) = (request.changes[index].key, request.changes[index].content)
      if let id = content.blob?.engineID {
        if values[id] == nil, let part = try whole(id, &found) {
          values[id] = try part.content()
          found.values[id] = part
        }
        // An answer to its upload was that the store has it.
        if values[id] == nil, try mayName(id, for: key, access) {
          values[id] = try engine.openAttachment(id)?.content()
        }
        if let value = values[id] {
          request.changes[index].content.value = value
          request.changes[index].content.blob = nil
        }
      }
      if let id = content.attachment?.engineID, found.holds[id] == nil, options.attachmentBytes > 0
      {
        if try mayName(id, for: key, access) { found.holds[id] = try engine.holdContent(of: id) }
        if found.holds[id] == nil, id.length <= UInt64(options.attachmentBytes) {
          found.attachments[id] = try whole(id, &found)
        }
      }
    }
  }

  /// The part file of content that the caller has sent, if all of it is there.
  private func whole(
    _ id: AttachmentID, _ found: inout PushedContent
  ) throws -> AttachmentPartFile? {
    let name = ArrivingAttachments.Name(id: id, owner: found.owner)
    guard let part = feed.arriving.withLock({ $0[name] }) else { return nil }
    do throws(TidemarkError) {
      let before = part.received
      if try part.verifyStored(most: found.bytesToLook) {
        found.bytesToLook -= part.received - before
        return part.isWhole ? part : nil
      }
    } catch {
      // It is sent again.
      guard [.damaged, .closed].contains(error.code) else { throw error }
      return nil
    }
    throw Self.isBeingRead
  }

  /// Makes sure that the content of everything that a batch names has come.
  /// - Throws: ``PeerError`` of kind `busy` when the content of one has not come.
  private func checkContent(
    of request: PushRequest, _ found: PushedContent, _ access: SyncAccess
  ) throws {
    // The value of a change that is out of reach was not taken, and its verdict needs none.
    let lacksValue = request.changes.contains {
      $0.content.blob != nil && access.mayReach(key: $0.key)
    }
    guard !lacksValue else {
      throw PeerError(.busy, "a large value has not been uploaded", retryAfter: .seconds(0))
    }
    let areThere = request.changes.lazy.compactMap(\.content.attachment?.engineID).allSatisfy {
      found.holds[$0] != nil || found.attachments[$0] != nil
    }
    guard areThere || PlantedSyncBug.isOn(.attachmentNotAwaited) else { throw Self.lacksContent }
  }

  /// Makes attachments of the content that entries are about to name. Content of changes that do
  /// not apply stays as it is: who may name only what is its own would have to send it again.
  private func adoptContent(of judged: JudgedBatch, _ found: inout PushedContent) throws {
    for entry in judged.entries where entry.kind != .loses {
      guard let id = judged.request.changes[entry.change].content.attachment?.engineID,
        found.holds[id] == nil, let part = found.attachments[id]
      else { continue }
      do throws(TidemarkError) { found.holds[id] = try part.finish() } catch {
        // Somebody else needed the room meanwhile.
        guard error.code == .closed else { throw error }
        throw Self.lacksContent
      }
      let owner = found.owner
      feed.arriving.withLock { $0.forget(part, of: owner) }
    }
  }

  private static let lacksContent = PeerError(
    .busy, "the content of an attachment has not been uploaded", retryAfter: .seconds(0))

  /// Lets go of the files of values that are in the feed.
  func dropValues(_ found: PushedContent) {
    for part in found.values.values {
      part.cancel()
      feed.arriving.withLock { $0.forget(part, of: found.owner) }
    }
  }
}
