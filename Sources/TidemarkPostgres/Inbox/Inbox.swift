#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  /// Takes what a back end of the user's own has written into the inbox by SQL, as batches of a
  /// replica of its own in each database.
  ///
  /// A row is deleted by the transaction that appends its change, so it counts once, whichever
  /// server takes it. No cursor is kept: a row whose transaction commits late is only a later one.
  final class Inbox: Sendable {
    private let pool: Pool
    private let news: News
    private let history: Duration
    private let state = Monitor(State())
    private let thread = Lock<WorkerThread?>(nil)

    private struct State {
      var isClosed = false
      /// Whether a row with `urgent => true` was committed since the inbox was read last.
      var isWoken = false
    }

    /// Nanoseconds between two looks, at random, so that servers look at different times.
    private static let polling: ClosedRange<UInt64> = 150_000_000...250_000_000
    private static let longestPause: UInt64 = 1_000_000_000
    /// The pause after a batch that may have left rows, as a multiple of the batch's time: appends
    /// of devices need the same row lock and the same processors.
    private static let pausesForBatch: UInt64 = 4
    private static let sweeping: Duration = .seconds(60)
    /// Most rows of a batch, and most bytes, but for its last row.
    private static let rowsAtOnce: Int64 = 1_000
    private static let bytesAtOnce: Int64 = 4 << 20

    init(_ pool: Pool, _ news: News, history: Duration) throws(TidemarkError) {
      (self.pool, self.news, self.history) = (pool, news, history)
      let started = try WorkerThread(name: "tm-inbox") { [self] in run() }
      thread.withLock { $0 = started }
      news.onInbox { [state] in
        state.withLock { $0.isWoken = true }
        state.broadcast()
      }
    }

    func close() {
      state.withLock { $0.isClosed = true }
      state.broadcast()
      thread.withLock { $0 }?.join()
    }

    private func run() {
      var (pause, lastSweep) = (Self.polling.upperBound, ContinuousClock.now)
      // An urgent row ends the wait between two polls, but no pause after a batch or a failure.
      var isIdle = true
      while true {
        _ = state.wait(timeoutNanoseconds: pause) { $0.isClosed || isIdle && $0.isWoken }
        let isClosed = state.withLock { state in
          state.isWoken = false
          return state.isClosed
        }
        if isClosed { return }
        do throws(TidemarkError) {
          let start = ContinuousClock.now
          isIdle = try !takeAll()
          let time = (ContinuousClock.now - start).wholeMilliseconds * 1_000_000
          pause =
            isIdle
            ? UInt64.random(in: Self.polling)
            : min(time * Self.pausesForBatch, Self.longestPause)
          if .now - lastSweep > Self.sweeping {
            lastSweep = .now
            _ = try pool.write([Self.sweep()])
          }
        } catch { (pause, isIdle) = (Self.longestPause, false) }
      }
    }

    /// Takes a batch of each database that has rows.
    /// - Returns: whether there may be more.
    private func takeAll() throws(TidemarkError) -> Bool {
      let found = try pool.read([Self.waiting()])[0]
      var (hasMore, failure): (Bool, TidemarkError?) = (false, nil)
      for index in (0..<found.count).shuffled() {
        // One database's trouble stops no other.
        do throws(TidemarkError) { hasMore = try take(found[index]) || hasMore } catch {
          failure = error
        }
      }
      if !hasMore, let failure { throw failure }
      return hasMore
    }

    private struct Entry {
      let id: Int64
      let change: PushedChange
      /// Whether it applies upon whatever its key holds.
      let isForced: Bool

      init(_ row: inout Row) throws(TidemarkError) {
        id = try row.bigint()
        let (key, value) = (try row.bytes(), row.optionalBytes())
        let labels = try LabelColumn.decode(try row.bytes()).map { EntryLabel($0) }
        let (epoch, offset) = (try row.bits(), try row.bigint())
        isForced = offset < 0
        change = PushedChange(
          sequence: UInt64(clamping: id), kind: value == nil ? .delete : .put, key: key,
          content: SyncContent(value: value ?? [], labels: labels),
          base: offset > 0
            ? .position(FeedPosition(epoch: epoch, offset: UInt64(clamping: offset))) : .absent,
          commitTime: try row.ordered() << 16)
      }
    }

    /// Takes the next rows of a database.
    /// - Returns: false where there are none, or another server has taken them meanwhile.
    private func take(_ waiting: Row) throws(TidemarkError) -> Bool {
      var row = waiting
      let (name, feedID) = (try row.text(), row.optionalBytes())
      let rows = try pool.read([
        Self.rows(.text(name), .bigint(Self.rowsAtOnce), .bigint(Self.bytesAtOnce))
      ])[0]
      var entries: [Entry] = []
      var keys: Set<[UInt8]> = []
      for index in 0..<rows.count {
        var row = rows[index]
        let entry = try Entry(&row)
        // A conditional row for a key that this batch has written waits for the next batch: the
        // position that it names can only be compared with that of an appended entry.
        guard keys.insert(entry.change.key).inserted || entry.isForced else { break }
        entries.append(entry)
      }
      if entries.isEmpty { return false }
      guard let id = feedID.flatMap({ ReplicaID($0) }) else {
        let refusal = PushVerdict.rejected(
          SyncRejection(code: "", message: "there is no such database"))
        let verdicts = entries.map { _ in refusal }
        return try pool.write([settle(name, 0, entries, verdicts, 0)], guarded: true) != nil
      }
      let (replica, database) = (try row.replica(), try row.bigint())
      let feed = PostgresFeed(
        database, named: name, id: id, pool: pool, history: history, news: news)
      let view = try look(at: feed, replica, entries)
      let batch = PushRequest(
        replica: replica, number: view.mark.mark.number + 1,
        batchID: BatchID(UInt64.random(in: 1...UInt64.max)), changes: entries.map(\.change))
      var detector = ConflictDetector(
        batch, feed: feed, view: view, access: .everything, validators: [])
      let judged = try detector.run()
      let settling = settle(name, database, entries, judged.verdicts, judged.entries.count + 1)
      return try feed.append(judged, after: view, adding: [settling]) != nil
    }

    /// A view by which forced changes apply and others do only upon what they name: no policy
    /// decides, and a key that a forced change finds counts as this replica's.
    private func look(
      at feed: PostgresFeed, _ replica: ReplicaID, _ entries: [Entry]
    ) throws(TidemarkError) -> FeedView {
      var view = try feed.look(FeedQuestion(of: replica, keys: entries.map(\.change.key)))
      let revision = view.policies.revision
      view.policies = PolicyTable()
      try view.policies.set([], for: [], at: revision)
      for (index, entry) in entries.enumerated() {
        let writer = entry.isForced ? replica : feed.id
        view.states[index]?.head.operation = OperationID(replica: writer, sequence: 0)
      }
      return view
    }

    /// Deletes the rows and stores their verdicts.
    private func settle(
      _ name: String, _ database: Int64, _ entries: [Entry], _ verdicts: [PushVerdict], _ count: Int
    ) -> Call {
      Self.settle(
        .text(name), .bigints(entries.map(\.id)), .byteas(verdicts.map { Array($0.outcome.utf8) }),
        .bigints(verdicts.map { Int64(bitPattern: $0.position?.epoch ?? 0) }),
        .bigints(verdicts.map { Int64(clamping: $0.position?.offset ?? 0) }), .bigint(database),
        .bigint(Int64(count)), .bigint(Int64(entries.count)))
    }
  }

  extension PushVerdict {
    /// As `tidemark.results` has it.
    fileprivate var outcome: String {
      switch self {
      case .applied: "applied"
      case .duplicate: "unchanged"
      case .conflict, .lost, .aborted: "conflict"
      case .rejected(let rejection): "rejected: \(rejection.message)"
      }
    }
  }

  extension PostgresFeed {
    func append(
      _ batch: DecidedBatch, after view: FeedView
    ) throws(TidemarkError) -> FeedMark? { try append(batch, after: view, adding: []) }
  }

  extension Inbox {
    /// The databases with rows. Each is one lookup in the index, however many rows it has.
    private static let waiting = Statement(
      """
      WITH RECURSIVE w(database) AS (
        (SELECT database FROM tidemark.tm_inbox ORDER BY database LIMIT 1)
        UNION ALL
        SELECT (SELECT i.database FROM tidemark.tm_inbox i WHERE i.database>w.database
          ORDER BY i.database LIMIT 1) FROM w WHERE w.database IS NOT NULL)
      SELECT w.database, d.feed, \(InboxSchema.replica), d.db FROM w
      LEFT JOIN tidemark.tm_name n ON n.name=w.database
      LEFT JOIN tidemark.tm_db d ON d.db=n.db
      WHERE w.database IS NOT NULL LIMIT 1000
      """)

    private static let rows = Statement(
      """
      SELECT id, key, value, labels, epoch, off, at FROM (
        SELECT *, sum(octet_length(key) + coalesce(octet_length(value), 0)) OVER (ORDER BY id)
          - coalesce(octet_length(value), 0) AS bytes
        FROM (SELECT * FROM tidemark.tm_inbox WHERE database=$1::text ORDER BY id
          LIMIT $2::bigint) r) t
      WHERE bytes <= $3::bigint ORDER BY id
      """)

    /// Fails where another server has deleted one of the rows. The position of an entry of the same
    /// batch, which has the epoch -1, is counted from the end of the batch.
    static let settle = Statement(
      """
      WITH gone AS (
        DELETE FROM tidemark.tm_inbox WHERE ctid = ANY(ARRAY(
          SELECT i.ctid FROM unnest($2::bigint[]) q(id)
          CROSS JOIN LATERAL (SELECT i.ctid FROM tidemark.tm_inbox i
            WHERE i.database=$1::text AND i.id=q.id OFFSET 0) i))
        RETURNING id, request),
      results AS (
        INSERT INTO tidemark.tm_result (database, request, outcome, position, at)
        SELECT $1::text, g.request, convert_from(u.outcome, 'UTF8'),
          CASE WHEN u.epoch=-1 THEN d.epoch || '-' || (d.head - $7::bigint + u.off)
            WHEN u.off>0 THEN u.epoch || '-' || u.off END, clock_timestamp()
        FROM gone g JOIN unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[])
          u(id, outcome, epoch, off) ON u.id=g.id
        LEFT JOIN tidemark.tm_db d ON d.db=$6::bigint WHERE g.request IS NOT NULL)
      SELECT 1 / (CASE WHEN count(*)=$8::bigint THEN 1 ELSE 0 END) FROM gone
      """)

    private static let sweep = Statement(
      """
      DELETE FROM tidemark.tm_result WHERE ctid = ANY(ARRAY(SELECT ctid FROM tidemark.tm_result
        WHERE at < clock_timestamp() - interval '1 day' ORDER BY at LIMIT 50000))
      """)
  }
#endif
