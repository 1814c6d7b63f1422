internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Judges and appends a numbered batch, if it is the next one of its replica; answers with the
  /// replica's mark: number, id and verdicts of its last batch.
  ///
  /// A batch that was appended before gets the same answer again. If its number has another id, or
  /// numbers before it are missing, nothing is appended, and the mark tells the last batch.
  /// - Throws: ``PeerError``: `malformed` for a batch that is too large or invalid, `forbidden`,
  ///   `leaseExpired`, `unavailable` when the feed cannot be written to: then it is not known
  ///   whether the batch was appended.
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
    // Content is only read for a batch that can be the next one; repeated ones are just answered.
    var mayBeTaken = false
    var incarnation: UInt64?
    if namesContent {
      let view = try feed.look(FeedQuestion(of: replica))
      mayBeTaken = isTurn(of: request, view.mark) && hasLease(view)
      incarnation = view.incarnation
    }
    var (mark, view) = try LargeValues.shared.withRoom(for: mayBeTaken ? large : 0) {
      var whole = request
      var content = PushedContent(incarnation: incarnation)
      if mayBeTaken { try findContent(of: &whole, &content, access) }
      guard feed.judgesInTurn else { return try take(whole, &content, access) }
      return try turn.withLock { _ throws(any Error) in try take(whole, &content, access) }
    }
    view.range.head = max(view.range.head, mark.position.offset)
    if !view.range.contains(mark.position) {
      // The batch was the first of its epoch.
      let lease = view.lease
      view = try feed.look(FeedQuestion())
      view.lease = lease
      guard view.range.contains(mark.position) else {
        throw PeerError(
          .unavailable, "the batch was lost with the end of the feed", retryAfter: .seconds(0))
      }
    }
    // The range has the mark, so that the answer waits for the mark's sync also after a repetition.
    return PushAnswer(mark: mark.mark, range: range(view, through: mark.position.offset))
  }

  private func isTurn(of request: PushRequest, _ mark: FeedMark) -> Bool {
    // A planted bug: a fault that only tests switch on.
    mark.mark.precedes(request) || PlantedSyncBug.isOn(.markNotChecked)
  }

  /// Throws for an invalid batch.
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
    // A caller in this process may pass a request that no decoder has checked.
    for change in request.changes { try change.content.blob?.checkBlob() }
    let sizes = request.changes.lazy.map {
      $0.key.count + ($0.content.blob?.length ?? $0.content.value.count)
    }
    let bytes = sizes.reduce(0, +)
    // One change may exceed the limit, or it could never be pushed; the others must fit in it.
    guard bytes - (sizes.max() ?? 0) <= options.limits.bytes else {
      throw PeerError(
        .malformed, "the batch has \(bytes) bytes; about \(options.limits.bytes) are allowed")
    }
  }

  /// Judges and appends the batch, unless it is not the next one by the mark; again if another
  /// append has changed what it was judged by.
  /// - Returns: the replica's mark after it, and the view that it was judged by.
  private func take(
    _ request: PushRequest, _ content: inout PushedContent, _ access: SyncAccess
  ) throws -> (mark: FeedMark, before: FeedView) {
    // The holds protect attachments from deletion until entries refer to them.
    defer { withExtendedLifetime(content) {} }
    let question = FeedQuestion(of: request.replica, keys: request.changes.map(\.key))
    for attempt in 0..<Self.attempts {
      let view = try feed.look(question)
      guard isTurn(of: request, view.mark) else { return (view.mark, view) }
      guard !view.isReadOnly else {
        throw PeerError(
          .unavailable, "the database takes no changes now", retryAfter: .seconds(10))
      }
      guard hasLease(view) else {
        throw PeerError(
          .leaseExpired, "the lease has run out: compare everything, then say hello, then push")
      }
      // Checked for every attempt: the feed may lose its end while a batch is judged.
      if attempt == 0 || !PlantedSyncBug.isOn(.helloCheckedOnce) {
        try checkHello(of: request, view.range, access)
      }
      // What was found before a failover need not be there after it.
      guard content.incarnation ?? view.incarnation == view.incarnation else {
        throw Self.lacksContent
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

  /// Throws for a batch that was formed by a hello's answer that does not hold any more.
  private func checkHello(
    of request: PushRequest, _ range: FeedRange, _ access: SyncAccess
  ) throws {
    guard range.contains(request.knownHead) || PlantedSyncBug.isOn(.lateBatchForgotten) else {
      throw PeerError(.busy, "the feed was restored from an older copy since: say hello again")
    }
    // No comparison would find a change that is appended here and out of reach at the next hello.
    guard request.reach.map({ $0 == access.reach }) ?? true || PlantedSyncBug.isOn(.reachIgnored)
    else {
      throw PeerError(
        .busy, "the authorization reaches other entries than at the last hello: say hello again",
        retryAfter: .seconds(0))
    }
  }
}

/// The attachments and large values of a batch, found in the store or among the uploads.
struct PushedContent {
  /// In which life of the feed's primary it was found; nil where none is named.
  fileprivate let incarnation: UInt64?
  /// Protect the store's attachments from deletion until the entries refer to them.
  fileprivate var holds: [AttachmentID: any Sendable] = [:]
  /// Complete uploads that are not attachments of the store yet.
  fileprivate var attachments: [AttachmentID: any FeedUpload] = [:]
  /// Complete uploads whose bytes are the values of changes; deleted once the batch is appended.
  fileprivate var values: [AttachmentID: any FeedUpload] = [:]
  /// How many bytes of uploads from before a restart may still be read again, to hash them.
  fileprivate var bytesToLook = SyncHandler.bytesPerLook

  fileprivate init(incarnation: UInt64?) { self.incarnation = incarnation }
}

extension SyncHandler {
  /// Reads the large values of a batch into its changes and finds its attachments, as far as there.
  /// It takes long, so it is done before any lock, and leaves the uploads as they are.
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
        // There may be no upload as the store had the content already, and `attach` said so.
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

  /// Checks that all content that a batch refers to was found.
  /// - Throws: ``PeerError`` of kind `busy` when some has not been uploaded.
  private func checkContent(
    of request: PushRequest, _ found: PushedContent, _ access: SyncAccess
  ) throws {
    // Uploads for keys out of reach are refused, and their changes are rejected without a value.
    let lacksValue = request.changes.contains {
      $0.content.blob != nil && access.mayReach(key: $0.key)
    }
    guard !lacksValue else {
      throw PeerError(.busy, "a large value has not been uploaded", retryAfter: .seconds(0))
    }
    let isComplete = request.changes.lazy.compactMap(\.content.attachment?.engineID).allSatisfy {
      found.holds[$0] != nil || found.attachments[$0] != nil
    }
    guard isComplete || PlantedSyncBug.isOn(.attachmentNotAwaited) else { throw Self.lacksContent }
  }

  /// Makes attachments of the uploads that entries are about to refer to. Those of changes that do
  /// not apply stay: a caller that may refer only to its own would have to send them again.
  private func adoptContent(of judged: DecidedBatch, _ found: inout PushedContent) throws {
    for entry in judged.entries where entry.kind != .loses {
      guard let id = judged.request.changes[entry.change].content.attachment?.engineID,
        found.holds[id] == nil, let upload = found.attachments[id]
      else { continue }
      do throws(TidemarkError) { found.holds[id] = try upload.adopt() } catch {
        // The upload was deleted meanwhile, to make room for another.
        guard error.code == .closed else { throw error }
        throw Self.lacksContent
      }
    }
  }

  private static let lacksContent = PeerError(
    .busy, "the content of an attachment has not been uploaded", retryAfter: .seconds(0))
}
