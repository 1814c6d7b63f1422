#if PostgreSQL
  public import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  public import TidemarkSyncServer

  /// The databases of a sync server in PostgreSQL, which any number of processes may serve at a
  /// time.
  ///
  /// ```swift
  /// let feeds = try PostgresFeeds(PostgresSettings(url: "postgresql://tidemark@db/tidemark"))
  /// let handler = try feeds.handler(of: "notes")
  /// ```
  /// All calls block, and may come from any thread.
  public final class PostgresFeeds: Sendable {
    private let settings: PostgresSettings
    let pool: Pool
    let news: News
    private let inbox: Inbox

    /// Connects to PostgreSQL, and checks that the server's tables exist.
    /// - Parameter settings: how to reach PostgreSQL.
    /// - Throws: `storeMissing` without tables, `formatTooNew` or `formatTooOld` for tables of
    ///   another release, `inputOutput` if PostgreSQL cannot be reached.
    public init(_ settings: PostgresSettings) throws(TidemarkError) {
      self.settings = settings
      pool = Pool(settings)
      try Schema.check(pool)
      news = try News(settings, pool)
      inbox = try Inbox(pool, news, history: settings.history)
    }

    /// Creates the server's tables, or migrates the tables of an earlier release.
    /// - Parameter settings: how to reach PostgreSQL.
    public static func applySchema(_ settings: PostgresSettings) throws(TidemarkError) {
      let pool = Pool(settings)
      defer { pool.close() }
      try Schema.apply(pool)
    }

    /// The SQL statements that ``applySchema(_:)`` runs, if you prefer to run them by hand.
    public static var schema: String { Schema.steps.joined().joined(separator: ";\n\n") + ";\n" }

    private static let find = Statement(
      """
      SELECT d.db, d.feed FROM tidemark.tm_name n JOIN tidemark.tm_db d ON d.db=n.db
      WHERE n.name=$1::text
      """)

    /// Returns a handler that serves one database.
    /// - Parameters:
    ///   - name: the name of the database.
    ///   - isMade: whether the call creates the database if it does not exist.
    ///   - options: the settings of the handler.
    /// - Throws: `storeMissing` if the database does not exist and is not to be created; the errors
    ///   of PostgreSQL.
    public func handler(
      of name: String, creating isMade: Bool = true,
      options: SyncHandler.Options = SyncHandler.Options()
    ) throws(TidemarkError) -> SyncHandler {
      try SyncHandler(feed: try feed(of: name, creating: isMade), options: options)
    }

    package func feed(
      of name: String, creating isMade: Bool = true
    ) throws(TidemarkError) -> any Feed & FeedUpkeep {
      for _ in 0..<3 {
        if var row = try pool.read([Self.find(.text(name))])[0].first {
          let database = try row.bigint()
          return PostgresFeed(
            database, named: name, id: try row.replica(), pool: pool, history: settings.history,
            news: news)
        }
        guard isMade else { throw TidemarkError(.storeMissing, "there is no such database") }
        try make(name)
      }
      throw TidemarkError(.busy, "somebody makes and deletes the database at a time")
    }

    /// The number of a database, as statements take it.
    func number(of name: String) throws(TidemarkError) -> Parameter {
      guard var row = try pool.read([Self.find(.text(name))])[0].first else {
        throw TidemarkError(.storeMissing, "there is no such database")
      }
      return .bigint(try row.bigint())
    }

    /// Makes a database; does nothing where another server has just done so.
    private func make(_ name: String) throws(TidemarkError) {
      let database = Parameter.bigint(Int64.random(in: 1...Int64.max))
      let epoch = Parameter.bigint(Int64.random(in: 1...Int64.max))
      let id = (0..<ReplicaID.byteCount).map { _ in UInt8.random(in: 0...255) }
      let calls = [
        Self.addName(.text(name), database), Self.addDatabase(database, .bytea(id), epoch),
        Self.noteIncarnation(database), Statements.noteEpoch(database, epoch),
      ]
      try pool.again { (connection) throws(Failure) in
        do throws(Failure) { _ = try connection.write(calls) } catch {
          guard error.state == "23505" else { throw error }
        }
      }
    }

    private static let addName = Statement(
      "INSERT INTO tidemark.tm_name (name, db) VALUES ($1::text, $2::bigint)")

    private static let addDatabase = Statement(
      """
      INSERT INTO tidemark.tm_db (db, feed, head, last_time, epoch, incarnation, policies,
        truncated, history_from, deletes_through, bytes, garbage, quota, state, upkeep_until)
      VALUES ($1::bigint, $2::bytea, 0, 0, $3::bigint, '', 0, 0, 0, 0, 0, 0, 0, 0, 0)
      """)

    private static let noteIncarnation = Statement(
      """
      UPDATE tidemark.tm_db d SET incarnation=\(Statements.incarnation) WHERE db=$1::bigint
      """)

    private static let list = Statement(
      """
      SELECT name FROM tidemark.tm_name WHERE name > $1::text ORDER BY name LIMIT $2::bigint
      """)

    /// Returns the names of databases in their order, a page at a time.
    /// - Parameters:
    ///   - name: the page begins after this name; empty for the first page.
    ///   - limit: the most names of the page.
    public func names(
      after name: String = "", limit: Int = 1_000
    ) throws(TidemarkError) -> [String] {
      let rows = try pool.read([Self.list(.text(name), .bigint(Int64(limit)))])[0]
      var names: [String] = []
      for var row in rows.all { names.append(try row.text()) }
      return names
    }

    private static let counting = Statement("SELECT count(*) FROM tidemark.tm_name")

    /// Returns how many databases the server has.
    public func count() throws(TidemarkError) -> Int {
      guard var row = try pool.read([Self.counting()])[0].first else { return 0 }
      return try row.int()
    }

    /// Returns whether a database with this name exists.
    public func has(_ name: String) throws(TidemarkError) -> Bool {
      try pool.read([Self.find(.text(name))])[0].first != nil
    }

    /// Texts for a log that name settings of PostgreSQL under which acknowledged changes may be
    /// lost. Empty if the settings are safe.
    public var warnings: [String] {
      let waits = settings.requiresStandby && !news.hasStandby
      return losses() + (waits ? ["not ready until there is a synchronous standby"] : [])
    }

    /// Counters and gauges of the PostgreSQL client, for the server's monitoring.
    public var metrics: [PostgresMetric] {
      pool.metrics + [
        PostgresMetric(
          "answer_age_milliseconds", .gauge, "Time since the primary has answered a poll.",
          news.answerAge.wholeMilliseconds),
        PostgresMetric(
          "commit_level", .gauge, "Where a commit is on disk before it is acknowledged.", 1,
          labels: "{level=\"\(news.hasStandby ? "standby" : "local")\"}"),
      ]
    }

    /// Whether the primary has answered within the last seconds, and has a synchronous standby if
    /// ``PostgresSettings/requiresStandby`` asks for one. The server's `/ready` page shows it.
    public var isReady: Bool { news.isReady }

    /// Calls `body` with the name of a database whenever a process, this one or another, has
    /// appended to it. Only databases that this process has served count.
    public func onNews(_ body: @escaping @Sendable (String) -> Void) { news.onNews(body) }

    private static let removeName = Statement(
      "DELETE FROM tidemark.tm_name WHERE name=$1::text AND db=$2::bigint")
    /// Takes a deleted database, where no other server has it, for a minute.
    private static let claimDeleted = Statement(
      """
      UPDATE tidemark.tm_db SET state=1, upkeep_until=\(Statements.milliseconds) + 60000
      WHERE db=(SELECT db FROM tidemark.tm_db
        WHERE state IN (1, 3) AND upkeep_until<\(Statements.milliseconds) LIMIT 1)
        AND state IN (1, 3) AND upkeep_until<\(Statements.milliseconds)
      RETURNING db
      """)
    private static let markDeleted = Statement(
      "UPDATE tidemark.tm_db SET state=1, upkeep_until=0 WHERE db=$1::bigint")

    /// Deletes a database. Its name is free at once. A new database of the name has another id, so
    /// that its replicas begin anew.
    /// - Parameter name: the name of the database.
    /// - Returns: whether the database existed.
    @discardableResult
    public func delete(_ name: String) throws(TidemarkError) -> Bool {
      guard var row = try pool.read([Self.find(.text(name))])[0].first else { return false }
      let database = Parameter.bigint(try row.bigint())
      _ = try pool.write([Self.markDeleted(database), Self.removeName(.text(name), database)])
      // Also what a server that was killed has left.
      while var row = try pool.write([Self.claimDeleted()])?[0].first {
        let database = Parameter.bigint(try row.bigint())
        for table in Schema.tables { try empty(table, database) }
      }
      return true
    }

    /// How many rows of a deleted database one transaction deletes.
    private static let rowsAtOnce: Int64 = 5_000

    private func empty(_ table: String, _ database: Parameter) throws(TidemarkError) {
      let delete = Statement(
        """
        WITH gone AS (DELETE FROM tidemark.\(table) WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM tidemark.\(table) WHERE db=$1::bigint LIMIT $2::bigint)) RETURNING 1)
        SELECT count(*) FROM gone
        """)
      // A part of a content has up to 256 KiB.
      let most = table == "tm_chunk" ? 100 : Self.rowsAtOnce
      while true {
        let calls = [Statements.lock(database), delete(database, .bigint(most))]
        guard var row = try pool.write(calls)?.last?.first, try row.bigint() == most else { return }
      }
    }

    private static let forgetting = Statement(
      """
      UPDATE tidemark.tm_db SET incarnation='' WHERE db=$1::bigint
      """)

    /// Begins a new epoch of a database's feed with its next append. Call it after you have changed
    /// or restored the rows by hand, since the server cannot notice that.
    /// - Parameter name: the name of the database.
    public func beginNewEpoch(of name: String) throws(TidemarkError) {
      _ = try pool.write([Self.forgetting(try number(of: name))])
    }

    /// Closes all connections to PostgreSQL. Handlers answer `unavailable` from then on.
    public func close() {
      pool.close()
      news.close()
      inbox.close()
    }

    deinit { close() }
  }
#endif
