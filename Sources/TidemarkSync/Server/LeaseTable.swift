internal import TidemarkEngine

/// The leases of all replicas of a feed.
struct LeaseTable: Sendable {
  private var rows: [ReplicaID: LeaseRecord] = [:]

  init() {}

  /// Reads them from their records. One that cannot be read is left out: its replica compares
  /// everything and gets another.
  init(_ feed: any Feed) throws(TidemarkError) {
    for key in feed.recordKeys(of: .feedLease) {
      guard let replica = ReplicaID(key), let record = try feed.record(.feedLease, key: key),
        let lease = try? LeaseRecord(decoding: record.value.rawSpan)
      else { continue }
      rows[replica] = lease
    }
  }

  subscript(_ replica: ReplicaID) -> LeaseRecord? {
    get { rows[replica] }
    set { rows[replica] = newValue }
  }

  /// The least offset behind which some replica with a live lease has yet to read; nil when there
  /// is none.
  ///
  /// One that has read nothing counts as well: what it has sent itself may have been deleted by
  /// others since.
  func earliestCursor(at now: Timestamp) -> UInt64? {
    let time = now.sinceEpoch
    return rows.values.filter { $0.expires > time }.map(\.cursor.offset).min()
  }

  /// Takes note of how far a replica has read.
  /// - Returns: whether it has read further than was known.
  mutating func advance(_ replica: ReplicaID, to cursor: Position) -> Bool {
    guard let lease = rows[replica], lease.cursor.offset < cursor.offset else { return false }
    rows[replica]?.cursor = cursor
    return true
  }
}

extension Timestamp {
  /// Milliseconds since 1970; 0 for what lies before.
  var sinceEpoch: UInt64 { UInt64(clamping: max(0, milliseconds)) }
}
