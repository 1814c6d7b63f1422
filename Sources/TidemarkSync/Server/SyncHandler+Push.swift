internal import TidemarkEngine

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
    try settled(try stagePush(request, access), \.range)
  }

  func stagePush(_ request: PushRequest, _ access: SyncAccess) throws(PeerError) -> PushAnswer {
    try answering {
      guard access.canPush else {
        throw PeerError(.forbidden, "the authorization does not allow to write")
      }
      try check(request)
      var large = request.changes.compactMap(\.content.blob)
      if !large.isEmpty, try !isAwaited(request) { large = [] }
      try LargeValues.shared.withRoom(for: large.reduce(0) { $0 + $1.length }) {
        var whole = request
        let uploads = large.isEmpty ? [] : try takeUploads(into: &whole)
        try state.withLock { (state: inout State) throws(any Error) in
          try take(whole, uploads, access, &state)
          try notePush(of: request.replica, &state)
        }
      }
      // Also a batch that was taken before may not be on the disk yet.
      let (mark, place) = try placedMark(of: request.replica)
      return PushAnswer(
        mark: mark, range: try range(for: request.replica, through: place.offset),
        current: try current(of: request, mark, through: place.offset, access))
    }
  }

  /// Whether it may be the batch's turn, so that what was uploaded for it is worth reading.
  private func isAwaited(_ request: PushRequest) throws(TidemarkError) -> Bool {
    guard request.number - 1 == (try mark(of: request.replica)).number else { return false }
    guard let seconds = options.leaseSeconds, seconds > 0 else { return true }
    let expires = state.withLock { $0.leases[request.replica]?.expires ?? 0 }
    return expires > feed.now.sinceEpoch
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
    var bytes = 0
    var largest = 0
    var sequences: Set<UInt64> = []
    for change in request.changes {
      let content = change.content
      let size = change.key.count + (content.blob?.length ?? content.value.count)
      bytes += size
      largest = max(largest, size)
      guard sequences.insert(change.sequence).inserted else {
        throw PeerError(.malformed, "the batch has two changes with the same sequence")
      }
    }
    // One entry may be larger than a message is meant to be, but not the rest as well.
    guard bytes - largest <= options.limits.bytes else {
      throw PeerError(
        .malformed, "the batch has \(bytes) bytes; about \(options.limits.bytes) are allowed")
    }
  }

  /// Appends the batch, unless the mark says that it is not its turn.
  private func take(
    _ request: PushRequest, _ uploads: [UploadTable.Upload], _ access: SyncAccess,
    _ state: inout State
  ) throws {
    let mark = try mark(of: request.replica)
    #if TIDEMARK_PLANTED
      let isItsTurn =
        PlantedSyncBug.isOn(.markNotChecked) || request.number - 1 == mark.number
    #else
      let isItsTurn = request.number - 1 == mark.number
    #endif
    guard isItsTurn else { return }
    if let seconds = options.leaseSeconds, seconds > 0 {
      guard let lease = state.leases[request.replica], lease.expires > feed.now.sinceEpoch else {
        throw PeerError(
          .leaseExpired, "the lease has run out: compare everything, then say hello, then push")
      }
    }
    #if TIDEMARK_PLANTED
      let isFenced = !PlantedSyncBug.isOn(.lateBatchForgotten)
    #else
      let isFenced = true
    #endif
    guard try !isFenced || feed.range().contains(request.knownHead) else {
      throw PeerError(.busy, "the feed was restored from an older copy since: say hello again")
    }
    #if TIDEMARK_PLANTED
      let isReachKnown = PlantedSyncBug.isOn(.reachIgnored)
    #else
      let isReachKnown = false
    #endif
    // No comparison would look for a change that is taken here and out of reach at the next hello.
    guard isReachKnown || request.reach.map({ $0 == access.reach }) ?? true else {
      throw PeerError(
        .busy, "the authorization reaches other entries than at the last hello: say hello again",
        retryAfter: .seconds(0))
    }
    try checkUploads(of: request, uploads, state)
    for attempt in 1...Self.attempts {
      var judge = Judge(
        request, feed: feed, access: access, policies: state.policies,
        validators: options.validators)
      var judged = try judge.run()
      judged.uploads = uploads.flatMap(\.names)
      do {
        _ = try feed.append(judged)
        for upload in uploads { state.uploads.remove(upload) }
        return
      } catch {
        guard error.code == .conflict, attempt < Self.attempts else { throw error }
      }
    }
  }
}
