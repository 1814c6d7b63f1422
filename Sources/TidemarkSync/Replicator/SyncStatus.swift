public import Observation
internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The activity of a replicator, and how far it is.
@dynamicMemberLookup
public struct SyncStatus: Sendable, Hashable {
  /// The kind of activity.
  public enum Phase: Sendable, Hashable {
    /// It has not been started, or it was stopped.
    case stopped
    /// It says hello.
    case connecting
    /// It sends.
    case pushing
    /// It takes.
    case pulling
    /// Everything is done: it waits for writes, here or there.
    case idle
    /// Something failed: it tries again then, or when it is poked, but not as long as the peer has
    /// asked to be left alone.
    case waiting(until: Timestamp)
    /// There is something to send or to take that its ``SyncBudget`` does not let through. It goes
    /// on by itself: when the day is over, when the network is another, with what is urgent.
    case heldBack(HoldReason)
    /// It goes on when somebody has done something about the reason; and it looks again by itself,
    /// after ``Replicator/Configuration/longestRetry`` to twice that, whether the reason is gone.
    case paused(PauseReason)
  }

  /// Why a replicator waits for somebody.
  public enum PauseReason: Sendable, Hashable {
    /// The peer says itself that it does not take the authorization, also not a new one;
    /// ``Replicator/poke()`` tries again at once.
    case unauthorized
    /// The peer says itself that the authorization does not reach so far; ``Replicator/poke()``
    /// tries again at once.
    case forbidden
    /// The store is suspended; resuming it goes on.
    case storeSuspended
    /// So many keys are gone at the peer that somebody has to say what becomes of them here; see
    /// ``Replicator/decideDeletions(_:)``.
    case deletionsToDecide(keys: Int)
    /// So many entries are parked or wait for a decision that nothing more is sent; see
    /// ``TooManyParked``.
    case tooManyParked(entries: Int)
  }

  /// Something that failed.
  public struct Failure: Sendable, Hashable {
    /// The reason, for people.
    public var message: String
    /// The kind of failure of the peer; nil when the own store failed.
    public var kind: PeerError.Kind?
    /// When.
    public var time: Timestamp
  }

  /// The replicator's activity.
  public var phase = Phase.stopped
  /// How much is not synced. ``Replicator/status`` counts at the call, and so does the first of
  /// ``Replicator/statuses()``; those that follow are as of when the phase last changed, or of a
  /// second ago at most. While a call to the peer is under way the count is as of its beginning.
  /// ``Replicator/pending`` is exact at any time.
  public var pending = PendingSummary()
  /// Counts of what was done since the replicator was made: `status.pushed` is one of them.
  public var totals = SyncTotals()
  /// How many entries of the peer's feed are still to be read, own ones and what is passed over
  /// among them; 0 as long as the peer has not said how far it goes.
  public var entriesToTake: UInt64 = 0
  /// The last failure; nil when something has worked since, unless a change rests for it.
  public var lastError: Failure?
  /// When the peer answered last; nil for not yet.
  public var lastSuccess: Timestamp?

  /// One of the ``totals``.
  public subscript(dynamicMember count: KeyPath<SyncTotals, Int>) -> Int {
    totals[keyPath: count]
  }
}

/// The outcome of one round of replication.
@dynamicMemberLookup
public struct SyncReport: Sendable, Hashable {
  /// Counts of what the round has done: `report.pushed` is one of them.
  public var totals = SyncTotals()
  /// The entries that are not synced now.
  public var pending = PendingSummary()
  /// Whether everything that was pending at the call is settled or parked, and the feed is taken.
  /// It is not as long as an entry comes after one that waits for the user.
  public var isComplete = false
  /// The reason for which the ``SyncBudget`` has held something back, if that is why it is not.
  public var heldBack: HoldReason?
  /// The failure, if that is why it is not.
  public var lastError: SyncStatus.Failure?

  /// One of the ``totals``.
  public subscript(dynamicMember count: KeyPath<SyncTotals, Int>) -> Int {
    totals[keyPath: count]
  }
}

/// How much is not synced.
///
/// The entries that count: own puts and deletes of class `owned` that are the newest of their key,
/// within the scope, and without a verdict. What came from a peer does not count, nor do touches
/// and entries of class `cache`, nor an entry that a newer one of its key has replaced before it
/// was sent, nor a key that was put and deleted before the peer heard of it. What is in flight
/// counts until its verdict has come. Entries that wait for the user (parked, or to be decided) are
/// counted apart. Those that come after one of them count as if they went on by themselves, which
/// they do when that is settled; ``PendingEntry/state`` tells them from others.
public struct PendingSummary: Sendable, Hashable {
  /// How many entries will go on once the peer is there, and what they come after.
  public var entries = 0
  /// The bytes of their keys and values.
  public var bytes = 0
  /// When the oldest of them was committed.
  public var oldest: Timestamp?
  /// How many are in the batch that is under way.
  public var inFlight = 0
  /// How many the peer has refused.
  public var parked = 0
  /// How many the user is to decide.
  public var needsDecision = 0

  /// Nothing.
  public init() {}

  /// Whether nothing waits for the peer, nor for the user.
  public var isEmpty: Bool { entries == 0 && parked == 0 && needsDecision == 0 }
}

/// The status of a replicator, for a view: it follows it as long as it lives.
///
/// ```swift
/// let model = SyncStatusModel(replicator)
/// Text(model.status.phase == .idle ? "up to date" : "\(model.status.pending.entries) pending")
/// ```
@MainActor @Observable
public final class SyncStatusModel {
  /// The status.
  public private(set) var status: SyncStatus

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Follows a replicator.
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
