internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Makes the feed id, epoch and positions for a back end, which has none: from its name, so that
/// they are the same after a restart.
struct RequestPositions: Sendable {
  /// After a restart the first offset is at most this far after the cursor. The distance is random,
  /// so that no position is assigned twice, not even in a copy of the store.
  static let stride: UInt64 = 1 << 32

  /// The feed id, which is also the replica id of entries of other writers.
  let feed: ReplicaID
  /// The only epoch.
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

  /// Whether an offset is that of another writer's version: the even ones are. A change with such a
  /// base needs another idempotency key than the same change before the conflict, whose answer the
  /// back end would repeat.
  static func isOfOther(_ offset: UInt64) -> Bool { offset % 2 == 0 }

  func position(_ offset: UInt64) -> FeedPosition {
    offset == 0 ? .beginning : FeedPosition(epoch: epoch, offset: offset)
  }

  func range(head: UInt64) -> FeedRange {
    FeedRange(epochs: [FeedEpoch(epoch: epoch, firstOffset: 1)], head: head)
  }

  /// The change as `send` gets it.
  func request(
    _ change: PushedChange, of replica: ReplicaID, store: [UInt8], alias: KeyAlias?
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
