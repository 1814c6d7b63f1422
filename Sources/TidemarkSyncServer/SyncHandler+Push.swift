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
    var large = request.changes.compactMap(\.content.blob)
    // Uploaded values are worth reading if it may be the turn of the batch.
    let replica = request.replica
    if !large.isEmpty, try !feed.mark(of: replica).mark.precedes(request) || !hasLease(replica) {
      large = []
    }
    let mark = try LargeValues.shared.withRoom(for: large.reduce(0) { $0 + $1.length }) {
      var whole = request
      let uploads = large.isEmpty ? [] : try takeUploads(into: &whole)
      let attachments = try holdAttachments(of: whole, access)
      return try turn.withLock { _ throws(any Error) in
        try take(whole, uploads, attachments, access)
      }
    }
    if mark.mark.number > 0 { try feed.leases.withLock { try $0.notePush(of: replica, feed) } }
    // Also a batch that was taken before may not be on the disk yet.
    return PushAnswer(
      mark: mark.mark, range: try range(for: replica, through: mark.position.offset),
      current: try current(of: request, mark.mark, through: mark.position.offset, access))
  }

  /// Whether a replica may push, as far as leases say.
  private func hasLease(_ replica: ReplicaID) -> Bool {
    guard let seconds = options.leaseSeconds, seconds > 0 else { return true }
    return feed.leases.withLock { $0[replica] }?.expires ?? 0 > feed.now.sinceEpoch
  }

  /// Refuses what is no batch.
  private func check(_ request: PushRequest) throws(PeerError) {
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
    _ request: PushRequest, _ uploads: [UploadTable.Upload],
    _ attachments: [AttachmentID: AttachmentHold], _ access: SyncAccess
  ) throws -> FeedMark {
    let mark = try feed.mark(of: request.replica)
    guard mark.mark.precedes(request) || PlantedSyncBug.isOn(.markNotChecked) else { return mark }
    guard hasLease(request.replica) else {
      throw PeerError(
        .leaseExpired, "the lease has run out: compare everything, then say hello, then push")
    }
    try checkHello(of: request, access)
    try checkUploads(of: request, uploads)
    try checkAttachments(of: request, attachments)
    for _ in 0..<Self.attempts {
      var judge = Judge(
        request, feed: feed, access: access, policies: try feed.policies(),
        validators: options.validators)
      var judged = try judge.run()
      judged.uploads = uploads.flatMap(\.keys)
      switch try feed.append(judged) {
      case .appended(let mark):
        feed.uploads.withLock { known in for upload in uploads { known.remove(upload) } }
        feed.arriving.withLock { $0.claim(Array(attachments.keys), for: request.replica) }
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
