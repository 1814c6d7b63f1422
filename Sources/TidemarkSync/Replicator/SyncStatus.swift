public import Observation
internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The activity of a replicator, its pending entries, counts and last error: for a user interface.
@dynamicMemberLookup
public struct SyncStatus: Sendable, Hashable {
  /// The kind of activity.
  public enum Phase: Sendable, Hashable {
    /// It was not started, or it was stopped.
    case stopped
    /// It is making the hello, the first request.
    case connecting
    /// It is sending entries or attachments.
    case pushing
    /// It is pulling entries, or comparing.
    case pulling
    /// Everything is done: it waits for writes, here or at the peer.
    case idle
    /// A call failed: it retries at this time, or at a ``Replicator/poke()``, but not before the
    /// end of the peer's `Retry-After`.
    case waiting(until: Timestamp)
    /// Its ``SyncBudget`` holds entries back. It continues by itself: when the day ends, when the
    /// network changes, and with urgent entries.
    case heldBack(HoldReason)
    /// It needs an action of the program or the user. It also retries by itself, after
    /// ``Replicator/Configuration/longestRetry`` to twice that.
    case paused(PauseReason)
  }

  /// Why a replicator waits for an action of the program or the user.
  public enum PauseReason: Sendable, Hashable {
    /// The peer itself rejects the authorization, also a renewed one; ``Replicator/poke()`` retries
    /// at once.
    case unauthorized
    /// The peer itself says that the authorization does not allow the call; ``Replicator/poke()``
    /// retries at once.
    case forbidden
    /// The store is suspended; the replicator continues when it is resumed.
    case storeSuspended
    /// So many keys are deleted at the peer that the user must decide about them; see
    /// ``Replicator/decideDeletions(_:)``.
    case deletionsToDecide(keys: Int)
    /// So many entries are parked or wait for a decision that nothing more is sent; see
    /// ``TooManyParked``.
    case tooManyParked(entries: Int)
  }

  /// A failure.
  public struct Failure: Sendable, Hashable {
    /// The reason, for people.
    public var message: String
    /// The kind of the peer's failure; nil when this store failed.
    public var kind: PeerError.Kind?
    /// When it occurred.
    public var time: Timestamp
  }

  /// The replicator's activity.
  public var phase = Phase.stopped
  /// The entries that are not synced. ``Replicator/status`` counts at the call, and so does the
  /// first of ``Replicator/statuses()``; later ones have the count of the last change of phase, or
  /// of at most a second ago. While a request is in flight the count is that of its beginning.
  /// ``Replicator/pending`` is always exact.
  public var pending = PendingSummary()
  /// Counters since the replicator was made: `status.pushed` is one of them.
  public var totals = SyncTotals()
  /// How many entries of the peer's feed are still to be pulled, also those that are then skipped,
  /// such as own ones; 0 while the feed's end is unknown.
  public var entriesToTake: UInt64 = 0
  /// The last failure; nil after a success, unless a change is delayed because of it.
  public var lastError: Failure?
  /// When the peer answered last; nil before the first answer.
  public var lastSuccess: Timestamp?

  /// One of the ``totals``.
  public subscript(dynamicMember count: KeyPath<SyncTotals, Int>) -> Int {
    totals[keyPath: count]
  }
}

/// The outcome of ``Replicator/syncOnce(deadline:)``.
@dynamicMemberLookup
public struct SyncReport: Sendable, Hashable {
  /// Counters of the call's work: `report.pushed` is one of them.
  public var totals = SyncTotals()
  /// The entries that are not synced now.
  public var pending = PendingSummary()
  /// Whether every entry that was pending at the call is synced or parked, and the feed is pulled
  /// to its end. False if an entry is written `after` one that waits for the user.
  public var isComplete = false
  /// Why the ``SyncBudget`` held entries back, if that is why the report is not complete.
  public var heldBack: HoldReason?
  /// The last failure, if the deadline ended the call.
  public var lastError: SyncStatus.Failure?

  /// One of the ``totals``.
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
  /// The entries that are sent once the peer can be reached and the entries that they depend on
  /// are.
  public var entries = 0
  /// The bytes of their keys and values.
  public var bytes = 0
  /// When the oldest of these was committed.
  public var oldest: Timestamp?
  /// How many of them are in the batch in flight.
  public var inFlight = 0
  /// How many entries the peer has refused.
  public var parked = 0
  /// How many entries the user must decide on.
  public var needsDecision = 0

  /// A summary without entries.
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
  /// The present status.
  public private(set) var status: SyncStatus

  @ObservationIgnored private var task: Task<Void, Never>?

  /// A model that follows a replicator.
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

  isolated deinit { task?.cancel() }
}
