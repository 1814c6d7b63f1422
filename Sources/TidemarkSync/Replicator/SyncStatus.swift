public import Observation
internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// What a replicator is doing, what is pending, what it has transferred and its last error: the
/// data of a sync indicator in a user interface.
@dynamicMemberLookup
public struct SyncStatus: Sendable, Hashable {
  /// The present activity of a replicator, for a user interface.
  @nonexhaustive
  public enum Phase: Sendable, Hashable {
    /// The replicator was not started, or it was stopped.
    case stopped
    /// The replicator is sending its hello, the first request of a session.
    case connecting
    /// The replicator is sending entries or attachments to the peer.
    case pushing
    /// The replicator is pulling entries from the peer, or comparing digests with it.
    case pulling
    /// Both sides are up to date. The replicator waits for writes in the store or at the peer.
    case idle
    /// A call failed. The replicator retries at the time `until`, or at a
    /// ``Replicator/retryNow()``, but not before the end of the peer's `Retry-After`.
    case waiting(until: Timestamp)
    /// The ``SyncBudget`` holds transfers back. The replicator continues by itself: when the day
    /// ends, when the network changes, and for urgent entries.
    case heldBack(HoldReason)
    /// The replicator needs an action of the program or the user. It also retries by itself, after
    /// ``Replicator/Configuration/longestRetry`` to twice that time.
    case paused(PauseReason)
  }

  /// Why a replicator waits for an action of the program or the user.
  @nonexhaustive
  public enum PauseReason: Sendable, Hashable {
    /// The peer itself rejects the authorization, even after it was renewed. Sign in again, then
    /// call ``Replicator/retryNow()``.
    case unauthorized
    /// The peer itself says that the authorization does not allow the call;
    /// ``Replicator/retryNow()`` retries at once.
    case forbidden
    /// The store is suspended; the replicator continues when it is resumed.
    case storeSuspended
    /// The peer has deleted so many keys, `keys` of them, that the user must confirm; see
    /// ``Replicator/decideDeletions(_:)``.
    case deletionsToDecide(keys: Int)
    /// The peer has refused so many entries, or so many wait for a decision, that the replicator
    /// sends nothing more; see ``TooManyParkedError``.
    case tooManyParked(entries: Int)
  }

  /// A failure of the peer or of this store, with its time, as a ``SyncStatus`` shows it.
  public struct Failure: Sendable, Hashable {
    /// The reason of the failure, as a text for people.
    public var message: String
    /// The kind of the peer's error; nil when this store failed and not the peer.
    public var kind: PeerError.Kind?
    /// When the failure occurred, by this store's clock.
    public var time: Timestamp
  }

  /// What the replicator is doing: idle, pushing, pulling, waiting and so on.
  public var phase = Phase.stopped
  /// The entries that are not synced. ``Replicator/status`` counts at the call, and so does the
  /// first of ``Replicator/statuses()``; later ones have the count of the last change of phase, or
  /// of at most a second ago. While a request is in flight the count is that of its beginning.
  /// ``Replicator/pending`` is always exact.
  public var pending = PendingSummary()
  /// Counts of the replicator's work since it was made. `status.pushed` reads one of them.
  public var totals = SyncTotals()
  /// How many entries of the peer's feed the replicator has still to read. The number includes
  /// entries that it will skip, such as this store's own; it is 0 while the feed's end is unknown.
  public var entriesToTake: UInt64 = 0
  /// The last failure; nil after a success, unless a change is delayed because of it.
  public var lastError: Failure?
  /// When the peer answered last; nil before the first answer.
  public var lastSuccess: Timestamp?

  /// Reads one counter of ``totals``, so that `status.pushed` works.
  public subscript(dynamicMember count: KeyPath<SyncTotals, Int>) -> Int {
    totals[keyPath: count]
  }
}

/// The outcome of ``Replicator/syncOnce(deadline:)``: what it transferred, what is still pending,
/// and why.
@dynamicMemberLookup
public struct SyncReport: Sendable, Hashable {
  /// Counts of the work of this call. `report.pushed` reads one of them.
  public var totals = SyncTotals()
  /// Counts the entries that the peer still does not have at the end of the call.
  public var pending = PendingSummary()
  /// Whether every entry that was pending at the call is synced or parked, and the feed is pulled
  /// to its end. False if an entry was written `after` an entry that waits for the user.
  public var isComplete = false
  /// Why the ``SyncBudget`` held transfers back; nil if it did not.
  public var heldBack: HoldReason?
  /// The last failure, if the deadline ended the call; otherwise nil.
  public var lastError: SyncStatus.Failure?

  /// Reads one counter of ``totals``, so that `report.pushed` works.
  public subscript(dynamicMember count: KeyPath<SyncTotals, Int>) -> Int {
    totals[keyPath: count]
  }
}

/// Counts of the entries that are not synced.
///
/// Counted are own puts and deletes of class `owned` that are the newest of their key, within the
/// scope, and without a verdict. Not counted are entries from a peer, touches, entries of class
/// `cache`, entries that a newer one replaced before they were sent, and keys that were put and
/// deleted before they were sent. An entry in flight counts until its verdict. Entries that wait
/// for the user (parked, or to be decided) are counted separately. Those written `after` one of
/// them count in ``entries``, since they are sent once it is decided; ``PendingEntry/state`` shows
/// which they are.
public struct PendingSummary: Sendable, Hashable {
  /// How many entries the replicator will send by itself, once the peer can be reached and the
  /// entries before them are decided.
  public var entries = 0
  /// The bytes of the keys and values of the pending ``entries``.
  public var bytes = 0
  /// When the oldest of the pending ``entries`` was committed; nil if there is none.
  public var oldest: Timestamp?
  /// How many of the pending ``entries`` were sent and have no answer of the peer yet.
  public var inFlight = 0
  /// How many entries the peer has refused; ``Replicator/parked()`` lists them.
  public var parked = 0
  /// How many conflicts the user must decide; ``Replicator/conflicts()`` lists them.
  public var needsDecision = 0

  /// Creates a summary in which every count is 0.
  public init() {}

  /// Whether no entry waits for the peer or for the user.
  public var isEmpty: Bool { entries == 0 && parked == 0 && needsDecision == 0 }
}

/// The status of a replicator as an observable object for views, updated as long as it lives.
///
/// ```swift
/// let model = SyncStatusModel(replicator)
/// Text(model.status.phase == .idle ? "up to date" : "\(model.status.pending.entries) pending")
/// ```
@MainActor @Observable
public final class SyncStatusModel {
  /// The replicator's latest status. Views that read it update when it changes.
  public private(set) var status: SyncStatus

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Creates a model that follows a replicator's status for as long as the model lives.
  /// - Parameter replicator: the replicator to follow.
  public init(_ replicator: Replicator) {
    status = replicator.status
    let statuses = replicator.statuses()
    task = Task { [weak self] in
      for await status in statuses {
        guard let self else { return }
        self.status = status
      }
    }
  }

  deinit { task?.cancel() }
}
