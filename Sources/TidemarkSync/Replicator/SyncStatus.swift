public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The activity of a replicator, and how far it is.
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
    /// Something failed: it tries again then, or earlier when there is news.
    case waiting(until: Timestamp)
    /// There is something to send or to take that its ``SyncBudget`` does not let through. It goes
    /// on by itself: when the day is over, when the network is another, with what is urgent.
    case heldBack(HoldReason)
    /// It goes on when somebody has done something about the reason.
    case paused(PauseReason)
  }

  /// Why a replicator does not go on by itself.
  public enum PauseReason: Sendable, Hashable {
    /// The peer does not take the authorization, also not a new one; ``Replicator/poke()`` tries
    /// again.
    case unauthorized
    /// The authorization does not reach so far; ``Replicator/poke()`` tries again.
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
  /// How many entries were sent and decided since the replicator was made.
  public var pushed = 0
  /// How many entries of others were taken since.
  public var pulled = 0
  /// How many entries of the peer's feed are still to be read, own ones and what is passed over
  /// among them; 0 as long as the peer has not said how far it goes.
  public var entriesToTake: UInt64 = 0
  /// On how many keys both sides had written since, as pushes and pulls have shown.
  public var conflicts = 0
  /// How many of these keys got a value that was made of both sides.
  public var merged = 0
  /// How many fields both sides had changed, each in its way; see ``FieldClashRule``.
  public var clashes = 0
  /// How many values could not be merged by their fields, and went by the fallback.
  public var fellBack = 0
  /// The last failure; nil when something has worked since.
  public var lastError: Failure?
  /// When the peer answered last; nil for not yet.
  public var lastSuccess: Timestamp?

  init() {}

  /// Takes over what was counted.
  mutating func count(_ totals: SyncSession.Totals) {
    pushed = totals.pushed
    pulled = totals.pulled
    conflicts = totals.conflicts
    merged = totals.merged
    clashes = totals.clashes
    fellBack = totals.fellBack
  }
}

/// The outcome of one round of replication.
public struct SyncReport: Sendable, Hashable {
  /// Entries that were sent and on which the peer has decided.
  public var pushed = 0
  /// Taken entries that count.
  public var applied = 0
  /// Taken entries that the peer had already.
  public var duplicates = 0
  /// Sent entries that the peer refused.
  public var parked = 0
  /// Keys on which both sides had written, as pushes and pulls have shown.
  public var conflicts = 0
  /// Conflicts whose keys got a value that was made of both sides.
  public var merged = 0
  /// Fields that both sides had changed, each in its way; see ``FieldClashRule``.
  public var clashes = 0
  /// Values that ``ConflictResolver/mergeFields(clash:fallback:)`` could not merge by their fields,
  /// or was told not to: they went by its fallback as a whole.
  public var fellBack = 0
  /// Entries of others that were taken.
  public var pulled = 0
  /// Batches that were sent.
  public var batches = 0
  /// Bytes of attachments' contents that were sent; what the peer had already does not count.
  public var attachmentBytesSent = 0
  /// Bytes of attachments' contents that were taken without anybody asking; see
  /// ``AttachmentPolicy/Fetching/eager(upTo:)``.
  public var attachmentBytesTaken = 0
  /// The entries that are not synced now.
  public var pending = PendingSummary()
  /// Whether everything that was pending at the call is settled or parked, and the feed is taken.
  /// It is not as long as an entry comes after one that waits for the user.
  public var isComplete = false
  /// The reason for which the ``SyncBudget`` has held something back, if that is why it is not.
  public var heldBack: HoldReason?
  /// The failure, if that is why it is not.
  public var lastError: SyncStatus.Failure?

  init(_ totals: SyncSession.Totals) {
    pushed = totals.pushed
    applied = totals.applied
    duplicates = totals.duplicates
    conflicts = totals.conflicts
    merged = totals.merged
    clashes = totals.clashes
    fellBack = totals.fellBack
    parked = totals.parked
    pulled = totals.pulled
    batches = totals.batches
    attachmentBytesSent = totals.attachmentBytesSent
    attachmentBytesTaken = totals.attachmentBytesTaken
  }
}
