internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The positions of a back end that has none: made up from its name, so that they are the same
/// after a restart.
struct RequestPlaces: Sendable {
  /// How far a peer that knows nothing begins behind a cursor, at most. It is by chance, so that no
  /// position is given out twice, be it in a copy of the store.
  static let stride: UInt64 = 1 << 32

  /// The id of what is taken for a feed.
  let feed: ReplicaID
  /// The epoch of entries, cursors and verdicts.
  let epoch: UInt64

  init(name: String) {
    let bytes = Array(name.utf8)
    let words = (1...3).map { XXH64.hash(bytes.rawSpan, seed: $0) }
    var writer = ByteWriter()
    writer.u64(words[0])
    writer.u64(words[1])
    feed = ReplicaID(padding: writer.bytes)
    epoch = words[2] | 1
  }

  /// Whether an offset is of what somebody else has written, as all even ones are. A change that is
  /// sent upon it is another request than the same one upon something else, which may have been
  /// answered before: it gets a key of its own.
  static func isOfOther(_ offset: UInt64) -> Bool { offset % 2 == 0 }

  func position(_ offset: UInt64) -> Position {
    offset == 0 ? .beginning : Position(epoch: epoch, offset: offset)
  }

  func range(head: UInt64) -> FeedRange {
    FeedRange(epochs: [FeedEpoch(epoch: epoch, firstOffset: 1)], head: head)
  }

  /// A change as it is sent.
  func request(
    _ change: PushedChange, of replica: ReplicaID, store: [UInt8], alias: Alias?
  ) -> RequestChange {
    var key = IdempotencyKey(change, of: store)
    if case .position(let base) = change.base, base.offset > 0,
      Self.isOfOther(base.offset), !PlantedSyncBug.isOn(.conflictKeyKept)
    {
      key = key.salted(by: base.offset)
    }
    return RequestChange(
      idempotencyKey: key.text,
      operation: OperationID(replica: replica, sequence: change.sequence), kind: change.kind,
      key: Key(change.key), content: change.content,
      commitTime: HybridTime(change.commitTime).orderedTimestamp, time: change.time, alias: alias)
  }
}
