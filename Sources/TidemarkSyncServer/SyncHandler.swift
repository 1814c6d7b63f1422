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
  private let upkeep: any FeedUpkeep
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
  package init(
    feed: any Feed & FeedUpkeep, options: Options = Options()
  ) throws(TidemarkError) {
    self.feed = feed
    upkeep = feed
    var options = options
    options.limits.changes = min(max(options.limits.changes, 1), Self.mostChanges)
    options.limits.bytes = min(max(options.limits.bytes, 1), Self.mostBytes)
    options.attachmentBytes = min(max(options.attachmentBytes, 0), Limits.attachmentBytes)
    // Room for what one batch may have, with what its files take beside it.
    let most = max(options.attachmentBytes, Limits.valueBytes + options.limits.bytes)
    options.attachmentUploadBytes = max(options.attachmentUploadBytes, most + most / 64)
    options.attachmentUploads = max(options.attachmentUploads, 1)
    self.options = options
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
  public var unreadableUploads: [TidemarkError] { upkeep.unreadableUploads }

  /// The policies that were set.
  public var policies: [CollectionPolicy] { (try? feed.look(FeedQuestion()).policies.rows) ?? [] }

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
      var table = try feed.look(FeedQuestion()).policies
      table.set(policy, for: Key(prefix).bytes, at: 0)
      do throws(FormatError) { try table.rows.check() } catch {
        throw TidemarkError(.limitExceeded, error.reason)
      }
    }
    try feed.settle(through: feed.setPolicy(policy, prefix: Key(prefix).bytes))
  }

  /// Ends the lease of a replica that will not come back, so that nothing is kept for it. If it
  /// comes back all the same, it has to compare everything before it may push.
  public func forget(_ replica: ReplicaID) throws(TidemarkError) {
    var view = try feed.look(FeedQuestion(of: replica))
    // Calls of the replica may change its lease meanwhile.
    while view.lease != nil {
      try feed.setLease(nil, of: replica, after: view, most: options.mostLeases, writes: true)
      view = try feed.look(FeedQuestion(of: replica))
    }
    try feed.settle(through: view.range.headPosition)
  }

  /// Calls `body` whenever something new can be pulled, on whichever thread has appended it.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  public func observe(_ body: @escaping @Sendable () -> Void) -> Int { upkeep.observe(body) }

  /// Ends what ``observe(_:)`` began.
  public func stopObserving(_ token: Int) { upkeep.stopObserving(token) }

  /// Closes the database. Further calls are answered with ``PeerError/Kind/unavailable``.
  public func close() throws(TidemarkError) { try upkeep.close() }

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

  /// How often a call begins anew because the feed has changed beneath it.
  static let attempts = 16

  /// Reads upon a view of the feed, and anew where what was read may not be what the view tells of.
  /// - Returns: with what was read, the view in the end. An answer takes its range from it: what it
  ///   tells of lies in that range then, and is on the disk when the range is.
  func reading<R>(
    _ question: FeedQuestion, _ body: (FeedView) throws -> R
  ) throws -> (R, end: FeedView) {
    for _ in 0..<Self.attempts {
      let view = try feed.look(question)
      let result = try body(view)
      let end = try feed.look(FeedQuestion(of: question.replica))
      if end.continues(view) { return (result, end) }
    }
    throw PeerError(.busy, "the feed is being compacted or restored", retryAfter: .seconds(1))
  }

  /// The range of the feed, as far as it matters to the replica of a view: one that held nothing
  /// when deletes were dropped has not missed them.
  /// - Parameter offset: where to end, unless more is on the disk, or less can be seen.
  func range(_ view: FeedView, through offset: UInt64 = .max) -> FeedRange {
    var range = view.range
    range.head = min(max(view.durable, offset), range.head)
    if view.lease?.clearedThrough ?? 0 >= range.truncatedThrough { range.truncatedThrough = 0 }
    return range
  }

  /// Whether a replica may push, as far as leases say.
  func hasLease(_ view: FeedView) -> Bool {
    guard let seconds = options.leaseSeconds, seconds > 0 else { return true }
    return view.lease?.expires ?? 0 > view.now
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
    try upkeep.space(from: minimum)
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
    try upkeep.compact(leaseSeconds: options.leaseSeconds, unless: shouldStop)
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
    let replica = request.replica
    let isAlive = try renew(request, try feed.look(FeedQuestion(of: replica)))
    let view = try feed.look(FeedQuestion(of: replica))
    // Up to the mark at least; nobody waits for the record of a lease. But for the first one of a
    // feed: a position before everything is in every feed, and a late batch that was formed by it
    // would be taken by any.
    let end = view.durable > 0 ? view.mark.position.offset : view.range.head
    var answer = HelloAnswer(
      feed: feed.id, range: range(view, through: end), mark: view.mark.mark, time: view.now,
      limits: options.limits, reach: access.reach,
      attachmentBytes: feed.contents == nil || options.attachmentBytes == 0
        ? nil : options.attachmentBytes,
      policies: view.policies.rows(within: access))
    if options.leaseSeconds != nil {
      let expires = isAlive && hasLease(view) ? view.lease?.expires : nil
      answer.isLeaseExpired = expires == nil
      answer.leaseSeconds = UInt32(clamping: (max(expires ?? 0, view.now) - view.now) / 1000)
    }
    return answer
  }

  /// - Returns: whether the replica may go on without comparing everything.
  private func renew(
    _ request: HelloRequest, _ view: FeedView
  ) throws(TidemarkError) -> Bool {
    let (range, known) = (view.range, view.lease)
    let period = options.leaseSeconds.map { UInt64($0) * 1000 }
    let expires = period.map { view.now + $0 } ?? .max
    // A replica that has pushed holds something, whatever it has read.
    let holdsNothing = request.cursor == .beginning && view.mark.mark.number == 0
    // A replica that has been here and has no lease was forgotten.
    let isNew = known == nil && holdsNothing
    var isAlive = isNew || (known?.expires ?? 0) > view.now || options.leaseSeconds == nil
    // Deletes that were dropped since it compared have to be compared, too.
    let hasAll = request.hasResynced && request.cursor.offset >= range.truncatedThrough
    // The lease of a replica that has read further says nothing of a copy of it: deletes that one
    // has seen, or found out by comparing, may be gone before the copy has read them.
    let isBehind = request.cursor.offset < min(known?.cursor.offset ?? 0, range.truncatedThrough)
    if isBehind, !holdsNothing { isAlive = false }
    if PlantedSyncBug.isOn(.leaseIgnored) { isAlive = true }
    guard isAlive || hasAll else { return false }
    let common = range.lastCommonOffset(with: request.cursor) ?? 0
    var lease = FeedLease(
      expires: expires, readsUntil: request.reads ? expires : known?.readsUntil ?? 0,
      cursor: range.position(ofOffset: common), clearedThrough: known?.clearedThrough ?? 0)
    // A replica that holds nothing, or has just compared everything, has missed no delete.
    if holdsNothing || hasAll || PlantedSyncBug.isOn(.leaseIgnored) {
      lease.clearedThrough = range.truncatedThrough
    }
    // The end that was written down still stands until a sixteenth of a lease has passed.
    func isOld(_ end: UInt64, _ known: UInt64) -> Bool {
      period.map { end < known || end - known > $0 / 16 } ?? (end != known)
    }
    var writes = true
    if let known, known.clearedThrough == lease.clearedThrough,
      !isOld(lease.expires, known.expires), !isOld(lease.readsUntil, known.readsUntil)
    {
      lease.expires = known.expires
      lease.readsUntil = known.readsUntil
      writes = false
    }
    try feed.setLease(
      lease, of: request.replica, after: view, most: options.mostLeases, writes: writes)
    return true
  }
}
