public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The leases of a feed's replicas: one for all handlers of the feed, which have nothing of them.
///
/// They are written down without a sync of their own: whose lease a cut of the power takes has to
/// compare, and nothing else.
///
/// A caller can name a new replica with every call, so what a replica gets for nothing has an end:
/// beyond some leases of replicas that have done nothing yet, and beyond the bound of all, a lease
/// is not written down but remembered, and of those the one that was not used for longest gives
/// way. A lease that stands in the log gives way to none. A replica whose lease was forgotten
/// compares everything and gets another, so a bound never costs more than that.
package struct FeedLeases: Sendable {
  /// Most leases on record of replicas that have neither read nor pushed.
  static let mostIdle = 1_000
  /// Most leases that are only remembered.
  static let mostUnrecorded = 1_000
  /// How often expired leases are looked for when there is no room, in milliseconds.
  private static let millisecondsBetweenLooks: UInt64 = 60_000
  /// Most records that go in one step.
  static let recordsPerStep = 1_000

  private var recorded: [ReplicaID: LeaseRecord] = [:]
  private var idle = 0
  private var unrecorded: [ReplicaID: (lease: LeaseRecord, lastUse: UInt64)] = [:]
  private var uses: UInt64 = 0
  /// For how long a lease goes on; nil where there is no end. 0 gives none.
  private var seconds: UInt32?
  /// How many may be written down.
  private var most = 10_000
  /// When leases that have run out were last taken away, in milliseconds since 1970.
  private var lastLookForExpired: UInt64 = 0
  /// Deletes behind it are kept, and when that was last computed from all leases.
  private var kept: UInt64?
  private var lastComputed: UInt64?
  private var isRead = false

  package init() {}

  /// Takes the settings of a handler over; the first one has the leases read. One that cannot be
  /// read is left out: its replica compares everything and gets another.
  mutating func begin(_ feed: any Feed, seconds: UInt32?, most: Int) throws(TidemarkError) {
    let pushed = isRead ? [] : Set(feed.recordKeys(of: .feedMark))
    for key in isRead ? [] : feed.recordKeys(of: .feedLease) {
      guard let replica = ReplicaID(key), let record = try feed.record(.feedLease, key: key),
        let lease = try? LeaseRecord(
          decoding: record.value.rawSpan, hasPushed: pushed.contains(key))
      else { continue }
      set(replica, lease)
    }
    isRead = true
    self.seconds = seconds
    self.most = most
    try keepDeletes(feed)
  }

  /// How many stand in the log, and how many are only remembered.
  var counts: (recorded: Int, unrecorded: Int) { (recorded.count, unrecorded.count) }

  /// The lease of a replica; nil when it has none.
  subscript(_ replica: ReplicaID) -> LeaseRecord? {
    recorded[replica] ?? unrecorded[replica]?.lease
  }

  /// Whether a lease stands in the log.
  func isRecorded(_ replica: ReplicaID) -> Bool { recorded[replica] != nil }

  // MARK: What replicas do

  /// Ends the lease of a replica.
  mutating func end(_ replica: ReplicaID, _ feed: any Feed) throws(TidemarkError) {
    guard self[replica] != nil else { return }
    if isRecorded(replica) { try feed.remove(.feedLease, keys: [replica.bytes]) }
    remove(replica)
    try keepDeletes(feed)
  }

  /// Takes note that a replica has pushed: from the first time on deletes are kept for it.
  mutating func notePush(of replica: ReplicaID, _ feed: any Feed) throws(TidemarkError) {
    guard var lease = self[replica], !lease.hasPushed else { return }
    lease.hasPushed = true
    guard isRecorded(replica) else { return try record(lease, of: replica, feed) }
    set(replica, lease)
    try keepDeletes(feed, for: lease)
  }

  /// Takes note of how far a replica has read: it needs no deletes from before.
  ///
  /// That it has begun to read is written down, so that deletes are kept for it from then on, also
  /// when the feed is opened anew. What is let go because it has read further is computed when a
  /// compaction asks: it takes a look at all leases.
  mutating func notePull(of replica: ReplicaID, to cursor: Position, _ feed: any Feed) {
    guard var lease = self[replica] else { return }
    let isUnwritten = lease.cursor.offset == 0 || !isRecorded(replica)
    let isFurther = lease.cursor.offset < cursor.offset
    if isFurther { lease.cursor = cursor }
    note(lease, of: replica)
    // A replica that only reads is answered on a full disk, too.
    if isFurther, isUnwritten { try? record(lease, of: replica, feed) }
  }

  /// Writes a lease down, or, where there are too many, remembers it.
  mutating func record(
    _ lease: LeaseRecord, of replica: ReplicaID, _ feed: any Feed
  ) throws(TidemarkError) {
    func hasRoom() -> Bool {
      isRecorded(replica)
        || recorded.count < most && (lease.isActive || idle < min(Self.mostIdle, most))
    }
    if !hasRoom(), feed.now.sinceEpoch >= lastLookForExpired + Self.millisecondsBetweenLooks {
      try removeExpired(feed)
    }
    guard hasRoom() else { return note(lease, of: replica) }
    try feed.append(.feedLease, key: replica.bytes, value: lease.encoded)
    unrecorded[replica] = nil
    set(replica, lease)
    try keepDeletes(feed, for: lease)
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

  private mutating func set(_ replica: ReplicaID, _ lease: LeaseRecord?) {
    if let old = recorded[replica], !old.isActive { idle -= 1 }
    if let lease, !lease.isActive { idle += 1 }
    recorded[replica] = lease
  }

  private mutating func remove(_ replica: ReplicaID) {
    set(replica, nil)
    unrecorded[replica] = nil
  }

  // MARK: Upkeep

  /// Prepares a compaction: deletes are kept as the leases have it now, leases that would last
  /// longer than they do now are shortened, and those that have run out go.
  mutating func prepareCompaction(_ feed: any Feed) throws(TidemarkError) {
    try keepDeletes(feed)
    try shorten(feed)
    try removeExpired(feed)
  }

  /// Keeps the deletes behind what the slowest live replica has read.
  /// - Parameter lease: the only one that has changed. If it needs no more than is kept, nothing is
  ///   done where many leases would have to be looked at and that was done not long ago.
  mutating func keepDeletes(_ feed: any Feed, for lease: LeaseRecord? = nil) throws(TidemarkError) {
    guard let seconds, seconds > 0 else { return }
    let now = feed.now.sinceEpoch
    if let lease, !lease.isReading(at: now) || lease.cursor.offset >= kept ?? .max {
      // As many milliseconds as there are leases, where those are many.
      let pause = UInt64(recorded.count / 256 * 256)
      guard now >= (lastComputed ?? 0) + pause || now < lastComputed ?? 0 else { return }
    }
    lastComputed = now
    kept = earliestCursor(at: now)
    try feed.keepDeletes(behind: kept)
  }

  /// The least offset behind which some replica with a live lease has yet to read; nil when there
  /// is none.
  ///
  /// One that has read nothing counts as well once it has pushed: what it has sent itself may have
  /// been deleted by others since. One that has done nothing holds nothing, and for one that has
  /// not said for so long that it reads nothing is kept: if it reads after all, it has to compare.
  func earliestCursor(at time: UInt64) -> UInt64? {
    recorded.values.lazy.filter { $0.isReading(at: time) && $0.isActive }.map(\.cursor.offset)
      .min()
  }

  /// Takes leases that have run out from the log, not too many with each commit: everybody else
  /// waits. Their replicas have to compare everything in any case, and nothing was kept for them
  /// any more.
  private mutating func removeExpired(_ feed: any Feed) throws(TidemarkError) {
    let now = feed.now.sinceEpoch
    lastLookForExpired = now
    var expired = recorded.filter { $0.value.expires <= now }.map(\.key)[...]
    while !expired.isEmpty {
      let step = expired.prefix(Self.recordsPerStep)
      try feed.remove(.feedLease, keys: step.map(\.bytes))
      for replica in step { remove(replica) }
      expired = expired.dropFirst(step.count)
    }
  }

  /// Ends leases that would last longer than leases do now: of a time when they had no end, or
  /// when the clock was far ahead. Nobody may ever come back to renew them.
  private mutating func shorten(_ feed: any Feed) throws(TidemarkError) {
    guard let seconds, seconds > 0 else { return }
    let latest = feed.now.sinceEpoch + UInt64(seconds) * 1000
    let long = recorded.filter { max($0.value.expires, $0.value.readsUntil) > latest }
      .prefix(Self.recordsPerStep).map { replica, lease in
        var shorter = lease
        shorter.expires = min(lease.expires, latest)
        shorter.readsUntil = min(lease.readsUntil, latest)
        return (replica: replica, lease: shorter)
      }
    guard !long.isEmpty else { return }
    try feed.append(.feedLease, long.map { (key: $0.replica.bytes, value: $0.lease.encoded) })
    for (replica, lease) in long { set(replica, lease) }
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
