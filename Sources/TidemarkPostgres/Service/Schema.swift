#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine

  /// Creates and migrates the tables of the databases: each release has the migrations from every
  /// earlier version of the schema, and each leaves the tables usable by the release before.
  ///
  /// Primary keys begin with the database, and the only other index tells a page which of its
  /// entries others supersede. Numbers without sign are stored as their bits; a hash, which is
  /// ordered, has its highest bit flipped.
  enum Schema {
    /// The version that this release writes, and the earliest release's that may go on beside it.
    static let version: Int64 = 1
    static let leastServer: Int64 = 1

    /// The tables with rows of databases, each after those that refer to it.
    static let tables = [
      "tm_chunk", "tm_orphan", "tm_upload", "tm_ref", "tm_content", "tm_entry", "tm_key", "tm_mark",
      "tm_lease",
      "tm_policy", "tm_epoch", "tm_db",
    ]

    static let steps: [[String]] = [
      [
        "CREATE SCHEMA IF NOT EXISTS tidemark",
        "CREATE TABLE tidemark.tm_schema (version bigint NOT NULL, least_server bigint NOT NULL)",
        "CREATE TABLE tidemark.tm_name (name text PRIMARY KEY, db bigint NOT NULL)",
        """
        CREATE TABLE tidemark.tm_db (
          db bigint PRIMARY KEY, feed bytea NOT NULL, head bigint NOT NULL,
          last_time bigint NOT NULL, epoch bigint NOT NULL, incarnation text NOT NULL,
          policies bigint NOT NULL, truncated bigint NOT NULL, history_from bigint NOT NULL,
          deletes_through bigint NOT NULL, bytes bigint NOT NULL, garbage bigint NOT NULL,
          quota bigint NOT NULL, state smallint NOT NULL, upkeep_until bigint NOT NULL)
          WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.01)
        """,
        """
        CREATE TABLE tidemark.tm_epoch (
          db bigint, first bigint, epoch bigint NOT NULL, PRIMARY KEY (db, first))
        """,
        """
        CREATE TABLE tidemark.tm_policy (
          db bigint, prefix bytea, record bytea NOT NULL, PRIMARY KEY (db, prefix))
        """,
        """
        CREATE TABLE tidemark.tm_entry (
          db bigint, off bigint, kind smallint NOT NULL, hash bigint NOT NULL, key bytea NOT NULL,
          ident bytea, labels bytea NOT NULL, replica bytea NOT NULL, seq bigint NOT NULL,
          wtime bigint NOT NULL, rtime bigint NOT NULL, prev bigint NOT NULL, size bigint NOT NULL,
          attrs bytea NOT NULL, vlen bigint NOT NULL, value bytea, PRIMARY KEY (db, off))
          WITH (autovacuum_vacuum_insert_scale_factor=0.05)
        """,
        "CREATE INDEX tm_entry_prev ON tidemark.tm_entry (db, prev) WHERE prev > 0",
        """
        CREATE TABLE tidemark.tm_key (
          db bigint, hash bigint, ident bytea, off bigint NOT NULL, prev bigint NOT NULL,
          deleted boolean NOT NULL, labels bytea NOT NULL, low bigint NOT NULL,
          high bigint NOT NULL,
          PRIMARY KEY (db, hash, ident))
          WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
        """,
        """
        CREATE TABLE tidemark.tm_mark (
          db bigint, replica bytea, number bigint NOT NULL, batch bigint NOT NULL,
          off bigint NOT NULL, record bytea NOT NULL, PRIMARY KEY (db, replica))
          WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.01)
        """,
        """
        CREATE TABLE tidemark.tm_lease (
          db bigint, replica bytea, expires bigint NOT NULL, reads_until bigint NOT NULL,
          epoch bigint NOT NULL, off bigint NOT NULL, cleared bigint NOT NULL,
          PRIMARY KEY (db, replica))
        """,
        """
        CREATE TABLE tidemark.tm_content (
          db bigint, id bytea, chunks bigint NOT NULL, touched bigint NOT NULL,
          PRIMARY KEY (db, id))
        """,
        "CREATE TABLE tidemark.tm_ref (db bigint, off bigint, id bytea, PRIMARY KEY (db, off))",
        """
        CREATE TABLE tidemark.tm_upload (
          db bigint, owner bytea, id bytea, received bigint NOT NULL, sha bytea NOT NULL,
          chunks bigint NOT NULL, touched bigint NOT NULL, PRIMARY KEY (db, owner, id))
        """,
        """
        CREATE TABLE tidemark.tm_chunk (
          db bigint, owner bigint, at bigint, bytes bytea NOT NULL, PRIMARY KEY (db, owner, at))
        """,
        "CREATE TABLE tidemark.tm_revoked (kind text, value text, PRIMARY KEY (kind, value))",
        "CREATE TABLE tidemark.tm_orphan (db bigint, owner bigint, PRIMARY KEY (db, owner))",
        "ALTER TABLE tidemark.tm_chunk ALTER bytes SET STORAGE EXTERNAL",
        "INSERT INTO tidemark.tm_schema (version, least_server) VALUES (1, 1)",
      ] + InboxSchema.steps
    ]

    private static let look = Statement(
      "SELECT version, least_server FROM tidemark.tm_schema")

    /// The version in the database; nil where there is no schema.
    private static func found(_ pool: Pool) throws(TidemarkError) -> (version: Int64, least: Int64)?
    {
      let rows = try pool.again { (connection) throws(Failure) -> [Rows]? in
        do throws(Failure) { return try connection.read([look()]) } catch {
          guard error.state == "42P01" || error.state == "3F000" else { throw error }
          return nil
        }
      }
      guard var row = rows?.first?.first else { return nil }
      return (try row.bigint(), try row.bigint())
    }

    /// Checks that this release may serve what is there.
    static func check(_ pool: Pool) throws(TidemarkError) {
      guard let found = try found(pool) else {
        throw TidemarkError(
          .storeMissing,
          "there are no tables of Tidemark in it; run `tidemark-server schema apply` once")
      }
      guard found.least <= version else {
        throw TidemarkError(
          .formatTooNew,
          "the tables need a server of schema \(found.least) or later; this one is of "
            + "schema \(version)")
      }
      guard found.version >= version else {
        throw TidemarkError(
          .formatTooOld,
          "the tables are of schema \(found.version), this server is of \(version); "
            + "run `tidemark-server schema apply` once")
      }
    }

    /// Makes the tables, or brings them to this release's version, each step in a transaction.
    /// - Throws: as ``check(_:)``, for tables of a later release.
    static func apply(_ pool: Pool) throws(TidemarkError) {
      let done = Int(try found(pool)?.version ?? 0)
      for step in steps.dropFirst(done) {
        try pool.again { (connection) throws(Failure) in
          do throws(Failure) { _ = try connection.write(step.map { Statement($0)() }) } catch {
            // Another server has just done so.
            guard ["42P07", "42P06", "23505"].contains(error.state) else { throw error }
          }
        }
      }
      try check(pool)
    }
  }
#endif
