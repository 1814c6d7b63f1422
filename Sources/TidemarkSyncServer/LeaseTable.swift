internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The leases of all replicas of a feed, no more than so many.
///
/// A caller can name a new replica with every call, so what a replica gets for nothing has an end:
/// beyond some leases of replicas that have done nothing yet, and beyond the bound of all, a lease
/// is not written down but remembered, and of those the one that was not used for longest gives
/// way. A lease that stands in the log gives way to none. A replica whose lease was forgotten
/// compares everything and gets another, so a bound never costs more than that.
struct LeaseTable: Sendable {
  /// Most leases on record of replicas that have neither read nor pushed.
  static let mostIdle = 1_000
  /// Most leases that are only remembered.
  static let mostUnrecorded = 1_000

  private struct Row {
    var lease: LeaseRecord
    var hasPushed: Bool

    /// Whether the replica may hold what others delete. A page that it has not asked beyond may
    /// have reached it; but what it does not hear of then, it finds out by its next pull.
    var isActive: Bool { hasPushed || lease.cursor.offset > 0 }
  }

  private var rows: [ReplicaID: Row] = [:]
  private var idle = 0
  private var unrecorded: [ReplicaID: (row: Row, lastUse: UInt64)] = [:]
  private var uses: UInt64 = 0

  init() {}

  /// Reads them from their records. One that cannot be read is left out: its replica compares
  /// everything and gets another.
  init(_ feed: any Feed) throws(TidemarkError) {
    let pushed = Set(feed.recordKeys(of: .feedMark))
    for key in feed.recordKeys(of: .feedLease) {
      guard let replica = ReplicaID(key), let record = try feed.record(.feedLease, key: key),
        let lease = try? LeaseRecord(decoding: record.value.rawSpan)
      else { continue }
      set(replica, Row(lease: lease, hasPushed: pushed.contains(key)))
    }
  }

  /// How many stand in the log, and how many are only remembered.
  var counts: (recorded: Int, unrecorded: Int) { (rows.count, unrecorded.count) }

  subscript(_ replica: ReplicaID) -> LeaseRecord? {
    rows[replica]?.lease ?? unrecorded[replica]?.row.lease
  }

  /// Whether a lease stands in the log.
  func isRecorded(_ replica: ReplicaID) -> Bool { rows[replica] != nil }

  /// Whether the replica is known to have pushed.
  func hasPushed(_ replica: ReplicaID) -> Bool {
    rows[replica]?.hasPushed ?? unrecorded[replica]?.row.hasPushed ?? false
  }

  /// Whether there is room in the log for a lease.
  /// - Parameter most: how many leases there may be.
  func mayRecord(_ replica: ReplicaID, _ lease: LeaseRecord, hasPushed: Bool, most: Int) -> Bool {
    if rows[replica] != nil { return true }
    guard rows.count < most else { return false }
    return Row(lease: lease, hasPushed: hasPushed).isActive || idle < min(Self.mostIdle, most)
  }

  /// Takes a lease up that stands in the log.
  mutating func record(_ replica: ReplicaID, _ lease: LeaseRecord, hasPushed: Bool) {
    unrecorded[replica] = nil
    set(replica, Row(lease: lease, hasPushed: hasPushed || self.hasPushed(replica)))
  }

  /// Remembers a lease that does not, in the place of another one if there are too many.
  mutating func remember(_ replica: ReplicaID, _ lease: LeaseRecord, hasPushed: Bool) {
    uses += 1
    unrecorded[replica] = (Row(lease: lease, hasPushed: hasPushed), uses)
    guard unrecorded.count > Self.mostUnrecorded,
      let oldest = unrecorded.min(by: { $0.value.lastUse < $1.value.lastUse })
    else { return }
    unrecorded[oldest.key] = nil
  }

  mutating func remove(_ replica: ReplicaID) {
    set(replica, nil)
    unrecorded[replica] = nil
  }

  /// The replicas whose leases stand in the log and have run out.
  func expired(at now: Timestamp) -> [ReplicaID] {
    let time = now.sinceEpoch
    return rows.filter { $0.value.lease.expires <= time }.map(\.key)
  }

  /// The leases that stand in the log and end later than that.
  func ending(after time: UInt64) -> [(ReplicaID, LeaseRecord)] {
    rows.filter { max($0.value.lease.expires, $0.value.lease.readsUntil) > time }
      .map { ($0.key, $0.value.lease) }
  }

  /// The least offset behind which some replica with a live lease has yet to read; nil when there
  /// is none.
  ///
  /// One that has read nothing counts as well once it has pushed: what it has sent itself may have
  /// been deleted by others since. One that has done nothing holds nothing, and for one that has
  /// not said for so long that it reads nothing is kept: if it reads after all, it has to compare.
  func earliestCursor(at now: Timestamp) -> UInt64? {
    let time = now.sinceEpoch
    var earliest: UInt64?
    for row in rows.values where row.lease.isReading(at: time) && row.isActive {
      earliest = min(earliest ?? .max, row.lease.cursor.offset)
    }
    return earliest
  }

  /// Takes note of how far a replica has read.
  /// - Returns: whether it has read further than was known.
  mutating func advance(_ replica: ReplicaID, to cursor: Position) -> Bool {
    if var row = rows[replica] {
      guard row.lease.cursor.offset < cursor.offset else { return false }
      row.lease.cursor = cursor
      set(replica, row)
      return true
    }
    guard let row = unrecorded[replica]?.row else { return false }
    uses += 1
    unrecorded[replica]?.lastUse = uses
    guard row.lease.cursor.offset < cursor.offset else { return false }
    unrecorded[replica]?.row.lease.cursor = cursor
    return true
  }

  private mutating func set(_ replica: ReplicaID, _ row: Row?) {
    if let old = rows[replica], !old.isActive { idle -= 1 }
    if let row, !row.isActive { idle += 1 }
    rows[replica] = row
  }
}
