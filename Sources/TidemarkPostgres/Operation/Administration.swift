#if PostgreSQL
  public import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// The state of a database: size, quota and number of replicas.
  public struct DatabaseStatus: Sendable, Codable {
    public var database: String
    /// The offset of its last entry.
    public var head: UInt64
    /// About how many bytes its rows take, how many of them a compaction gives back, and how many
    /// it may take before puts are rejected; 0 for any.
    public var bytes: Int
    public var reclaimable: Int
    public var quota: Int
    public var isReadOnly: Bool
    /// How many replicas have a lease.
    public var replicas: Int
  }

  /// The state of a replica of a database: its lease, its lag, and its pushed batches.
  public struct ReplicaStatus: Sendable, Codable {
    /// Its id, in hexadecimal digits.
    public var replica: String
    /// When its lease ends, in milliseconds since 1970; nil without one.
    public var leaseEnds: UInt64?
    /// How many entries it is known not to have read, of its own and of others.
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

    /// The databases after a name, in the order of their names.
    public func statuses(
      after name: String = "", limit: Int = 1_000
    ) throws(TidemarkError) -> [DatabaseStatus] {
      try read(Self.statuses(.text(name), .bigint(Int64(clamping: limit))))
    }

    /// - Throws: `storeMissing` where there is no such database, as all calls do that name one.
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

    /// The replicas of a database, those first that lack most.
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

    /// Sets how many bytes a database may take, 0 for any. Puts beyond it are rejected with the
    /// code `quota`, so that they stay with their devices; deletes are taken.
    public func setQuota(_ bytes: Int, of name: String) throws(TidemarkError) {
      guard bytes >= 0 else { throw TidemarkError(.invalidArgument, "a quota is 0 or more bytes") }
      _ = try pool.write([Self.setQuota(try number(of: name), .bigint(Int64(bytes)))])
    }

    /// Sets whether pushes to a database are answered `unavailable`, so that devices try later.
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
    /// Refuses somebody from now on, within seconds at every server.
    /// - Parameter isRevoked: false takes it back.
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

    /// All that counts.
    public func revocations() throws(TidemarkError) -> [Revocation] {
      try Revocation.all(try pool.read([Revocation.readAll])[0])
    }

    /// Whether somebody is refused, as this server has read last, within five seconds.
    public func isRevoked(_ revocation: Revocation) -> Bool { news.isRevoked(revocation) }

    /// Calls `body` whenever somebody else is refused than before.
    public func onRevocation(_ body: @escaping @Sendable () -> Void) { news.onRevocation(body) }
  }
#endif
