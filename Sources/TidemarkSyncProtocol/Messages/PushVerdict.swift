/// The peer's decision about one pushed change.
@nonexhaustive
public enum PushVerdict: Sendable, Hashable {
  /// The feed has the change at this position. The change was the key's current version then.
  case applied(FeedPosition)
  /// The key already had the same content, from the entry at this position.
  case duplicate(FeedPosition)
  /// The key has other content, from the entry at this position. The writer's resolver decides.
  case conflict(FeedPosition)
  /// The change was in conflict with the entry at this position, and that entry won by the
  /// collection's policy.
  case lost(FeedPosition)
  /// The peer refuses the change for good, for this reason.
  case rejected(SyncRejection)
  /// The peer did not apply the change, since another change of its atomic group did not apply.
  case aborted

  /// Whether the feed has the change's content as the key's state.
  package var isTaken: Bool {
    switch self {
    case .applied, .duplicate: true
    case .conflict, .lost, .rejected, .aborted: false
    }
  }
}

/// The last numbered batch that a peer has of a replica, with its verdicts. The replica learns from
/// it whether a batch whose answer was lost was appended.
public struct ReplicaMark: Sendable, Hashable {
  /// The number of the replica's last batch at the peer; 0 if there is none.
  public var number: UInt64
  /// The random id of the replica's last batch at the peer.
  public var batchID: BatchID
  /// The peer's verdicts on the changes of that batch, in the order of the changes.
  public var verdicts: [PushVerdict]
  /// The aliases that a back end has given to keys of changes, by the changes' indices; the sender
  /// stores them with the verdicts. For peers in the same process; not sent.
  public var aliases: [Int: KeyAlias] = [:]

  /// Creates a mark; without arguments it means that the peer has no batch of the replica.
  /// - Parameters:
  ///   - number: the number of the replica's last batch.
  ///   - batchID: the random id of that batch.
  ///   - verdicts: the verdicts on its changes, in order.
  public init(number: UInt64 = 0, batchID: BatchID = .none, verdicts: [PushVerdict] = []) {
    self.number = number
    self.batchID = batchID
    self.verdicts = verdicts
  }

  /// Whether a batch is the next one after the mark's. (`PlantedSyncBug`: a fault for tests only.)
  package func precedes(_ batch: PushRequest) -> Bool {
    if PlantedSyncBug.isOn(.lateBatchForgotten) { return number &+ 1 == batch.number }
    return number &+ 1 == batch.number && batch.previousBatchID.map { $0 == batchID } ?? true
  }
}

/// The random id of a batch: distinguishes a batch sent again from another one with its number.
public struct BatchID: Sendable, Hashable {
  /// The 64 random bits of the id; 0 for no batch.
  public var bits: UInt64

  /// Creates an id from 64 random bits; 0 means no batch.
  public init(_ bits: UInt64) { self.bits = bits }

  /// The id that stands for no batch, such as the one before a replica's first batch.
  public static let none = BatchID(0)
}
