internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
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
    var mayBeTaken = false
    if namesContent {
      let view = try feed.look(FeedQuestion(of: replica))
      mayBeTaken = isTurn(of: request, view.mark) && hasLease(view)
    }
    let (mark, view) = try LargeValues.shared.withRoom(for: mayBeTaken ? large : 0) {
      var whole = request
      var content = PushedContent()
      if mayBeTaken { try findContent(of: &whole, &content, access) }
      guard feed.judgesInTurn else { return try take(whole, &content, access) }
      return try turn.withLock { _ throws(any Error) in try take(whole, &content, access) }
    }
    var end = try feed.look(FeedQuestion())
    guard end.range.contains(mark.position) else {
      throw PeerError(
        .unavailable, "the batch was lost with the end of the feed", retryAfter: .seconds(0))
    }
    end.lease = view.lease
    // Also a batch that was taken before may not be on the disk yet.
    return PushAnswer(
      mark: mark.mark, range: range(end, through: mark.position.offset),
      current: try current(of: request, mark.mark, view, access))
  }

  private func isTurn(of request: PushRequest, _ mark: FeedMark) -> Bool {
    mark.mark.precedes(request) || PlantedSyncBug.isOn(.markNotChecked)
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
  /// - Returns: the replica's mark then, and what was known before.
  private func take(
    _ request: PushRequest, _ content: inout PushedContent, _ access: SyncAccess
  ) throws -> (mark: FeedMark, before: FeedView) {
    // The holds must last until the entries are there.
    defer { withExtendedLifetime(content) {} }
    let question = FeedQuestion(of: request.replica, keys: request.changes.map(\.key))
    for attempt in 0..<Self.attempts {
      let view = try feed.look(question)
      guard isTurn(of: request, view.mark) else { return (view.mark, view) }
      guard hasLease(view) else {
        throw PeerError(
          .leaseExpired, "the lease has run out: compare everything, then say hello, then push")
      }
      // The feed may lose its end while a batch is judged.
      if attempt == 0 || !PlantedSyncBug.isOn(.helloCheckedOnce) {
        try checkHello(of: request, view.range, access)
      }
      try checkContent(of: request, content, access)
      var detector = ConflictDetector(
        request, feed: feed, view: view, access: access, validators: options.validators)
      let judged = try detector.run()
      try adoptContent(of: judged, &content)
      if let mark = try feed.append(judged, after: view) {
        for upload in content.values.values { upload.drop() }
        return (mark, view)
      }
    }
    throw TidemarkError(.conflict, "the keys of the batch change too fast to be judged; try again")
  }

  /// Refuses a batch that was formed by what another hello has told.
  private func checkHello(
    of request: PushRequest, _ range: FeedRange, _ access: SyncAccess
  ) throws {
    guard range.contains(request.knownHead) || PlantedSyncBug.isOn(.lateBatchForgotten) else {
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
  /// What keeps attachments that the store has, until the entries name them.
  fileprivate var holds: [AttachmentID: any Sendable] = [:]
  /// Attachments that have come and are no attachments of the store yet.
  fileprivate var attachments: [AttachmentID: any FeedUpload] = [:]
  /// Values that are in their places; they are of no use once the batch is in the feed.
  fileprivate var values: [AttachmentID: any FeedUpload] = [:]
  /// Bytes of what an earlier opening has left that may still be read again.
  fileprivate var bytesToLook = SyncHandler.bytesPerLook
}

extension SyncHandler {
  /// Puts the large values of a batch in their places and finds its attachments, as far as they are
  /// there. That takes long, and is done before anything is locked; what has come stays as it is.
  func findContent(
    of request: inout PushRequest, _ found: inout PushedContent, _ access: SyncAccess
  ) throws {
    guard let contents = feed.contents else { return }
    func whole(_ id: AttachmentID) throws -> (any FeedUpload)? {
      try contents.whole(
        access.upload(of: id, by: request.replica), reading: &found.bytesToLook)
    }
    var values: [AttachmentID: [UInt8]] = [:]
    for index in request.changes.indices {
      let (key, content) = (request.changes[index].key, request.changes[index].content)
      if let id = content.blob?.engineID {
        if values[id] == nil, let upload = try whole(id) {
          values[id] = try upload.content()
          found.values[id] = upload
        }
        // An answer to its upload was that the store has it.
        if values[id] == nil, try mayName(id, for: key, access) {
          values[id] = try contents.read(id, from: 0, count: Int(id.length))
        }
        if let value = values[id] {
          request.changes[index].content.value = value
          request.changes[index].content.blob = nil
        }
      }
      if let id = content.attachment?.engineID, found.holds[id] == nil, options.attachmentBytes > 0
      {
        if try mayName(id, for: key, access) { found.holds[id] = try contents.hold(id) }
        if found.holds[id] == nil, id.length <= UInt64(options.attachmentBytes) {
          found.attachments[id] = try whole(id)
        }
      }
    }
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
        found.holds[id] == nil, let upload = found.attachments[id]
      else { continue }
      do throws(TidemarkError) { found.holds[id] = try upload.adopt() } catch {
        // Somebody else needed the room meanwhile.
        guard error.code == .closed else { throw error }
        throw Self.lacksContent
      }
    }
  }

  private static let lacksContent = PeerError(
    .busy, "the content of an attachment has not been uploaded", retryAfter: .seconds(0))
}
