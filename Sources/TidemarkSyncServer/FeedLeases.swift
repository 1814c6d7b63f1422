public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The leases of a store's replicas.
///
/// They are written down without a sync of their own: whose lease a cut of the power takes has to
/// compare, and nothing else.
///
/// A caller can name a new replica with every call, so what a replica gets for nothing has an end:
/// beyond some leases of replicas that have done nothing yet, and beyond the bound of all, a lease
/// is not written down but remembered, and of those the one that was not used for longest gives
/// way. A lease that stands in the log gives way to none. A replica whose lease was forgotten
/// compares everything and gets another, so a bound never costs more than that.
struct FeedLeases: Sendable {
  /// Most leases on record of replicas that have neither read nor pushed.
  static let mostIdle = 1_000
  /// Most leases that are only remembered.
  static let mostUnrecorded = 1_000
  /// How often expired leases are looked for when there is no room, in milliseconds.
  private static let millisecondsBetweenLooks: UInt64 = 60_000
  /// Most records that go in one step.
  private static let recordsPerStep = 1_000

  struct Row {
    var lease: FeedLease
    /// Whether it stands in the log.
    var isRecorded: Bool
    var hasPushed: Bool
    var lastUse: UInt64 = 0

    /// Whether the replica may hold what others delete. A page that it has not asked beyond may
    /// have reached it; but what it does not hear of then, it finds out by its next pull.
    var isActive: Bool { hasPushed || lease.cursor.offset > 0 }
  }

  private(set) var rows: [ReplicaID: Row] = [:]
  private var uses: UInt64 = 0
  /// How many may be written down, as the last caller has said.
  private var most = 0
  /// When leases that have run out were last taken away, in milliseconds since 1970.
  private var lastLookForExpired: UInt64 = 0
  /// Deletes behind it are kept, and when that was last computed from all leases.
  private var kept: UInt64?
  private var lastComputed: UInt64?

  /// Reads those of a log. One that cannot be read is left out: its replica compares everything and
  /// gets another.
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

  /// The lease of a replica, which has a use for it.
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

  /// Takes note that a replica has pushed: from the first time on deletes are kept for it.
  mutating func notePush(of replica: ReplicaID, _ feed: StoreFeed) throws(TidemarkError) {
    guard let row = rows[replica], !row.hasPushed else { return }
    rows[replica]?.hasPushed = true
    if !row.isRecorded { try record(row.lease, of: replica, feed) }
    keepDeletes(feed, for: rows[replica])
  }

  /// Writes a lease down, or, where there are too many, remembers it in the place of another.
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

  /// Writes leases down, or takes them away, not too many with each commit: everybody else waits.
  private mutating func write(
    _ changes: [(replica: ReplicaID, lease: FeedLease?)], _ feed: StoreFeed
  ) throws(TidemarkError) {
    for start in stride(from: 0, to: changes.count, by: Self.recordsPerStep) {
      let step = changes[start...].prefix(Self.recordsPerStep)
      try feed.append(.feedLease, step.map { ($0.replica.bytes, $0.lease?.encoded ?? []) })
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

  /// Prepares a compaction: deletes are kept as the leases have it now, leases that would last
  /// longer than they do now are shortened, and those that have run out go.
  mutating func prepareCompaction(
    leaseSeconds: UInt32?, _ feed: StoreFeed
  ) throws(TidemarkError) {
    defer { keepDeletes(feed) }
    if let leaseSeconds, leaseSeconds > 0 {
      try shorten(to: feed.now + UInt64(leaseSeconds) * 1000, feed)
    }
    try removeExpired(feed)
  }

  /// Keeps the deletes behind what the slowest live replica has read.
  /// - Parameter row: the only one that has changed. If it needs no more than is kept, nothing is
  ///   done where many leases would have to be looked at and that was done not long ago.
  mutating func keepDeletes(_ feed: StoreFeed, for row: Row? = nil) {
    let now = feed.now
    if let row, !row.lease.isReading(at: now) || row.lease.cursor.offset >= kept ?? .max {
      // As many milliseconds as there are leases, where those are many.
      let pause = UInt64(rows.count / 256 * 256)
      guard now >= (lastComputed ?? 0) + pause || now < lastComputed ?? 0 else { return }
    }
    lastComputed = now
    kept = earliestCursor(at: now)
    if !PlantedSyncBug.isOn(.deletesNotKept) { feed.engine.reader.keepDeletes(above: kept) }
  }

  /// The least offset behind which some replica with a live lease has yet to read; nil when there
  /// is none.
  ///
  /// One that has read nothing counts as well once it has pushed: what it has sent itself may have
  /// been deleted by others since. One that has done nothing holds nothing, and for one that has
  /// not said for so long that it reads nothing is kept: if it reads after all, it has to compare.
  func earliestCursor(at time: UInt64) -> UInt64? {
    rows.values.lazy.filter { $0.isRecorded && $0.isActive && $0.lease.isReading(at: time) }
      .map(\.lease.cursor.offset).min()
  }

  /// Takes leases that have run out from the log. Their replicas have to compare everything in any
  /// case, and nothing was kept for them any more.
  private mutating func removeExpired(_ feed: StoreFeed) throws(TidemarkError) {
    let now = feed.now
    lastLookForExpired = now
    let expired = rows.filter { $1.isRecorded && $1.lease.expires <= now }
    try write(expired.map { ($0.key, nil) }, feed)
  }

  /// Ends leases that would last longer than leases do now: of a time when they had no end, or
  /// when the clock was far ahead. Nobody may ever come back to renew them.
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
