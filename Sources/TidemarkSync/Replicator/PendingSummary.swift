public import Tidemark

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
