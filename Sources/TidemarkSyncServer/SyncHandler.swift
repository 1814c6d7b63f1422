public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

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
    /// The bytes that large values whose changes have not come yet may take; what has waited
    /// longest goes first, but for a minute after its last part. One batch fits in any case.
    public var uploadBytes: Int
    /// Most bytes of an attachment's content; 0 takes no attachments.
    public var attachmentBytes = Limits.attachmentBytes
    /// How many attachments may be on their way, and how many bytes these may take on the disk,
    /// together with those that wait for the changes that name them. What has waited longest makes
    /// room, but for a minute after its last part.
    public var attachmentUploads = 256
    public var attachmentUploadBytes = Limits.attachmentBytes

    /// Options.
    /// - Parameters:
    ///   - limits: what fits into a message.
    ///   - lease: for how long deletes are kept for a replica that does not call.
    ///   - validators: look at what is pushed.
    ///   - uploadBytes: for large values whose changes have not come yet.
    public init(
      limits: SyncLimits = SyncLimits(bytes: 512 << 10), lease: Duration? = .seconds(90 * 86_400),
      validators: [SyncValidator] = [], uploadBytes: Int = 256 << 20
    ) {
      self.uploadBytes = uploadBytes
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
    // Room for what one batch may have.
    options.uploadBytes = max(options.uploadBytes, Limits.valueBytes + options.limits.bytes)
    options.attachmentBytes = min(max(options.attachmentBytes, 0), Limits.attachmentBytes)
    options.attachmentUploadBytes = max(options.attachmentUploadBytes, options.attachmentBytes)
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

  /// The policies that were set.
  public var policies: [CollectionPolicy] { (try? PolicyTable(feed).rows) ?? [] }

  /// Says what becomes of conflicting changes of a collection. It counts for what is pushed from
  /// now on, and stands in the feed.
  /// - Parameters:
  ///   - policy: nil takes back what was set for this prefix.
  ///   - prefix: of the collection's keys; text or bytes, empty for all keys. The
  ///     longest prefix counts.
  public func setPolicy(
    _ policy: ConflictPolicy?, forKeysWithPrefix prefix: some BytesConvertible
  ) throws(TidemarkError) {
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
    _ = try feed.settledRange()
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
  /// nobody gives a batch up for it.
  init(_ error: TidemarkError) {
    switch error.code {
    case .historyGone, .historyDiverged: self.init(.cursorGone, error.message)
    case .damaged, .possiblyStale, .formatTooNew, .formatTooOld, .invalidArgument:
      self.init(.failed, error.message)
    case .limitExceeded: self.init(.malformed, error.message)
    default: self.init(.unavailable, error.message)
    }
  }
}
