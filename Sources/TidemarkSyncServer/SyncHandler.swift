public import Tidemark
public import TidemarkEngine
// Programs import this module alone and find messages and peers with it.
@_exported public import TidemarkSyncProtocol

/// The server's end of replication for one database, without sockets: it takes the calls of a
/// ``Peer`` and answers them from a feed, by default the log of a store of its own.
///
/// ```swift
/// let handler = try SyncHandler(at: "notes.tidemark")
/// try handler.setPolicy(.lastWriterWins, forKeysWithPrefix: "setting/")
/// let answer = try handler.push(request, access: SyncAccess(to: scopeOfTheCaller))
/// ```
/// All calls are synchronous and may come from any thread; pushes are judged one after the other.
/// A call is answered after everything that it tells of is durable, see ``StagedAnswer``. Nothing
/// but the feed is kept: a handler that is opened again goes on as if nothing had happened.
///
/// Authorization is decided before: every call takes what the caller's authorization reaches.
public final class SyncHandler: Sendable {
  /// The settings of a handler beside its store.
  public struct Options: Sendable {
    /// The limits of a message.
    public var limits: SyncLimits
    /// For how long deletes are kept for a replica that does not call, rounded up to whole seconds;
    /// nil for as long as the store's retention has it.
    public var lease: Duration?
    /// The same in seconds.
    var leaseSeconds: UInt32? { lease.map { UInt32(clamping: $0.wholeSeconds) } }
    /// How many leases may stand in the log. Replicas beyond that get one that is forgotten when
    /// the handler is closed, or others need the room; then they have to compare everything.
    public var mostLeases = 10_000
    /// Look at what is pushed, in this order.
    public var validators: [SyncValidator]
    /// Most bytes of an attachment's content; 0 takes no attachments.
    public var attachmentBytes = Limits.attachmentBytes
    /// How many contents may be on their way, attachments and large values alike, and how many
    /// bytes these may take on the disk, together with those that wait for the changes that name
    /// them. Room for another one makes the one that was not gone on with for longest, a minute at
    /// least, and then the newest of whoever has most: callers that reach the same count as one,
    /// and each replica of those that reach everything. One attachment, or the values of one batch,
    /// fit in any case.
    public var attachmentUploads = 256
    public var attachmentUploadBytes = Limits.attachmentBytes

    /// Options.
    /// - Parameters:
    ///   - limits: what fits into a message.
    ///   - lease: for how long deletes are kept for a replica that does not call.
    ///   - validators: look at what is pushed.
    public init(
      limits: SyncLimits = SyncLimits(bytes: 512 << 10), lease: Duration? = .seconds(90 * 86_400),
      validators: [SyncValidator] = []
    ) {
      self.limits = limits
      self.validators = validators
      self.lease = lease
    }
  }

  package let feed: any Feed
  /// With limits that make sense.
  let options: Options
  /// Held while a batch is judged and appended, so that few are judged twice.
  let turn = Lock(())
  /// Held while sums are made, which may take long.
  let digests = Lock(DigestCache())

  /// Opens the database in a directory.
  /// - Parameters:
  ///   - path: the store's directory; made when there is none.
  ///   - configuration: how the store is opened.
  ///   - options: what the handler is told.
  /// - Throws: what opening a store throws.
  public convenience init(
    at path: String, configuration: Store.Configuration = Store.Configuration(),
    options: Options = Options()
  ) throws(TidemarkError) {
    try self.init(feed: try StoreFeed(at: path, configuration: configuration), options: options)
  }

  /// Serves a store that is open, also to programs that write to it themselves. Closing the
  /// handler closes it.
  public convenience init(
    serving store: Store, options: Options = Options()
  ) throws(TidemarkError) {
    try self.init(feed: try StoreFeed(store.engine, store), options: options)
  }

  /// Serves a feed.
  package init(feed: any Feed, options: Options = Options()) throws(TidemarkError) {
    self.feed = feed
    var options = options
    options.limits.changes = min(max(options.limits.changes, 1), Self.mostChanges)
    options.limits.bytes = min(max(options.limits.bytes, 1), Self.mostBytes)
    options.attachmentBytes = min(max(options.attachmentBytes, 0), Limits.attachmentBytes)
    // Room for what one batch may have, with what its files take beside it.
    let most = max(options.attachmentBytes, Limits.valueBytes + options.limits.bytes)
    options.attachmentUploadBytes = max(options.attachmentUploadBytes, most + most / 64)
    options.attachmentUploads = max(options.attachmentUploads, 1)
    self.options = options
    // A policy that is not known here is said at once.
    _ = try PolicyTable(feed)
    try feed.leases.withLock { (leases: inout FeedLeases) throws(TidemarkError) in
      try leases.begin(feed, seconds: options.leaseSeconds, most: options.mostLeases)
    }
  }

  /// Bounds of what options may allow.
  static let mostChanges = 65_536
  static let mostBytes = 64 << 20

  /// Tells the feed from every other one.
  public var feedID: ReplicaID { feed.id }

  /// The capabilities of the handler, for a ``Peer`` that calls it.
  public var capabilities: PeerCapabilities {
    PeerCapabilities(limits: options.limits, hasMarkBehindBatch: true)
  }

  /// The errors of uploads that an earlier opening has left and that cannot be read, for a log.
  /// They are passed over: their senders begin anew.
  public var unreadableUploads: [TidemarkError] { feed.arriving.withLock { $0.unreadable } }

  /// The policies that were set.
  public var policies: [CollectionPolicy] { (try? PolicyTable(feed).rows) ?? [] }

  /// Says what becomes of conflicting changes of a collection. It counts for what is pushed from
  /// now on, and stands in the feed. Clients hear of it with their next hello.
  /// - Parameters:
  ///   - policy: nil takes back what was set for this prefix.
  ///   - prefix: of the collection's keys; text or bytes, empty for all keys. The
  ///     longest prefix counts.
  /// - Throws: `limitExceeded` for more than 1,024 policies, or 32 KiB of prefixes: all of them go
  ///   into one answer; what the store throws.
  public func setPolicy(
    _ policy: ConflictPolicy?, forKeysWithPrefix prefix: some BytesConvertible
  ) throws(TidemarkError) {
    if policy != nil {
      var table = try feed.policies()
      table.set(policy, for: Key(prefix).bytes, at: 0)
      do throws(FormatError) { try table.rows.check() } catch {
        throw TidemarkError(.limitExceeded, error.reason)
      }
    }
    let position = try feed.append(
      .feedPolicy, key: Key(prefix).bytes, value: policy.map(PolicyTable.encode) ?? [])
    try feed.settle(through: position)
  }

  /// Ends the lease of a replica that will not come back, so that nothing is kept for it. If it
  /// comes back all the same, it has to compare everything before it may push.
  public func forget(_ replica: ReplicaID) throws(TidemarkError) {
    try feed.leases.withLock { (leases: inout FeedLeases) throws(TidemarkError) in
      try leases.end(replica, feed)
    }
    try feed.settle(through: feed.range().headPosition)
  }

  /// Calls `body` whenever something new can be pulled, on whichever thread has appended it.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  public func observe(_ body: @escaping @Sendable () -> Void) -> Int { feed.observe(body) }

  /// Ends what ``observe(_:)`` began.
  public func stopObserving(_ token: Int) { feed.stopObserving(token) }

  /// Closes the database. Further calls are answered with ``PeerError/Kind/unavailable``.
  public func close() throws(TidemarkError) { try feed.close() }

  // MARK: What all calls share

  /// Runs a call and says of its failures what a peer must know.
  func answering<R>(_ body: () throws(any Error) -> R) throws(PeerError) -> R {
    do { return try body() } catch let error as PeerError {
      throw error
    } catch let error as TidemarkError {
      throw PeerError(error)
    } catch let error as FormatError {
      throw PeerError(error)
    } catch {
      throw PeerError(.failed, "the server failed")
    }
  }

  /// The range of the feed, as far as it matters to a replica: one that held nothing when deletes
  /// were dropped has not missed them.
  ///
  /// An answer takes it after everything else: what it tells of lies in the range then, and is on
  /// the disk when the range is.
  /// - Parameter offset: where to end, unless more is on the disk, or less can be seen.
  func range(
    for replica: ReplicaID, through offset: UInt64 = .max
  ) throws(TidemarkError) -> FeedRange {
    let bounds = try feed.bounds()
    var range = bounds.range
    range.head = min(max(bounds.durable, offset), range.head)
    return cleared(range, feed.leases.withLock { $0[replica] })
  }

  /// The range for a replica with a lease.
  func cleared(_ range: FeedRange, _ lease: LeaseRecord?) -> FeedRange {
    var range = range
    if lease?.clearedThrough ?? 0 >= range.truncatedThrough { range.truncatedThrough = 0 }
    return range
  }
}

extension PeerError {
  /// The meaning of the feed's failure to the caller. What may pass is `unavailable`, so that
  /// nobody gives a batch up for it. Words of the store may have paths, which are no business of
  /// callers on other machines.
  init(_ error: TidemarkError) {
    switch error.code {
    case .historyGone, .historyDiverged: self.init(.cursorGone, "the cursor is not in the feed")
    case .damaged, .possiblyStale, .formatTooNew, .formatTooOld, .invalidArgument:
      self.init(.failed, "the database is damaged, or cannot do this; the server's log says why")
    case .limitExceeded:
      self.init(.malformed, error.message)
      return
    case .closed, .suspended, .busy, .conflict:
      self.init(.unavailable, error.message)
      return
    case .noSpace: self.init(.unavailable, "the server's disk is full")
    default: self.init(.unavailable, "the database cannot be used now; the server's log says why")
    }
    detail = error.message
  }
}

extension SyncHandler {
  /// Estimates what a compaction would free.
  /// - Parameter minimum: when fewer bytes are superseded, nobody asks how many of them may go.
  public func space(from minimum: Int = 0) throws(TidemarkError) -> LogSpace {
    var space = try feed.space(from: minimum)
    // It goes at the next compaction, and nothing else might ever make that worth while.
    let time = feed.time(before: Self.millisecondsKept)
    let old = feed.arriving.withLock { $0.bytes(untouchedSince: time) }
    space.log += old
    if old >= minimum { space.reclaimable += old }
    return space
  }

  /// Rewrites the log without what nobody needs: versions that the store's retention lets go, but
  /// no delete that a replica with a live lease has yet to hear of; and takes away leases that have
  /// run out, and content whose changes never came. Calls are answered meanwhile.
  ///
  /// A replica that needs what has gone is told `cursorGone`, and compares everything.
  /// - Parameter shouldStop: asked again and again, on the calling thread. Once it says yes, the
  ///   call ends with `closed`; what was rewritten by then stays so.
  @discardableResult
  public func compact(
    unless shouldStop: @escaping @Sendable () -> Bool = { false }
  ) throws(TidemarkError) -> CompactionSummary {
    do throws(TidemarkError) {
      // Replicas that have not called for so long may hold nothing of what is kept.
      try feed.leases.withLock { (leases: inout FeedLeases) throws(TidemarkError) in
        try leases.prepareCompaction(feed)
      }
      feed.arriving.withLock { dropOldContent(&$0) }
    } catch {
      // A full disk is what a compaction is to help with.
      guard error.code == .noSpace else { throw error }
    }
    return try feed.compact(unless: shouldStop)
  }
}

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
        ? nil : options.attachmentBytes,
      policies: try feed.policies().rows(within: access))
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
