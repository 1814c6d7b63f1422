public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The leases of a feed's replicas: one for all handlers of the feed, which have nothing of them.
///
/// They are written down without a sync of their own: whose lease a cut of the power takes has to
/// compare, and nothing else.
package struct FeedLeases: Sendable {
  /// How often expired leases are looked for when there is no room, in milliseconds.
  private static let millisecondsBetweenLooks: UInt64 = 60_000
  /// Most records that go in one step.
  static let recordsPerStep = 1_000

  var table = LeaseTable()
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

  /// Takes the settings of a handler over; the first one has the leases read.
  mutating func begin(_ feed: any Feed, seconds: UInt32?, most: Int) throws(TidemarkError) {
    if !isRead { table = try LeaseTable(feed) }
    isRead = true
    self.seconds = seconds
    self.most = most
    try keepDeletes(feed)
  }

  /// The lease of a replica; nil when it has none.
  subscript(_ replica: ReplicaID) -> LeaseRecord? { table[replica] }

  /// Ends the lease of a replica.
  mutating func end(_ replica: ReplicaID, _ feed: any Feed) throws(TidemarkError) {
    guard table[replica] != nil else { return }
    if table.isRecorded(replica) { try feed.remove(.feedLease, keys: [replica.bytes]) }
    table.remove(replica)
    try keepDeletes(feed)
  }

  /// Takes note that a replica has pushed: from the first time on deletes are kept for it.
  mutating func notePush(of replica: ReplicaID, _ feed: any Feed) throws(TidemarkError) {
    guard var lease = table[replica], !lease.hasPushed else { return }
    lease.hasPushed = true
    if table.isRecorded(replica) {
      table.note(lease, of: replica)
      try keepDeletes(feed, for: lease)
    } else {
      try record(lease, of: replica, feed)
    }
  }

  /// Takes note of how far a replica has read: it needs no deletes from before.
  ///
  /// That it has begun to read is written down, so that deletes are kept for it from then on, also
  /// when the feed is opened anew. What is let go because it has read further is computed when a
  /// compaction asks: it takes a look at all leases.
  mutating func notePull(of replica: ReplicaID, to cursor: Position, _ feed: any Feed) {
    guard var lease = table[replica] else { return }
    let isUnwritten = lease.cursor.offset == 0 || !table.isRecorded(replica)
    let isFurther = lease.cursor.offset < cursor.offset
    if isFurther { lease.cursor = cursor }
    table.note(lease, of: replica)
    // A replica that only reads is answered on a full disk, too.
    if isFurther, isUnwritten { try? record(lease, of: replica, feed) }
  }

  /// Prepares a compaction: deletes are kept as the leases have it now, leases that would last
  /// longer than they do now are shortened, and those that have run out go.
  mutating func prepareCompaction(_ feed: any Feed) throws(TidemarkError) {
    try keepDeletes(feed)
    try shorten(feed)
    try removeExpired(feed)
  }

  /// Writes a lease down, or, where there are too many, remembers it.
  mutating func record(
    _ lease: LeaseRecord, of replica: ReplicaID, _ feed: any Feed
  ) throws(TidemarkError) {
    func hasRoom() -> Bool { table.mayRecord(lease, of: replica, most: most) }
    if !hasRoom(), feed.now.sinceEpoch >= lastLookForExpired + Self.millisecondsBetweenLooks {
      try removeExpired(feed)
    }
    guard hasRoom() else { return table.note(lease, of: replica) }
    try feed.append(.feedLease, key: replica.bytes, value: lease.encoded)
    table.record(lease, of: replica)
    try keepDeletes(feed, for: lease)
  }

  /// Keeps the deletes behind what the slowest live replica has read.
  /// - Parameter lease: the only one that has changed. If it needs no more than is kept, nothing is
  ///   done where many leases would have to be looked at and that was done not long ago.
  mutating func keepDeletes(_ feed: any Feed, for lease: LeaseRecord? = nil) throws(TidemarkError) {
    guard let seconds, seconds > 0 else { return }
    let now = feed.now.sinceEpoch
    if let lease, !lease.isReading(at: now) || lease.cursor.offset >= kept ?? .max {
      // As many milliseconds as there are leases, where those are many.
      let pause = UInt64(table.counts.recorded / 256 * 256)
      guard now >= (lastComputed ?? 0) + pause || now < lastComputed ?? 0 else { return }
    }
    lastComputed = now
    kept = table.earliestCursor(at: feed.now)
    try feed.keepDeletes(behind: kept)
  }

  /// Takes leases that have run out from the log. Their replicas have to compare everything in any
  /// case, and nothing was kept for them any more.
  private mutating func removeExpired(_ feed: any Feed) throws(TidemarkError) {
    lastLookForExpired = feed.now.sinceEpoch
    let expired = table.expired(at: lastLookForExpired)
    try feed.remove(.feedLease, of: expired, keys: { [$0.bytes] }) { table.remove($0) }
  }

  /// Ends leases that would last longer than leases do now: of a time when they had no end, or
  /// when the clock was far ahead. Nobody may ever come back to renew them.
  private mutating func shorten(_ feed: any Feed) throws(TidemarkError) {
    guard let seconds, seconds > 0 else { return }
    let latest = feed.now.sinceEpoch + UInt64(seconds) * 1000
    let long = table.ending(after: latest).prefix(Self.recordsPerStep).map { replica, lease in
      var shorter = lease
      shorter.expires = min(lease.expires, latest)
      shorter.readsUntil = min(lease.readsUntil, latest)
      return (replica: replica, lease: shorter)
    }
    guard !long.isEmpty else { return }
    try feed.append(.feedLease, long.map { (key: $0.replica.bytes, value: $0.lease.encoded) })
    for (replica, lease) in long { table.note(lease, of: replica) }
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
