public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A replica that pushes to a store or pulls from it, as the store's records tell.
public struct ReplicaInfo: Sendable, Hashable {
  /// The replica.
  public var id: ReplicaID
  /// How far it had read when its lease was written down.
  public var cursor: Position
  /// How many entries of the log come after that, at most.
  public var entriesToTake: UInt64
  /// Until when deletes are kept for it; nil when it has no lease, or one without end.
  public var leaseEnds: Timestamp?
}

extension Store.Blocking {
  /// The replicas that have pushed to this store or pulled from it, in the order of their ids.
  public func replicas() throws(TidemarkError) -> [ReplicaInfo] {
    let table = try RecordTable(store.engine)
    let head = store.lastSequence
    let keys = Set(table.keys(of: .feedLease)).union(table.keys(of: .feedMark))
    var result: [ReplicaInfo] = []
    for key in keys {
      guard let id = ReplicaID(key) else { continue }
      let lease = try table.value(of: .feedLease, key: key).flatMap {
        try? LeaseRecord(decoding: $0.rawSpan, hasPushed: false)
      }
      let cursor = lease?.cursor ?? .beginning
      let ends = lease.flatMap { $0.expires == .max ? nil : Int64(clamping: $0.expires) }
      result.append(
        ReplicaInfo(
          id: id, cursor: cursor, entriesToTake: head - min(head, cursor.offset),
          leaseEnds: ends.map { Timestamp(milliseconds: $0) }))
    }
    return result.sorted { $0.id < $1.id }
  }
}
