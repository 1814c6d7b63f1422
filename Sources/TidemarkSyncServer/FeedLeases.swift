public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The leases of a feed's replicas. While a lease lives, compactions keep the tombstones that its
/// replica has not pulled; once it has expired, the replica compares by digest before it pushes.
///
/// They are stored without a sync of their own: a replica whose lease a power failure takes has to
/// compare, and loses nothing else.
///
/// A caller can present a new replica id with every call, so leases are bounded: beyond `mostIdle`
/// of replicas that have neither read nor pushed, and beyond the bound of all, a lease is only kept
/// in memory, where the least recently used is evicted. A lease in the log is never evicted. A
/// replica without its lease compares everything and gets another one: that is all a bound costs.
struct FeedLeases: Sendable {
  /// Most leases in the log of replicas that have neither read nor pushed.
  static let mostIdle = 1_000
  /// Most leases that are only in memory.
  static let mostUnrecorded = 1_000
  /// How often expired leases are looked for when there is no room, in milliseconds.
  private static let millisecondsBetweenLooks: UInt64 = 60_000
  /// Most records of one commit.
  private static let recordsPerStep = 1_000

  struct Row {
    var lease: FeedLease
    /// Whether it is stored in the log.
    var isRecorded: Bool
    var hasPushed: Bool
    var lastUse: UInt64 = 0

    /// Whether the replica may hold keys that others delete. One whose cursor is still 0 may have
    /// received a first page, but its next pull finds out if tombstones after it are gone.
    var isActive: Bool { hasPushed || lease.cursor.offset > 0 }
  }

  private(set) var rows: [ReplicaID: Row] = [:]
  private var uses: UInt64 = 0
  /// How many may be stored in the log: the limit of the last call of `set`.
  private var most = 0
  /// When expired leases were last removed, in milliseconds since 1970.
  private var lastLookForExpired: UInt64 = 0
  /// Tombstones after this offset are kept; and when it was last computed from all leases.
  private var kept: UInt64?
  private var lastComputed: UInt64?

  /// Reads the leases in a log. One that cannot be decoded is left out: its replica compares
  /// everything and gets another.
  init(_ records: RecordTable) throws(TidemarkError) {
    for key in records.keys(of: .feedLease) {
      guard let replica = ReplicaID(key),
        let value = try records.value(of: .feedLease, key: key),
        let lease = try? FeedLease(decoding: value.rawSpan)
      else { continue }
      rows[replica] = Row(
        lease: lease, isRecorded: true,
        hasPushed: records.sequence(of: .feedMark, key: key) != nil)
    }
  }

  /// The lease of a replica, which counts as used by that.
  mutating func lease(of replica: ReplicaID) -> FeedLease? {
    uses += 1
    rows[replica]?.lastUse = uses
    return rows[replica]?.lease
  }

  // MARK: What replicas do

  mutating func set(
    _ lease: FeedLease?, of replica: ReplicaID, most: Int, writes: Bool, _ feed: StoreFeed
  ) throws(TidemarkError) {
    self.most = most
    let known = rows[replica]
    if let lease {
      var row = known ?? Row(lease: lease, isRecorded: false, hasPushed: feed.hasMark(of: replica))
      row.lease = lease
      rows[replica] = row
      if writes || !row.isRecorded { try record(lease, of: replica, feed) }
    } else if known?.isRecorded == true {
      try write([(replica, nil)], feed)
    } else {
      rows[replica] = nil
    }
    keepDeletes(feed, for: rows[replica])
  }

  /// Notes that a replica has pushed: from its first push on, tombstones are kept for it.
  mutating func notePush(of replica: ReplicaID, _ feed: StoreFeed) throws(TidemarkError) {
    guard let row = rows[replica], !row.hasPushed else { return }
    rows[replica]?.hasPushed = true
    if !row.isRecorded { try record(row.lease, of: replica, feed) }
    keepDeletes(feed, for: rows[replica])
  }

  /// Stores a lease in the log, or, beyond the bounds, keeps it in memory and evicts another.
  private mutating func record(
    _ lease: FeedLease, of replica: ReplicaID, _ feed: StoreFeed
  ) throws(TidemarkError) {
    if !hasRoom(for: replica), feed.now >= lastLookForExpired + Self.millisecondsBetweenLooks {
      try removeExpired(feed)
    }
    if hasRoom(for: replica) { return try write([(replica, lease)], feed) }
    uses += 1
    rows[replica]?.lastUse = uses
    let unrecorded = rows.filter { !$0.value.isRecorded }
    guard unrecorded.count > Self.mostUnrecorded else { return }
    let oldest = unrecorded.min { $0.value.lastUse < $1.value.lastUse }
    if let oldest { rows[oldest.key] = nil }
  }

  private func hasRoom(for replica: ReplicaID) -> Bool {
    guard let row = rows[replica], !row.isRecorded else { return true }
    let recorded = rows.values.filter(\.isRecorded)
    return recorded.count < most
      && (row.isActive || recorded.count { !$0.isActive } < min(Self.mostIdle, most))
  }

  /// Stores or removes leases, in small commits: other writers wait while one is made.
  private mutating func write(
    _ changes: [(replica: ReplicaID, lease: FeedLease?)], _ feed: StoreFeed
  ) throws(TidemarkError) {
    for start in stride(from: 0, to: changes.count, by: Self.recordsPerStep) {
      let step = changes[start...].prefix(Self.recordsPerStep)
      let records = try step.map { (row) throws(TidemarkError) in
        (row.replica.bytes, try row.lease?.encoded() ?? [])
      }
      try feed.append(.feedLease, records)
      for (replica, lease) in step {
        if let lease {
          rows[replica]?.lease = lease
          rows[replica]?.isRecorded = true
        } else {
          rows[replica] = nil
        }
      }
    }
  }

  // MARK: Upkeep

  /// Prepares a compaction: shortens leases that end later than a lease given now would, removes
  /// expired ones, and computes anew which tombstones are kept.
  mutating func prepareCompaction(
    leaseSeconds: UInt32?, _ feed: StoreFeed
  ) throws(TidemarkError) {
    defer { keepDeletes(feed) }
    if let leaseSeconds, leaseSeconds > 0 {
      try shorten(to: feed.now + UInt64(leaseSeconds) * 1000, feed)
    }
    try removeExpired(feed)
  }

  /// Keeps the tombstones after the earliest cursor of the replicas with a live lease.
  /// - Parameter row: the only lease that has changed. If it needs no more than is kept already,
  ///   nothing is done where there are many leases and they were computed not long ago.
  mutating func keepDeletes(_ feed: StoreFeed, for row: Row? = nil) {
    let now = feed.now
    if let row, !row.lease.isReading(at: now) || row.lease.cursor.offset >= kept ?? .max {
      // About a millisecond for each lease from 256 on: looking at all costs time for each.
      let pause = UInt64(rows.count / 256 * 256)
      guard now >= (lastComputed ?? 0) + pause || now < lastComputed ?? 0 else { return }
    }
    lastComputed = now
    kept = earliestCursor(at: now)
    if !PlantedSyncBug.isOn(.deletesNotKept) { feed.engine.reader.keepDeletes(above: kept) }
  }

  /// The earliest cursor of the replicas with a live lease; nil when there is none.
  ///
  /// A replica that has read nothing counts, too, once it has pushed: others may have deleted what
  /// it pushed. One that has neither read nor pushed holds nothing. One that has long said hello as
  /// a replica that reads nothing does not count: if it pulls after all, it has to compare.
  func earliestCursor(at time: UInt64) -> UInt64? {
    rows.values.lazy.filter { $0.isRecorded && $0.isActive && $0.lease.isReading(at: time) }
      .map(\.lease.cursor.offset).min()
  }

  /// Removes expired leases from the log. Their replicas have to compare everything in any case,
  /// and no tombstones were kept for them any more.
  private mutating func removeExpired(_ feed: StoreFeed) throws(TidemarkError) {
    let now = feed.now
    lastLookForExpired = now
    let expired = rows.filter { $1.isRecorded && $1.lease.expires <= now }
    try write(expired.map { ($0.key, nil) }, feed)
  }

  /// Shortens leases that end later than a lease given now would: they were given when leases did
  /// not expire or the clock was far ahead, and their replicas may never come back to renew them.
  private mutating func shorten(
    to latest: UInt64, _ feed: StoreFeed
  ) throws(TidemarkError) {
    let long = rows.filter { $1.isRecorded && max($1.lease.expires, $1.lease.readsUntil) > latest }
    try write(
      long.map { replica, row in
        var lease = row.lease
        lease.expires = min(lease.expires, latest)
        lease.readsUntil = min(lease.readsUntil, latest)
        return (replica, lease)
      }, feed)
  }
}

/// A replica that pushes to a store or pulls from it, as the store's own records show it; see
/// ``TidemarkStore/Store/Blocking/replicas()``.
public struct ReplicaInfo: Sendable, Hashable {
  /// The id of the replica.
  public var id: ReplicaID
  /// The position through which the replica had pulled when its lease was last stored.
  public var cursor: FeedPosition
  /// How many entries of the log the replica has not pulled yet, at most.
  public var entriesToTake: UInt64
  /// Until when the store keeps tombstones for the replica. Nil if the replica has no lease, or one
  /// that does not expire.
  public var leaseEnds: Timestamp?
}

extension Store.Blocking {
  /// Returns the replicas that have pushed to this store or pulled from it, in the order of their
  /// ids.
  public func replicas() throws(TidemarkError) -> [ReplicaInfo] {
    let table = try RecordTable(store.engine.reader)
    let head = store.lastSequence
    let leases = try FeedLeases(table).rows
    let ids = Set(leases.keys).union(table.keys(of: .feedMark).compactMap { ReplicaID($0) })
    return ids.sorted().map { id in
      let lease = leases[id]?.lease
      let cursor = lease?.cursor ?? .beginning
      let ends = lease.flatMap { $0.expires == .max ? nil : Int64(clamping: $0.expires) }
      return ReplicaInfo(
        id: id, cursor: cursor, entriesToTake: head - min(head, cursor.offset),
        leaseEnds: ends.map { Timestamp(milliseconds: $0) })
    }
  }
}
