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

  private var recorded: [ReplicaID: LeaseRecord] = [:]
  private var idle = 0
  private var unrecorded: [ReplicaID: (lease: LeaseRecord, lastUse: UInt64)] = [:]
  private var uses: UInt64 = 0

  init() {}

  /// Reads them from their records. One that cannot be read is left out: its replica compares
  /// everything and gets another.
  init(_ feed: any Feed) throws(TidemarkError) {
    let pushed = Set(feed.recordKeys(of: .feedMark))
    for key in feed.recordKeys(of: .feedLease) {
      guard let replica = ReplicaID(key), let record = try feed.record(.feedLease, key: key),
        let lease = try? LeaseRecord(
          decoding: record.value.rawSpan, hasPushed: pushed.contains(key))
      else { continue }
      set(replica, lease)
    }
  }

  /// How many stand in the log, and how many are only remembered.
  var counts: (recorded: Int, unrecorded: Int) { (recorded.count, unrecorded.count) }

  subscript(_ replica: ReplicaID) -> LeaseRecord? {
    recorded[replica] ?? unrecorded[replica]?.lease
  }

  /// Whether a lease stands in the log.
  func isRecorded(_ replica: ReplicaID) -> Bool { recorded[replica] != nil }

  /// Whether there is room in the log for a lease.
  /// - Parameter most: how many leases there may be.
  func mayRecord(_ lease: LeaseRecord, of replica: ReplicaID, most: Int) -> Bool {
    if isRecorded(replica) { return true }
    return recorded.count < most && (lease.isActive || idle < min(Self.mostIdle, most))
  }

  /// Takes a lease up that stands in the log.
  mutating func record(_ lease: LeaseRecord, of replica: ReplicaID) {
    unrecorded[replica] = nil
    set(replica, lease)
  }

  /// Takes note of a lease where it is. One that does not stand in the log is remembered, in the
  /// place of another one if there are too many.
  mutating func note(_ lease: LeaseRecord, of replica: ReplicaID) {
    guard !isRecorded(replica) else { return set(replica, lease) }
    uses += 1
    unrecorded[replica] = (lease, uses)
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
    return recorded.filter { $0.value.expires <= time }.map(\.key)
  }

  /// The leases that stand in the log and end later than that.
  func ending(after time: UInt64) -> [ReplicaID: LeaseRecord] {
    recorded.filter { max($0.value.expires, $0.value.readsUntil) > time }
  }

  /// The least offset behind which some replica with a live lease has yet to read; nil when there
  /// is none.
  ///
  /// One that has read nothing counts as well once it has pushed: what it has sent itself may have
  /// been deleted by others since. One that has done nothing holds nothing, and for one that has
  /// not said for so long that it reads nothing is kept: if it reads after all, it has to compare.
  func earliestCursor(at now: Timestamp) -> UInt64? {
    let time = now.sinceEpoch
    return recorded.values.lazy.filter { $0.isReading(at: time) && $0.isActive }
      .map(\.cursor.offset).min()
  }

  private mutating func set(_ replica: ReplicaID, _ lease: LeaseRecord?) {
    if let old = recorded[replica], !old.isActive { idle -= 1 }
    if let lease, !lease.isActive { idle += 1 }
    recorded[replica] = lease
  }
}
