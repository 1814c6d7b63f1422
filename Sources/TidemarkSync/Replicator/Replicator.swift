public import Tidemark
internal import TidemarkEngine
// Programs that import this module alone see messages and peers as well.
@_exported public import TidemarkSyncProtocol

/// Replicates a store with one peer: pushes its unsynced entries, and pulls those of other
/// replicas.
///
/// ```swift
/// let replicator = try store.replicator(named: "home", peer: peer)
/// replicator.start()
/// for await status in replicator.statuses() { show(status.pending.entries) }
/// ```
/// Its checkpoint is in the store's log under the replicator's name, so that it resumes after a
/// restart or crash. Writers never wait for it; its work is done on a thread of its own.
///
/// Failures of the peer are never final. After one the replicator waits for the peer's
/// `Retry-After` and a random time whose ceiling grows up to five minutes, and retries;
/// ``retryNow()`` makes it retry earlier.
public final class Replicator: Sendable {
  /// The options of a replicator: its direction, its waits, its network budget and its attachment
  /// rules.
  public struct Configuration: Sendable {
    /// Whether the replicator pushes, pulls or does both. The default is both.
    public var direction: SyncDirection
    /// How long the peer may hold a pull open until a new entry arrives, if it supports long polls.
    /// The default is 25 seconds.
    public var longPoll: Duration
    /// How often the replicator asks a peer without long polls for new entries. The default is 60
    /// seconds.
    public var pollInterval: Duration
    /// The longest wait after the first failure. It doubles with each further failure, up to
    /// ``longestRetry``. The default is one second.
    public var firstRetry: Duration
    /// The longest wait after repeated failures; the default is 300 seconds. A paused replicator
    /// retries after this time to twice this time.
    public var longestRetry: Duration
    /// Limits the bytes a day and the use of expensive networks; nil sets no limits.
    public var budget: SyncBudget?
    /// When the replicator fetches the content of attachments, and whether the device keeps content
    /// that it has uploaded.
    public var attachments: AttachmentPolicy
    /// The peer's address as `logtool peers` shows it. Nothing else depends on it; the default is
    /// empty.
    public var target: String
    /// The sleep function, for simulations.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Creates the options of a replicator; every parameter has a default.
    /// - Parameters:
    ///   - direction: whether the replicator pushes, pulls or does both.
    ///   - longPoll: how long the peer may hold a pull open.
    ///   - pollInterval: how often to ask a peer that supports no long polls.
    ///   - firstRetry: the longest wait after the first failure.
    ///   - longestRetry: the longest wait after repeated failures.
    ///   - target: the peer's address, for `logtool peers` only.
    ///   - budget: limits the bytes a day; nil for no limit.
    ///   - attachments: the rules for the content of attachments.
    public init(
      direction: SyncDirection = .both, longPoll: Duration = .seconds(25),
      pollInterval: Duration = .seconds(60), firstRetry: Duration = .seconds(1),
      longestRetry: Duration = .seconds(300), target: String = "",
      budget: SyncBudget? = nil, attachments: AttachmentPolicy = AttachmentPolicy()
    ) {
      self.attachments = attachments
      self.direction = direction
      self.longPoll = longPoll
      self.pollInterval = pollInterval
      self.firstRetry = firstRetry
      self.longestRetry = longestRetry
      self.target = target
      self.budget = budget
    }
  }

  /// The name of the replicator, under which the store keeps its checkpoint.
  public let name: String
  /// The store whose entries the replicator pushes, and into which it pulls.
  public let store: Store
  let peer: any Peer
  let configuration: Configuration
  let host: SyncHost
  /// The number by which the host tells this replicator from earlier ones of the same name.
  let owner: Int
  let state = Lock(State())
  let statusFeed = StatusFeed()
  /// Raised by everything that ends waiting for news: writes, retry requests, and answers to long
  /// polls.
  let news = Signal()
  /// Raised by ``retryNow()``.
  let retryRequests = Signal()
  /// Raised at the end of every round.
  let rounds = Signal()

  struct State {
    /// The driver that makes the calls now.
    enum Driver { case nobody, run, once }

    var driver = Driver.nobody
    var task: Task<Void, Never>?
    /// When the status's pending entries were counted, in monotonic nanoseconds.
    var counted: UInt64 = 0
    /// The log's last entry at that time; nil before the first count.
    var countedThrough: UInt64?
    var lastRound: Round?
  }

  /// A round that has ended.
  struct Round {
    /// The number of retry requests when it began.
    var retryRequests: UInt64
    /// Why the budget held something back; or the round's error.
    var heldBack: Result<HoldReason?, any Error>
  }

  init(
    _ store: Store, name: String, peer: any Peer, scope: SyncScope, resolver: ConflictResolver,
    configuration: Configuration
  ) throws(TidemarkError) {
    guard !name.isEmpty, name.utf8.count <= Self.nameBytes else {
      throw TidemarkError(
        .invalidArgument, "a replicator's name has 1 to \(Self.nameBytes) bytes of UTF-8")
    }
    guard store.engine.configuration.access != .readOnly else {
      throw TidemarkError(.readOnly, "a replicator saves its progress; open the store for writing")
    }
    self.store = store
    self.name = name
    self.peer = peer
    self.configuration = configuration
    let host = try SyncHost.of(store, name: name)
    owner = try host.take(
      HostState.Settings(
        scope: scope, resolver: resolver, capabilities: peer.capabilities,
        attachments: configuration.attachments, target: configuration.target))
    // Set last: if `take` throws, `deinit` must not release a host that another replicator owns.
    self.host = host
  }

  deinit {
    statusFeed.end()
    host.release(owner)
  }

  private static let nameBytes = 1024

  /// Tells the replicator that the peer may have news, or that the network is back or a user has
  /// signed in: it makes a round at once.
  ///
  /// It ends a pause and the wait after a failure, except for the peer's `Retry-After`.
  public func retryNow() {
    retryRequests.raise()
    news.raise()
  }

  // MARK: Status

  /// The replicator's present status. It counts pending entries at the call, unless a request to
  /// the peer is in flight.
  public var status: SyncStatus {
    countHere()
    return statusFeed.current
  }

  /// Streams the replicator's present ``status``, and the status after every change. A slow reader
  /// may miss intermediate ones, but never the last. The stream ends with the replicator.
  public func statuses() -> AsyncStream<SyncStatus> {
    countHere()
    return statusFeed.stream()
  }

  /// Changes the status and wakes the readers of ``statuses()``.
  func change(_ body: (inout SyncStatus) -> Void) { statusFeed.change(body) }
}

extension Store {
  /// Makes a replicator of the store with a peer; it does nothing until it is started.
  /// - Parameters:
  ///   - name: the peer's name in this store, under which the checkpoint is saved. Only one
  ///     replicator of a name can exist at a time.
  ///   - peer: the remote end.
  ///   - scope: the entries to replicate.
  ///   - resolver: decides conflicts.
  ///   - configuration: its options.
  /// - Throws: `invalidArgument` for an empty name, or one in use; `readOnly`.
  public func replicator(
    named name: String, peer: any Peer, scope: SyncScope = .everything,
    resolver: ConflictResolver = .byPolicy,
    configuration: Replicator.Configuration = Replicator.Configuration()
  ) throws(TidemarkError) -> Replicator {
    try Replicator(
      self, name: name, peer: peer, scope: scope, resolver: resolver,
      configuration: configuration)
  }
}

/// The count of pending entries in the status. It reads every entry once, at more than half of the
/// cost of writing it, so it is only made for observers, and when somebody asks for the status: a
/// program that writes while its server is down must not pay for a number that nobody reads.
extension Replicator {
  /// Counts once a second if anything was written.
  func keepCounting() async throws -> Bool {
    while true {
      let seen = news.count
      try await Task.sleep(for: .seconds(1))
      if news.count != seen { await countPending(always: true) }
    }
  }

  /// Updates the count of pending entries in the status, if that has observers.
  /// - Parameter always: even less than a second after the last count.
  func countPending(always: Bool) async {
    let now = store.engine.environment.clock.monotonicNanoseconds()
    guard statusFeed.hasReaders else { return }
    let isDue = state.withLock { state in
      guard always || now &- state.counted >= 1_000_000_000 else { return false }
      state.counted = now
      return true
    }
    let through = store.lastSequence
    guard isDue, let pending = try? await host.perform({ try $0.pendingSummary() }) else { return }
    note(pending, through: through)
  }

  /// Counts on the calling thread, unless a request is in flight.
  private func countHere() {
    let through = store.lastSequence
    let isFirst = state.withLock { $0.countedThrough == nil }
    let isCalling = [.connecting, .pushing, .pulling].contains(statusFeed.current.phase)
    guard isFirst || !isCalling,
      let pending = try? host.performHere({ try $0.pendingSummary() })
    else { return }
    note(pending, through: through)
  }

  func note(_ pending: PendingSummary, through sequence: UInt64) {
    let last = store.lastSequence
    let isCurrent = state.withLock { state in
      // A late result must not replace one of a longer log.
      guard sequence >= min(state.countedThrough ?? 0, last) else { return false }
      state.countedThrough = sequence
      return true
    }
    if isCurrent { change { $0.pending = pending } }
  }
}
