internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// The feed as one server sees it over its connection to a ``SimulatedDatabase``: at each of its
/// calls others may go on, and anything may happen to the database.
final class DatabaseFeed: Feed, FeedUpkeep {
  /// Most transactions that are made again because of others.
  private static let attempts = 8

  private struct Connection {
    var primary: SimulatedDatabase.Primary
    /// The incarnation that it has met first: only of a planted mistake.
    var firstMet: UInt64
    var isDead = false
  }

  private let database: SimulatedDatabase
  private let connection: Lock<Connection>
  /// Gets what was appended, with what the feed was right before.
  private let check: @Sendable (DecidedBatch, FeedView, _ before: FeedView) -> Void

  init(
    _ database: SimulatedDatabase,
    check: @escaping @Sendable (DecidedBatch, FeedView, _ before: FeedView) -> Void = { _, _, _ in }
  ) {
    self.database = database
    self.check = check
    let primary = database.primary
    connection = Lock(Connection(primary: primary, firstMet: primary.incarnation))
  }

  /// The server dies: no call of it comes to an end.
  func die() { connection.withLock { $0.isDead = true } }

  /// The primary, after others have gone on.
  private func reach() throws(TidemarkError) -> SimulatedDatabase.Primary {
    database.calls.pause()
    return try connection.withLock {
      (connection) throws(TidemarkError) -> SimulatedDatabase.Primary in
      if connection.isDead { throw TidemarkError(.closed, "the server has died") }
      connection.primary = database.primary(of: connection.primary)
      return connection.primary
    }
  }

  /// The primary for a transaction that writes, which comes to its commit.
  private func beginning() throws(TidemarkError) -> SimulatedDatabase.Primary {
    for _ in 0..<Self.attempts {
      let primary = try reach()
      // A serialization failure.
      if database.chance(0.1) { continue }
      if !PlantedSyncBug.isOn(.epochDrawnLate) { drawEpoch(of: primary) }
      return primary
    }
    throw TidemarkError(.busy, "the transaction comes to no end")
  }

  /// Begins a new epoch where the primary is another one than that of the epoch. Within the
  /// transaction that writes: any earlier look may have been at another primary.
  private func drawEpoch(of primary: SimulatedDatabase.Primary) {
    if PlantedSyncBug.isOn(.incarnationNotCompared) { return }
    let firstMet = connection.withLock { $0.firstMet }
    let incarnation =
      PlantedSyncBug.isOn(.incarnationRemembered) ? firstMet : primary.incarnation
    let isAnother = primary.drawnIn.withLock { drawnIn in
      defer { drawnIn = incarnation }
      return drawnIn != incarnation
    }
    if isAnother { try? primary.feed.begin(database.newNumber()) }
  }

  // MARK: Calls

  var id: ReplicaID { database.primary.feed.id }
  var contents: (any FeedContents)? { nil }
  var judgesInTurn: Bool { false }
  var unreadableUploads: [TidemarkError] { [] }

  func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView {
    let primary = try reach()
    var view = try primary.feed.look(question)
    view.incarnation = primary.incarnation
    if let told = primary.told.withLock({ $0 }) { view.range.truncatedThrough = told }
    return view
  }

  func append(
    _ batch: DecidedBatch, after view: FeedView
  ) throws(TidemarkError) -> FeedMark? {
    let primary = try beginning()
    let replica = batch.request.replica
    // A connection may be lost before the commit, and after it.
    let isLost = database.chance(0.05)
    if isLost, database.chance(0.5) { return try outcome(of: batch) }
    let keys = batch.entries.map { batch.request.changes[$0.change].key }
    let before = try primary.feed.look(FeedQuestion(of: replica, keys: keys))
    let mark = try primary.feed.append(batch, after: view)
    if let mark {
      check(batch, view, before)
      database.noteCommit(primary)
      if PlantedSyncBug.isOn(.epochDrawnLate) { drawEpoch(of: primary) }
      if PlantedSyncBug.isOn(.offsetsFromSequence) {
        primary.hidden.withLock { $0 = before.range.head + 1...mark.position.offset }
        for _ in 0..<4 { database.calls.pause() }
        primary.hidden.withLock { $0 = nil }
      }
    }
    return isLost ? try outcome(of: batch) : mark
  }

  /// Finds out on another connection whether a commit was made.
  private func outcome(of batch: DecidedBatch) throws(TidemarkError) -> FeedMark? {
    let mark = try reach().feed.look(FeedQuestion(of: batch.request.replica)).mark
    guard mark.mark.number == batch.request.number, mark.mark.batchID == batch.request.batchID
    else { throw TidemarkError(.unknownOutcome, "the connection was lost at a commit") }
    return mark
  }

  func settle(through position: FeedPosition) throws(TidemarkError) {
    try reach().feed.settle(through: position)
  }

  func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage {
    let primary = try reach()
    var page = try primary.feed.read(query)
    if let hidden = primary.hidden.withLock({ $0 }) {
      page.rows.removeAll { hidden.contains($0.head.offset) }
    }
    guard let replica = query.replica else { return page }
    var left = query.valueBytes
    let small = page.rows.prefix {
      left -= $0.head.valueLength
      return left >= 0
    }
    page.values = try primary.feed.values(at: small.map(\.head.offset))
    page.end = try look(FeedQuestion(of: replica))
    return page
  }

  func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead] {
    try reach().feed.heads(at: offsets)
  }

  func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]] {
    try reach().feed.values(at: offsets)
  }

  func scan(
    into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
  ) throws(TidemarkError) -> UInt64 { try reach().feed.scan(into: &table, wants: wants) }

  func setLease(
    _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
  ) throws(TidemarkError) {
    // Nothing is remembered but what a row has.
    guard writes else { return }
    let primary = try beginning()
    try primary.feed.setLease(lease, of: replica, after: view, most: most, writes: true)
    database.noteCommit(primary)
  }

  func setPolicy(
    _ policy: ConflictPolicy?, prefix: [UInt8]
  ) throws(TidemarkError) -> FeedPosition {
    let primary = try beginning()
    defer { database.noteCommit(primary) }
    return try primary.feed.setPolicy(policy, prefix: prefix)
  }

  // MARK: Upkeep, which is nobody's while a simulation runs

  func observe(_ body: @escaping @Sendable () -> Void) -> Int { 0 }
  func stopObserving(_ token: Int) {}
  func space(from minimum: Int) -> LogSpace { LogSpace(log: 0, appended: 0, reclaimable: 0) }
  func compact(
    leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    try reach().feed.compact(leaseSeconds: leaseSeconds, unless: shouldStop)
  }
  func close() { die() }
}
