/// The server's decision about one pushed change.
public enum Verdict: Sendable, Hashable {
  /// It is in the feed, at this position, and was the key's state then.
  case applied(Position)
  /// The key held the same already, by the entry at this position.
  case duplicate(Position)
  /// The key held something else, by the entry at this position; the writer's resolver decides.
  case conflict(Position)
  /// A conflict with the entry at this position, which won by the collection's policy.
  case lost(Position)
  /// It is refused for good, for the reason given.
  case rejected(Rejection)
  /// It did not apply as another change of its atomic group did not.
  case aborted

  /// Whether the feed has the change's content as the key's state.
  package var isTaken: Bool {
    switch self {
    case .applied, .duplicate: true
    case .conflict, .lost, .rejected, .aborted: false
    }
  }
}

/// The last numbered batch that a peer has of a replica, with its verdicts. It shows whether a
/// batch whose answer was lost was appended.
public struct ReplicaMark: Sendable, Hashable {
  /// The number of the last batch; 0 when there was none.
  public var number: UInt64
  /// The id of that batch.
  public var batchID: BatchID
  /// The verdicts on its changes, in their order.
  public var verdicts: [Verdict]
  /// The aliases that a back end has given to keys of changes, by the changes' indices; the sender
  /// stores them with the verdicts. For peers in the same process; not sent.
  public var aliases: [Int: Alias] = [:]

  /// A mark.
  public init(number: UInt64 = 0, batchID: BatchID = .none, verdicts: [Verdict] = []) {
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
  /// 64 random bits; 0 for no batch.
  public var bits: UInt64

  /// An id of these bits.
  public init(_ bits: UInt64) { self.bits = bits }

  /// The id of no batch.
  public static let none = BatchID(0)
}
