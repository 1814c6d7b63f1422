#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  /// A feed in tables of PostgreSQL, which any number of processes may serve at a time.
  ///
  /// Offsets are assigned under the lock of the database's row, so that they become visible in
  /// their order. What a transaction is judged by is compared in it, so no process keeps anything
  /// that could be wrong. How that holds after a failover is said in *Running over PostgreSQL*.
  final class PostgresFeed: Feed {
    let id: ReplicaID
    /// The number of the database in the tables.
    let database: Int64
    let pool: Pool
    private let news: News
    let observers: Observers
    /// For how long superseded entries are kept.
    let history: Duration
    private let closed = Lock(false)
    private let cache = Lock(Cache())

    /// What changes seldom, by what changes with it.
    private struct Cache {
      var epochs: [FeedEpoch] = []
      var policies = PolicyTable()
      /// The incarnation in which `policies` was read.
      var incarnation: UInt64?
    }

    init(
      _ database: Int64, named name: String, id: ReplicaID, pool: Pool, history: Duration,
      news: News
    ) {
      observers = news.observers(of: database, named: name)
      self.history = history
      self.id = id
      self.database = database
      self.pool = pool
      self.news = news
    }

    /// Most times that something is read again as it has changed meanwhile.
    private static let attempts = 8

    var contents: (any FeedContents)? { PostgresContents(pool: pool, row: row) }
    /// Appending compares all that a batch was judged by, and that is enough.
    var judgesInTurn: Bool { false }
    var row: Parameter { .bigint(database) }

    // MARK: Looking

    func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView {
      let calls = try calls(question)
      for _ in 0..<Self.attempts {
        if let view = try view(try pool.read(calls), question) { return view }
      }
      throw TidemarkError(.busy, "the database is being restored")
    }

    /// The statements that answer a question; the last one's row has the range.
    func calls(_ question: FeedQuestion) throws(TidemarkError) -> [Call] {
      if isClosed { throw TidemarkError(.closed, "the feed is closed") }
      var calls: [Call] = []
      // No key is empty, or longer than an entry's may be.
      let asked = question.keys.indices.filter {
        (1...Limits.keyBytes).contains(question.keys[$0].count)
      }
      let columns = asked.map { KeyColumns(question.keys[$0]) }
      if !asked.isEmpty {
        calls.append(
          Statements.states(
            row, .bigints(asked.map { Int64($0) }), .bigints(columns.map(\.hash)),
            .byteas(columns.map(\.ident))))
      }
      calls.append(Statements.database(row, .bytea(question.replica?.bytes)))
      return calls
    }

    /// Reads what ``calls(_:)`` has asked for.
    /// - Returns: nil where the epochs that belong to it are there no more.
    func view(_ rows: [Rows], _ question: FeedQuestion) throws(TidemarkError) -> FeedView? {
      var rows = rows[...]
      guard var view = try view(rows.removeLast()) else { return nil }
      view.states = Array(repeating: nil, count: question.keys.count)
      for var row in rows.flatMap(\.all) {
        let place = try row.int()
        let fingerprint = ContentFingerprint(bits: try row.bits128())
        let head = try FeedHead(&row)
        guard view.states.indices.contains(place), head.key == question.keys[place] else {
          throw Row.otherType
        }
        view.states[place] = FeedState(
          head: head, position: view.range.position(ofOffset: head.offset), revision: head.offset)
        view.states[place]?.fingerprint = fingerprint
      }
      return view
    }

    /// - Returns: nil where the epochs that belong to it are there no more.
    private func view(_ rows: Rows) throws(TidemarkError) -> FeedView? {
      guard var row = rows.first else { throw deleted() }
      let (head, epoch) = (try row.ordered(), try row.bits())
      let life = try row.bytes()
      let incarnation = XXH64.hash(life.rawSpan, seed: 0)
      let policies = try row.ordered()
      let (truncated, historyFrom) = (try row.ordered(), try row.ordered())
      let now = try row.ordered()
      let state = try row.bigint()
      if state == DatabaseState.deleted.rawValue { throw deleted() }
      var room: Int?
      if row.isNull { row.skip() } else { room = try row.int() }
      guard let (epochs, table) = try cached(epoch, policies, incarnation) else { return nil }
      var view = FeedView(
        range: FeedRange(epochs: epochs, head: head, truncatedThrough: truncated), durable: head,
        historyFrom: historyFrom, now: now, policies: table)
      (view.incarnation, view.room) = (incarnation, room)
      view.isReadOnly = state == DatabaseState.readOnly.rawValue
      news.noteFirst(FeedPosition(epoch: epoch, offset: head), of: database)
      if row.isNull {
        row.skip()
        row.skip()
      } else {
        let offset = try row.ordered()
        view.mark = try FeedMark(try row.bytes(), at: view.range.position(ofOffset: offset))
      }
      if !row.isNull { view.lease = try FeedLease(&row) }
      return view
    }

    /// A database of its name that is made from now on is another one.
    func deleted() -> TidemarkError {
      closed.withLock { $0 = true }
      return TidemarkError(.closed, "the database was deleted")
    }

    /// The epochs up to one, and the policies of a revision.
    private func cached(
      _ epoch: UInt64, _ revision: UInt64, _ incarnation: UInt64
    ) throws(TidemarkError) -> ([FeedEpoch], PolicyTable)? {
      let known = cache.withLock { $0 }
      if known.epochs.last?.epoch == epoch, known.incarnation == incarnation,
        known.policies.revision == revision
      {
        return (known.epochs, known.policies)
      }
      // One place is for the epoch that stands for those before.
      let rows = try pool.read([
        Statements.epochs(row, .bigint(Int64(Limits.epochs - 1))), Statements.policies(row),
      ])
      var (epochs, policies): ([FeedEpoch], _) = ([], PolicyTable())
      for var row in rows[0].all.reversed() {
        let first = try row.ordered()
        epochs.append(FeedEpoch(epoch: try row.bits(), firstOffset: first))
      }
      guard epochs.last?.epoch == epoch else { return nil }
      // Without any row the revision counts, too.
      try policies.set([], for: [], at: revision)
      for var row in rows[1].all {
        let prefix = try row.bytes()
        try policies.set(try row.bytes(), for: prefix, at: revision)
      }
      // Oldest epochs are dropped from the list; their offsets count as epoch 0 then.
      if let first = epochs.first, first.firstOffset > 1 {
        epochs.insert(FeedEpoch(epoch: 0, firstOffset: 1), at: 0)
      }
      let read = (epochs, policies)
      cache.withLock { cache in
        (cache.epochs, cache.policies) = read
        cache.incarnation = incarnation
      }
      return read
    }

    // MARK: Appending

    /// - Parameter others: belong into the same transaction, and may have a guard of their own.
    func append(
      _ batch: DecidedBatch, after view: FeedView, adding others: [Call]
    ) throws(TidemarkError) -> FeedMark? {
      let record = try batch.markRecord()
      let calls = try BatchRows(batch, after: view).calls(row, after: view, record) + others
      let results: [Rows]?
      do throws(TidemarkError) { results = try pool.write(calls, guarded: true) } catch {
        guard error.code == .unknownOutcome else { throw error }
        return try outcome(of: batch, error)
      }
      guard var head = results?[0].first else {
        try beginEpochIfDue()
        return nil
      }
      let mark = try FeedMark(record, at: FeedPosition(epoch: view.epoch, offset: head.ordered()))
      if batch.hasNews { news.noteAppend(to: database, at: mark.position) }
      return mark
    }

    /// Finds out on another connection whether a batch was appended, by its replica's mark.
    private func outcome(
      of batch: DecidedBatch, _ error: TidemarkError
    ) throws(TidemarkError) -> FeedMark? {
      let mark = try look(FeedQuestion(of: batch.request.replica)).mark
      guard mark.mark.number == batch.request.number, mark.mark.batchID == batch.request.batchID
      else { throw error }
      if batch.hasNews { news.noteAppend(to: database, at: mark.position) }
      return mark
    }

    /// Begins an epoch if the primary is another one than that of the newest epoch: it may lack
    /// entries whose offsets are assigned again from here on.
    private func beginEpochIfDue() throws(TidemarkError) {
      let epoch = Parameter.bits(UInt64.random(in: 1...UInt64(Int64.max)))
      _ = try pool.write([Statements.beginEpoch(row, epoch), Statements.noteEpoch(row, epoch)])
    }

    var isClosed: Bool { closed.withLock { $0 } }
    func close() { closed.withLock { $0 = true } }

    /// An append is durable when it returns: PostgreSQL answers a commit once it is on its disk.
    func settle(through position: FeedPosition) {}
    func isSettled(through position: FeedPosition) -> Bool { true }

    // MARK: Leases and policies

    func setLease(
      _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
    ) throws(TidemarkError) {
      // No process remembers what is not in a row.
      guard writes else { return }
      let known = [row, .bytea(replica.bytes)] + FeedLease.columns(view.lease)
      let call =
        lease == nil
        ? Call(statement: Statements.removeLease, parameters: known)
        : Call(
          statement: Statements.setLease,
          parameters: known + FeedLease.columns(lease) + [.bigint(Int64(clamping: most))])
      _ = try pool.write([call])
    }

    func setPolicy(
      _ policy: ConflictPolicy?, prefix: [UInt8]
    ) throws(TidemarkError) -> FeedPosition {
      let record = PolicyTable.encode(policy)
      let change =
        record.isEmpty
        ? Statements.removePolicy(row, .bytea(prefix))
        : Statements.setPolicy(row, .bytea(prefix), .bytea(record))
      guard try pool.write([Statements.changePolicies(row), change])?.first?.first != nil else {
        throw deleted()
      }
      return .beginning
    }
  }
#endif
