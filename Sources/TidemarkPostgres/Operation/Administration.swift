#if PostgreSQL
  public import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// The state of one database of a sync server: its size, its quota and its number of replicas.
  public struct DatabaseStatus: Sendable, Codable {
    /// The name of the database.
    public var database: String
    /// The offset of the last entry in the database's feed.
    public var head: UInt64
    /// About how many bytes the rows of the database take.
    public var bytes: Int
    /// About how many bytes a compaction of the database would free.
    public var reclaimable: Int
    /// How many bytes the database may take before the server rejects puts; 0 for no quota.
    public var quota: Int
    /// Whether the server answers pushes to the database with `unavailable`.
    public var isReadOnly: Bool
    /// How many replicas have a lease at the database.
    public var replicas: Int
  }

  /// The state of one replica of a database: its lease, its lag and its pushed batches.
  public struct ReplicaStatus: Sendable, Codable {
    /// The id of the replica, in hexadecimal digits.
    public var replica: String
    /// When the replica's lease ends, in milliseconds since 1970; nil if the replica has no lease.
    public var leaseEnds: UInt64?
    /// How many entries of the feed the replica has not pulled yet as far as the server knows, its
    /// own entries included.
    public var lag: UInt64
    /// The number of the last batch that the replica has pushed; batches are numbered from 1.
    public var batches: UInt64
  }

  extension PostgresFeeds {
    private static let status = """
      SELECT n.name, d.head, d.bytes, d.garbage, d.quota, d.state,
        (SELECT count(*) FROM tidemark.tm_lease l WHERE l.db=d.db)
      FROM tidemark.tm_name n JOIN tidemark.tm_db d ON d.db=n.db
      """
    private static let statuses = Statement(
      "\(status) WHERE n.name > $1::text ORDER BY n.name LIMIT $2::bigint")
    private static let statusOfOne = Statement("\(status) WHERE n.name = $1::text")

    /// Returns the states of databases, in the order of their names.
    /// - Parameters:
    ///   - name: the page begins after this name; empty for the first page.
    ///   - limit: the most databases of the page.
    public func statuses(
      after name: String = "", limit: Int = 1_000
    ) throws(TidemarkError) -> [DatabaseStatus] {
      try read(Self.statuses(.text(name), .bigint(Int64(clamping: limit))))
    }

    /// Returns the state of one database.
    /// - Parameter name: the name of the database.
    /// - Throws: `storeMissing` if no database has the name.
    public func status(of name: String) throws(TidemarkError) -> DatabaseStatus {
      guard let status = try read(Self.statusOfOne(.text(name))).first else {
        throw TidemarkError(.storeMissing, "there is no such database")
      }
      return status
    }

    private func read(_ call: Call) throws(TidemarkError) -> [DatabaseStatus] {
      var statuses: [DatabaseStatus] = []
      for var row in try pool.read([call])[0].all {
        statuses.append(
          DatabaseStatus(
            database: try row.text(), head: try row.ordered(), bytes: try row.int(),
            reclaimable: try row.int(), quota: try row.int(),
            isReadOnly: try row.bigint() == DatabaseState.readOnly.rawValue,
            replicas: try row.int()))
      }
      return statuses
    }

    private static let replicas = Statement(
      """
      SELECT coalesce(l.replica, m.replica), l.expires,
        d.head - greatest(coalesce(l.off, 0), coalesce(m.off, 0)), coalesce(m.number, 0)
      FROM tidemark.tm_db d
      CROSS JOIN ((SELECT * FROM tidemark.tm_lease WHERE db=$1::bigint) l
        FULL JOIN (SELECT * FROM tidemark.tm_mark WHERE db=$1::bigint) m ON m.replica=l.replica)
      WHERE d.db=$1::bigint ORDER BY 3 DESC LIMIT $2::bigint
      """)

    /// Returns the replicas of a database, those with the greatest lag first.
    /// - Parameters:
    ///   - name: the name of the database.
    ///   - limit: the most replicas of the result.
    /// - Throws: `storeMissing` if no database has the name.
    public func replicas(
      of name: String, limit: Int = 10_000
    ) throws(TidemarkError) -> [ReplicaStatus] {
      let database = try number(of: name)
      var replicas: [ReplicaStatus] = []
      for var row in try pool.read([Self.replicas(database, .bigint(Int64(clamping: limit)))])[0]
        .all
      {
        let id = try row.bytes().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        var leaseEnds: UInt64?
        if row.isNull { row.skip() } else { leaseEnds = try row.ordered() }
        replicas.append(
          ReplicaStatus(
            replica: id, leaseEnds: leaseEnds, lag: try row.ordered(), batches: try row.bits()))
      }
      return replicas
    }

    // MARK: Quota and read-only mode

    private static let setQuota = Statement(
      "UPDATE tidemark.tm_db SET quota=$2::bigint WHERE db=$1::bigint")
    private static let setState = Statement(
      "UPDATE tidemark.tm_db SET state=$2::bigint WHERE db=$1::bigint AND state<>1")

    /// Sets how many bytes a database may take. Beyond that the server rejects puts with the code
    /// `quota`, so that they stay on their devices. It still accepts deletes.
    /// - Parameters:
    ///   - bytes: the quota; 0 for none.
    ///   - name: the name of the database.
    /// - Throws: `invalidArgument` for a negative quota; `storeMissing` if no database has the
    ///   name.
    public func setQuota(_ bytes: Int, of name: String) throws(TidemarkError) {
      guard bytes >= 0 else { throw TidemarkError(.invalidArgument, "a quota is 0 or more bytes") }
      _ = try pool.write([Self.setQuota(try number(of: name), .bigint(Int64(bytes)))])
    }

    /// Sets whether the server answers pushes to a database with `unavailable`, so that devices try
    /// again later.
    /// - Parameters:
    ///   - isReadOnly: true stops pushes; false accepts them again.
    ///   - name: the name of the database.
    /// - Throws: `storeMissing` if no database has the name.
    public func setReadOnly(_ isReadOnly: Bool, of name: String) throws(TidemarkError) {
      let state: DatabaseState = isReadOnly ? .readOnly : .served
      _ = try pool.write([Self.setState(try number(of: name), .bigint(state.rawValue))])
    }

    // MARK: Revocations

    private static let revoke = Statement(
      """
      INSERT INTO tidemark.tm_revoked (kind, value)
      SELECT $1::text, $2::text WHERE (SELECT count(*) FROM tidemark.tm_revoked) < $3::bigint
      ON CONFLICT DO NOTHING
      """)
    private static let restore = Statement(
      "DELETE FROM tidemark.tm_revoked WHERE kind=$1::text AND value=$2::text")
    /// Revokes the access of a replica, a user or a token, or gives it back. Every server follows
    /// within seconds.
    /// - Parameters:
    ///   - isRevoked: true refuses the callers from now on; false lets them in again.
    ///   - revocation: the callers.
    /// - Throws: `invalidArgument` unless a replica has 32 hexadecimal digits and a claim 1 to 255
    ///   bytes; `limitExceeded` beyond 10,000 revocations.
    public func setRevoked(
      _ isRevoked: Bool, _ revocation: Revocation
    ) throws(TidemarkError) {
      let (kind, value) = (revocation.kind.rawValue, revocation.value)
      let isID = value.utf8.count == 2 * ReplicaID.byteCount && value.allSatisfy(\.isHexDigit)
      guard revocation.kind == .replica ? isID : (1...255).contains(value.utf8.count) else {
        throw TidemarkError(
          .invalidArgument, "a replica has 32 hexadecimal digits, a claim 1 to 255 bytes")
      }
      if isRevoked {
        _ = try pool.write([
          Self.revoke(.text(kind), .text(value), .bigint(Int64(Revocation.most)))
        ])
        guard try revocations().contains(revocation) else {
          throw TidemarkError(
            .limitExceeded, "there are \(Revocation.most) revocations already")
        }
      } else {
        _ = try pool.write([Self.restore(.text(kind), .text(value))])
      }
      news.tellAll()
    }

    /// Returns all revocations that are in effect.
    public func revocations() throws(TidemarkError) -> [Revocation] {
      try Revocation.all(try pool.read([Revocation.readAll])[0])
    }

    /// Whether the callers of a revocation are refused. The answer comes from memory and may be
    /// five seconds old.
    public func isRevoked(_ revocation: Revocation) -> Bool { news.isRevoked(revocation) }

    /// Calls `body` whenever the set of revocations has changed.
    public func onRevocation(_ body: @escaping @Sendable () -> Void) { news.onRevocation(body) }
  }
#endif
