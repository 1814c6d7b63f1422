public import Tidemark
internal import TidemarkEngine
// Programs import this module alone and find messages and peers with it.
@_exported public import TidemarkSyncProtocol

/// Replicates a store with one peer: sends what is not synced, and takes what others have written.
///
/// ```swift
/// let replicator = try store.replicator(named: "home", peer: peer)
/// replicator.start()
/// for await status in replicator.statuses() { show(status.pending.entries) }
/// ```
/// What it knows of the peer is in the store's log under the replicator's name: it goes on where
/// it was after the process has ended, however that happened. It never makes writers wait; its own
/// work goes to a thread of its own.
///
/// Failures of the peer are never final. After one the replicator waits for as long as the peer has
/// asked for and for a random time whose ceiling grows up to five minutes, and tries again;
/// ``poke()`` makes it try earlier.
public final class Replicator: Sendable {
  /// How a replicator works.
  public struct Configuration: Sendable {
    /// Which way entries go.
    public var direction: SyncDirection
    /// How long a peer that can wait is asked to wait for something new.
    public var longPoll: Duration
    /// How often a peer that cannot wait is asked.
    public var pollInterval: Duration
    /// Ceiling of the time to wait after the first failure; it doubles with every further one.
    public var firstRetry: Duration
    /// Ceiling of the time to wait after many failures. A replicator that is paused asks again
    /// after so long, or up to twice that.
    public var longestRetry: Duration
    /// The share of the network that may be used; nil for all of it.
    public var budget: SyncBudget?
    /// The rules for the content of attachments.
    public var attachments: AttachmentPolicy
    /// Where the peer is, for `logtool peers`; nothing depends on it.
    public var target: String
    /// How time passes.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// How a replicator works.
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

  /// The name that the store knows the peer by.
  public let name: String
  /// The store.
  public let store: Store
  let peer: any Peer
  let configuration: Configuration
  let host: SyncHost
  /// The number by which the host tells this replicator from earlier ones of the same name.
  let owner: Int
  let state = Lock(State())
  /// Raised by writes, pokes and whatever else ends the waiting.
  let news = Signal()
  /// Raised by ``poke()``.
  let pokes = Signal()
  /// Raised at the end of every round.
  let rounds = Signal()

  struct State {
    /// The driver that makes the calls now.
    enum Driver { case nobody, run, once }

    var driver = Driver.nobody
    var task: Task<Void, Never>?
    var status = SyncStatus()
    var observers: [Int: AsyncStream<SyncStatus>.Continuation] = [:]
    var nextObserver = 0
    /// When the pending entries of the status were counted, monotonic nanoseconds.
    var counted: UInt64 = 0
    /// The last entry that was there then; nil before the first count.
    var countedThrough: UInt64?
    /// Whether the phase has changed since without a count.
    var isCountDue = false
    var lastRound: Round?
  }

  /// A round that has ended.
  struct Round {
    /// How many pokes there had been when it began.
    var pokes: UInt64
    /// Why something was held back, or the round has failed.
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
      throw TidemarkError(.readOnly, "a replicator writes down how far it is; open for writing")
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
    // Once it is taken: `deinit`, which releases it, runs for what fails from here on.
    self.host = host
  }

  deinit {
    for observer in state.withLock({ Array($0.observers.values) }) {
      observer.finish()
    }
    host.release(owner)
  }

  private static let nameBytes = 1024

  /// Goes on at once with what the replicator would do later: after the network has come back,
  /// after somebody has signed in, when a push notification has arrived.
  ///
  /// It ends a pause, and the waiting after a failure, though not what the peer has asked for.
  public func poke() {
    pokes.raise()
    news.raise()
  }

  // MARK: Status

  /// The status of the replicator. Entries that were written since the pending ones were counted
  /// are counted at the call, unless a call to the peer is under way.
  public var status: SyncStatus {
    countHere()
    return state.withLock { $0.status }
  }

  /// The status of the replicator, now, as ``status`` tells it, and after every change. A slow
  /// reader misses what lies between, never the last.
  public func statuses() -> AsyncStream<SyncStatus> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: SyncStatus.self, bufferingPolicy: .bufferingNewest(Self.bufferedStatuses))
    countHere()
    let id = state.withLock { state in
      state.nextObserver += 1
      state.observers[state.nextObserver] = continuation
      continuation.yield(state.status)
      return state.nextObserver
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
    }
    return stream
  }

  private static let bufferedStatuses = 16

  var hasObservers: Bool { state.withLock { !$0.observers.isEmpty } }

  /// Changes the status and tells everybody.
  func change(_ body: (inout SyncStatus) -> Void) {
    state.withLock { state in
      let before = state.status
      body(&state.status)
      guard state.status != before else { return }
      // Under the lock, so that all hear the same order; a stream takes it without waiting.
      for observer in state.observers.values { observer.yield(state.status) }
    }
  }
}

extension Store {
  /// A replicator of the store with a peer; it does nothing until it is told to.
  /// - Parameters:
  ///   - name: what the store knows the peer by: what was sent and taken is remembered under it.
  ///     At one time there is one replicator of a name.
  ///   - peer: the remote end.
  ///   - scope: which entries are sent and taken.
  ///   - resolver: decides where both sides have written.
  ///   - configuration: how it works.
  /// - Throws: `invalidArgument` for a name that is in use, or none; `readOnly`.
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

/// The pending entries of the status. Every entry is looked at once, which costs more than half of
/// what it costs to write it: a program that writes while its server is off must not pay for a
/// number that nobody looks at.
extension Replicator {
  /// So many new entries are counted whether somebody looks or not.
  private static let countedUnasked: UInt64 = 1024

  /// Counts what is pending before the replicator waits; where much was written and nobody looks,
  /// that is left until somebody does, or until the writers pause.
  func countUnlessMuch() async {
    let through = state.withLock { $0.countedThrough ?? 0 }
    guard hasObservers || store.lastSequence &- through <= Self.countedUnasked else {
      return state.withLock { $0.isCountDue = true }
    }
    await countPending(always: true)
  }

  /// Counts what is pending every second: in which something was written, while somebody looks;
  /// in which next to nothing was, while a count is due.
  func keepCounting() async throws -> Bool {
    while true {
      let (seen, sequence) = (news.count, store.lastSequence)
      try await Task.sleep(for: .seconds(1))
      let isQuiet = store.lastSequence &- sequence <= Self.countedUnasked
      if hasObservers ? news.count != seen : isQuiet && state.withLock({ $0.isCountDue }) {
        await countPending(always: true)
      }
    }
  }

  /// Brings the pending entries of the status up to date.
  /// - Parameter always: also when that was done just now.
  func countPending(always: Bool) async {
    let now = store.engine.environment.clock.monotonicNanoseconds()
    let isDue = state.withLock { state in
      guard always || !state.observers.isEmpty && now &- state.counted >= 1_000_000_000 else {
        return false
      }
      state.counted = now
      return true
    }
    let through = store.lastSequence
    guard isDue, let pending = try? await host.perform({ try $0.pendingSummary() }) else { return }
    note(pending, through: through)
  }

  /// Counts on the calling thread, unless the count is up to date or a call is under way.
  func countHere() {
    let through = store.lastSequence
    let isDue = state.withLock { state in
      guard let counted = state.countedThrough else { return true }
      let isCalling = [.connecting, .pushing, .pulling].contains(state.status.phase)
      return counted != through && !isCalling
    }
    guard isDue, let pending = try? host.toldHere({ try $0.pendingSummary() }) else { return }
    note(pending, through: through)
  }

  func note(_ pending: PendingSummary, through sequence: UInt64) {
    let last = store.lastSequence
    let isCurrent = state.withLock { state in
      // A count that comes late knows nothing of what was written since.
      guard sequence >= min(state.countedThrough ?? 0, last) else { return false }
      (state.countedThrough, state.isCountDue) = (sequence, false)
      return true
    }
    if isCurrent { change { $0.pending = pending } }
  }
}
