internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Answers the first call of a session, and renews the caller's lease.
  ///
  /// A lease that has run out is renewed only for a replica that has compared everything
  /// (``HelloRequest/hasResynced``).
  /// - Throws: ``PeerError``.
  public func hello(
    _ request: HelloRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> HelloAnswer {
    try settled(\.range) { try stageHello(request, access) }
  }

  func stageHello(_ request: HelloRequest, _ access: SyncAccess) throws -> HelloAnswer {
    let mark = try feed.mark(of: request.replica)
    let lease = try renew(request, mark.mark)
    let now = feed.now.sinceEpoch
    // Up to the mark at least; nobody waits for the record of a lease. But for the first one of a
    // feed: a position before everything is in every feed, and a late batch that was formed by it
    // would be taken by any.
    let bounds = try feed.bounds()
    let end = bounds.durable > 0 ? mark.position.offset : bounds.range.head
    let range = try range(for: request.replica, through: end)
    var answer = HelloAnswer(
      feed: feed.id, range: range, mark: mark.mark, time: now,
      limits: options.limits, reach: access.reach,
      attachmentBytes: feed.contents == nil || options.attachmentBytes == 0
        ? nil : options.attachmentBytes)
    if options.leaseSeconds != nil {
      answer.isLeaseExpired = lease == nil
      answer.leaseSeconds = UInt32(clamping: (max(lease?.expires ?? 0, now) - now) / 1000)
    }
    return answer
  }

  /// - Returns: the lease; nil when it has run out.
  private func renew(
    _ request: HelloRequest, _ mark: ReplicaMark
  ) throws(TidemarkError) -> LeaseRecord? {
    let range = try feed.range()
    let now = feed.now.sinceEpoch
    let period = options.leaseSeconds.map { UInt64($0) * 1000 }
    let expires = period.map { now + $0 } ?? .max
    return try feed.leases.withLock {
      (leases: inout FeedLeases) throws(TidemarkError) -> LeaseRecord? in
      let known = leases[request.replica]
      // A replica that has pushed holds something, whatever it has read.
      let holdsNothing = request.cursor == .beginning && mark.number == 0
      // A replica that has been here and has no lease was forgotten.
      let isNew = known == nil && holdsNothing
      var isAlive = isNew || (known?.expires ?? 0) > now || options.leaseSeconds == nil
      // Deletes that were dropped since it compared have to be compared, too.
      let hasAll = request.hasResynced && request.cursor.offset >= range.truncatedThrough
      // The lease of a replica that has read further says nothing of a copy of it: deletes that one
      // has seen, or found out by comparing, may be gone before the copy has read them.
      let isBehind = request.cursor.offset < min(known?.cursor.offset ?? 0, range.truncatedThrough)
      if isBehind, !holdsNothing { isAlive = false }
      if PlantedSyncBug.isOn(.leaseIgnored) { isAlive = true }
      guard isAlive || hasAll else { return nil }
      let common = range.lastCommonOffset(with: request.cursor) ?? 0
      var lease = LeaseRecord(
        expires: expires, readsUntil: request.reads ? expires : known?.readsUntil ?? 0,
        cursor: range.position(ofOffset: common), clearedThrough: known?.clearedThrough ?? 0,
        hasPushed: mark.number > 0 || known?.hasPushed ?? false)
      // A replica that holds nothing, or has just compared everything, has missed no delete.
      if holdsNothing || hasAll {
        lease.clearedThrough = range.truncatedThrough
      }
      if PlantedSyncBug.isOn(.leaseIgnored) { lease.clearedThrough = range.truncatedThrough }
      if let known, leases.isRecorded(request.replica),
        !needsWriting(lease, after: known, period: period)
      {
        // The end in the record still stands.
        lease.expires = known.expires
        lease.readsUntil = known.readsUntil
        leases.note(lease, of: request.replica)
      } else {
        try leases.record(lease, of: request.replica, feed)
      }
      try leases.keepDeletes(feed, for: lease)
      return lease
    }
  }

  /// A lease is not written anew at every hello, but when a sixteenth of it has passed.
  private func needsWriting(
    _ lease: LeaseRecord, after known: LeaseRecord, period: UInt64?
  ) -> Bool {
    guard known.clearedThrough == lease.clearedThrough else { return true }
    guard let period else { return known.expires != .max || known.readsUntil != lease.readsUntil }
    func isOld(_ end: UInt64, _ known: UInt64) -> Bool {
      end < known || end - known > period / 16
    }
    return isOld(lease.expires, known.expires) || isOld(lease.readsUntil, known.readsUntil)
  }
}
