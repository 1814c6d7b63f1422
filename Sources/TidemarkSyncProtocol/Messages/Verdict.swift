/// The decision of a feed's owner about one change.
public enum Verdict: Sendable, Hashable {
  /// It is in the feed, there, and is the key's state.
  case applied(Position)
  /// The key holds the same already, by what stands there.
  case duplicate(Position)
  /// Something else is the key's state, by what stands there; the writer's resolver decides.
  case conflict(Position)
  /// The collection's policy decided for what stands there.
  case lost(Position)
  /// It will never be taken, for the reason given.
  case rejected(Rejection)
  /// Another change of its atomic group did not apply.
  case aborted

  /// Whether the feed has what was sent.
  package var isTaken: Bool {
    switch self {
    case .applied, .duplicate: true
    case .conflict, .lost, .rejected, .aborted: false
    }
  }
}

/// How far a peer has come with a replica's numbered batches.
public struct ReplicaMark: Sendable, Hashable {
  /// The number of the last batch; 0 when there was none.
  public var number: UInt64
  /// The id that this batch had.
  public var batchID: BatchID
  /// The verdicts on its changes, in their order.
  public var verdicts: [Verdict]
  /// The remote end's names for the keys of changes that it has taken, by their indices; the sender
  /// notes it down with the verdicts. For peers in the same process: it does not travel.
  public var aliases: [Int: Alias] = [:]

  /// A mark.
  public init(number: UInt64 = 0, batchID: BatchID = .none, verdicts: [Verdict] = []) {
    self.number = number
    self.batchID = batchID
    self.verdicts = verdicts
  }

  /// Whether a batch is the next one after what the mark tells of.
  package func precedes(_ batch: PushRequest) -> Bool {
    if PlantedSyncBug.isOn(.lateBatchForgotten) { return number &+ 1 == batch.number }
    return number &+ 1 == batch.number && batch.previousBatchID.map { $0 == batchID } ?? true
  }
}

/// The random id of a batch: tells a batch sent again from another with its number.
public struct BatchID: Sendable, Hashable {
  /// 64 random bits; 0 for no batch.
  public var bits: UInt64

  /// An id of these bits.
  public init(_ bits: UInt64) { self.bits = bits }

  /// The id of no batch.
  public static let none = BatchID(0)
}
