public import Tidemark
public import TidemarkEngine
// Programs import this module alone and find messages and peers with it.
@_exported public import TidemarkSyncProtocol

/// The server's side of replication for one database, without sockets: it answers the calls of a
/// ``Peer`` from a feed, by default the log of a store that it opens.
///
/// ```swift
/// let handler = try SyncHandler(at: "notes.tidemark")
/// try handler.setPolicy(.lastWriterWins, forKeysWithPrefix: "setting/")
/// let answer = try handler.push(request, access: SyncAccess(to: scopeOfTheCaller))
/// ```
/// All calls are synchronous and may come from any thread; pushes are judged one after the other.
/// A call is answered after everything in the answer is durable, see ``StagedAnswer``. All state is
/// in the feed: a handler that is opened again goes on as if nothing had happened.
///
/// Authorization is decided by the caller, who passes with every call what it reaches.
public final class SyncHandler: Sendable {
  /// The settings of a handler besides its store: limits, leases, validators and attachment space.
  public struct Options: Sendable {
    /// The most changes of a batch, and the most bytes of a batch or page. The default is 4,000
    /// changes and 512 KiB.
    public var limits: SyncLimits
    /// For how long the handler keeps tombstones for a replica that does not call, rounded up to
    /// whole seconds. The default is 90 days. With nil only the store's retention decides.
    public var lease: Duration?
    /// The same in seconds.
    var leaseSeconds: UInt32? { lease.map { UInt32(clamping: $0.wholeSeconds) } }
    /// How many replicas may have a lease in the log; the default is 10,000. The handler keeps
    /// further leases in memory only. They are lost when it closes or needs the room, and then
    /// their replicas must compare everything.
    public var mostLeases = 10_000
    /// The checks of pushed changes, in the order in which they run.
    public var validators: [SyncValidator]
    /// The most bytes of one attachment's content; 0 refuses attachments.
    public var attachmentBytes = Limits.attachmentBytes
    /// How many uploads may be incomplete, of attachments and large values alike, and how many
    /// bytes uploads may take on the disk, with complete ones whose changes are not pushed yet. To
    /// make room, the one without progress for longest is deleted, if that is a minute at least, or
    /// else the newest of the caller with the most: callers with the same scope count as one, and
    /// each replica that reaches everything as one. One attachment, or the values of one batch,
    /// always fit.
    public var attachmentUploads = 256
    /// The most bytes that uploads may take on the disk, complete uploads without a pushed change
    /// included; see ``attachmentUploads``.
    public var attachmentUploadBytes = Limits.attachmentBytes

    /// Creates the settings of a handler; every parameter has a default.
    /// - Parameters:
    ///   - limits: the limits of a batch or page.
    ///   - lease: for how long tombstones are kept for a replica that does not call; nil for as
    ///     long as the store's retention says.
    ///   - validators: the checks of pushed changes.
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
  /// The options, with values brought within their bounds.
  let options: Options
  /// Held while a batch is judged and appended, so that few batches are judged twice.
  let turn = Lock(())
  /// The lock is held while a table is gathered, which may take long.
  let digests = Lock(DigestCache())

  /// Opens the store in a directory as the database of a handler, or creates the store.
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - configuration: how the store is opened.
  ///   - options: the handler's limits, leases and validators.
  /// - Throws: the errors of opening a store.
  public convenience init(
    at path: String, configuration: Store.Configuration = Store.Configuration(),
    options: Options = Options()
  ) throws(TidemarkError) {
    try self.init(feed: try StoreFeed(at: path, configuration: configuration), options: options)
  }

  /// Creates a handler for an open store, to which the program may write as well. Closing the
  /// handler closes the store.
  /// - Parameters:
  ///   - store: the store that is the database.
  ///   - options: the handler's limits, leases and validators.
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
    // Room for the content of one batch, with the headers and checksums of its files.
    let most = max(options.attachmentBytes, Limits.valueBytes + options.limits.bytes)
    options.attachmentUploadBytes = max(options.attachmentUploadBytes, most + most / 64)
    options.attachmentUploads = max(options.attachmentUploads, 1)
    self.options = options
  }

  /// The bounds of options.
  static let mostChanges = 65_536
  static let mostBytes = 64 << 20

  /// The feed's random id. A client that finds another id than before begins anew.
  public var feedID: ReplicaID { feed.id }

  /// What the handler supports, for a ``Peer`` that calls it.
  public var capabilities: PeerCapabilities {
    PeerCapabilities(limits: options.limits, hasMarkBehindBatch: true)
  }

  /// The errors of uploads from before a restart that cannot be read, for a log. Such uploads count
  /// as absent: their replicas begin them anew.
  public var unreadableUploads: [TidemarkError] { upkeep.unreadableUploads }

  /// The conflict policies set with ``setPolicy(_:forKeysWithPrefix:)``; empty if the feed cannot
  /// be read.
  public var policies: [CollectionPolicy] { (try? feed.look(FeedQuestion()).policies.rows) ?? [] }

  /// Sets how conflicts on a collection's keys are decided. It counts for later pushes and is
  /// stored in the feed. Clients learn of it with their next hello.
  /// - Parameters:
  ///   - policy: nil removes the policy of this prefix.
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

  /// Ends the lease of a replica that will not come back, so that the handler keeps no tombstones
  /// for it. A replica that comes back after all must compare everything before it may push.
  /// - Parameter replica: the id of the replica.
  public func forget(_ replica: ReplicaID) throws(TidemarkError) {
    var view = try feed.look(FeedQuestion(of: replica))
    // Calls of the replica may change its lease meanwhile, which makes `setLease` do nothing.
    while view.lease != nil {
      try feed.setLease(nil, of: replica, after: view, most: options.mostLeases, writes: true)
      view = try feed.look(FeedQuestion(of: replica))
    }
    try feed.settle(through: view.range.headPosition)
  }

  /// Calls `body` whenever a replica can pull a new entry, on the thread that appended the entry.
  /// - Returns: the argument for ``stopObserving(_:)``.
  public func observe(_ body: @escaping @Sendable () -> Void) -> Int { upkeep.observe(body) }

  /// Ends an observation that ``observe(_:)`` began.
  /// - Parameter token: the result of ``observe(_:)``.
  public func stopObserving(_ token: Int) { upkeep.stopObserving(token) }

  /// Closes the database. The handler answers further calls with ``PeerError/Kind/unavailable``.
  public func close() throws(TidemarkError) { try upkeep.close() }

  /// Whether the database was closed, or deleted by another server.
  public var isClosed: Bool { upkeep.isClosed }

  // MARK: What all calls share

  /// Runs a call and turns its errors into those that a peer gets.
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

  /// How often a call is tried when the feed changes while it runs.
  static let attempts = 16

  /// Reads by a view of the feed, and again if the feed changed so that the result may not fit the
  /// view; see ``FeedView/continues(_:)``.
  /// - Parameter known: the view at the end, where the last read has brought it along.
  /// - Returns: with the result, the view at the end, which gives an answer its range: everything
  ///   that was read is in that range, and durable when its end is.
  func reading<R>(
    _ question: FeedQuestion, end known: () -> FeedView? = { nil }, _ body: (FeedView) throws -> R
  ) throws -> (R, end: FeedView) {
    for _ in 0..<Self.attempts {
      let view = try feed.look(question)
      let result = try body(view)
      let end = try known() ?? feed.look(FeedQuestion(of: question.replica))
      if end.continues(view) { return (result, end) }
    }
    throw PeerError(.busy, "the feed is being compacted or restored", retryAfter: .seconds(1))
  }

  /// The range of the feed for the replica of a view: one that held nothing when tombstones were
  /// dropped has not missed them, so it is told of no truncation.
  /// - Parameter offset: the least end; all that is durable is in the range as well.
  func range(_ view: FeedView, through offset: UInt64 = .max) -> FeedRange {
    var range = view.range
    range.head = min(max(view.durable, offset), range.head)
    if view.lease?.clearedThrough ?? 0 >= range.truncatedThrough { range.truncatedThrough = 0 }
    return range
  }

  /// Whether the replica of a view has a live lease, or needs none: only then it may push.
  func hasLease(_ view: FeedView) -> Bool {
    guard let seconds = options.leaseSeconds, seconds > 0 else { return true }
    return view.lease?.expires ?? 0 > view.now
  }
}

extension PeerError {
  /// The error of a feed as a peer gets it. One that may pass is `unavailable`, so that no client
  /// gives a batch up for it. The store's message may contain paths, which callers on other
  /// machines must not see: it is only in ``detail``.
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
  /// Estimates how many bytes a compaction would free.
  /// - Parameter minimum: the least number of superseded bytes for which the call computes the
  ///   estimate.
  public func space(from minimum: Int = 0) throws(TidemarkError) -> LogSpace {
    try upkeep.space(from: minimum)
  }

  /// Rewrites the log without superseded versions that the store's retention does not keep, and
  /// without tombstones that every replica with a live lease has pulled; and deletes expired leases
  /// and abandoned uploads. Calls are answered meanwhile.
  ///
  /// A replica that has not pulled a dropped tombstone gets `cursorGone`, and compares everything.
  /// - Parameter shouldStop: called repeatedly on the calling thread. Once it returns true, the
  ///   call ends with `closed`; segments that are rewritten by then stay rewritten.
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
  /// The handler renews an expired lease only for a replica that has compared everything
  /// (``HelloRequest/hasResynced``).
  /// - Parameters:
  ///   - request: the replica and its cursor.
  ///   - access: the entries that the caller's authorization reaches.
  /// - Throws: ``PeerError`` when the request is invalid or the feed cannot be read or written.
  public func hello(
    _ request: HelloRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> HelloAnswer {
    try settled(\.range) { try stageHello(request, access) }
  }

  func stageHello(_ request: HelloRequest, _ access: SyncAccess) throws -> HelloAnswer {
    let replica = request.replica
    let isAlive = try renew(request, try feed.look(FeedQuestion(of: replica)))
    let view = try feed.look(FeedQuestion(of: replica))
    // The range ends at the mark, so that the answer waits for no sync of a lease's record. Not for
    // the first record of a feed: a client that knew only the beginning, which is in every feed,
    // could have a late batch appended by a feed that was restored since.
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

  /// Gives or renews a replica's lease, unless it has to compare everything first.
  /// - Returns: whether it has a lease.
  private func renew(
    _ request: HelloRequest, _ view: FeedView
  ) throws(TidemarkError) -> Bool {
    let (range, known) = (view.range, view.lease)
    let period = options.leaseSeconds.map { UInt64($0) * 1000 }
    let expires = period.map { view.now + $0 } ?? .max
    // A replica that has pushed holds something, wherever its cursor is.
    let holdsNothing = request.cursor == .beginning && view.mark.mark.number == 0
    // A replica that holds something and has no lease has lost it: only others are new.
    let isNew = known == nil && holdsNothing
    var isAlive = isNew || (known?.expires ?? 0) > view.now || options.leaseSeconds == nil
    // The comparison must be later than every dropped tombstone.
    let hasAll = request.hasResynced && request.cursor.offset >= range.truncatedThrough
    // A cursor before the lease's is that of a copied or restored client: tombstones that the
    // original has pulled, or found by comparing, may be dropped before the copy reads them.
    let isBehind = request.cursor.offset < min(known?.cursor.offset ?? 0, range.truncatedThrough)
    if isBehind, !holdsNothing { isAlive = false }
    if PlantedSyncBug.isOn(.leaseIgnored) { isAlive = true }
    guard isAlive || hasAll else { return false }
    let common = range.lastCommonOffset(with: request.cursor) ?? 0
    var lease = FeedLease(
      expires: expires, readsUntil: request.reads ? expires : known?.readsUntil ?? 0,
      cursor: range.position(ofOffset: common), clearedThrough: known?.clearedThrough ?? 0)
    // A replica that holds nothing, or has just compared everything, has missed no tombstone.
    if holdsNothing || hasAll || PlantedSyncBug.isOn(.leaseIgnored) {
      lease.clearedThrough = range.truncatedThrough
    }
    // To save writes, the stored end is kept until a sixteenth of a lease has passed.
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
