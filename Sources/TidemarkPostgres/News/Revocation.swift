#if PostgreSQL
  internal import Tidemark

  /// A caller that every server refuses: a replica, a user or a single token. Set it with
  /// ``PostgresFeeds/setRevoked(_:_:)``.
  public struct Revocation: Sendable, Hashable, Codable {
    /// How a revocation identifies the callers that servers refuse.
    public enum Kind: String, Sendable, Codable, CaseIterable {
      /// One replica, by its id. A replica whose token does not name it may take another id, so
      /// revoke its token as well.
      case replica
      /// With `subject` all callers whose JSON Web Token has this `sub` claim; with `token` the one
      /// token that has this `jti` claim.
      case subject, token
    }

    /// Whether ``value`` is the id of a replica, a `sub` claim or a `jti` claim.
    public var kind: Kind
    /// The replica's id as 32 lower-case hexadecimal digits, or the text of the claim.
    public var value: String

    /// Creates a revocation; it has an effect once ``PostgresFeeds/setRevoked(_:_:)`` has stored
    /// it.
    /// - Parameters:
    ///   - kind: whether the value is the id of a replica, a `sub` claim or a `jti` claim.
    ///   - value: the replica's id in hexadecimal digits, or the claim.
    public init(_ kind: Kind, _ value: String) {
      self.kind = kind
      self.value = kind == .replica ? value.lowercased() : value
    }

    /// Most revocations, which every server has in memory.
    static let most = 10_000

    private static let rows = Statement(
      "SELECT kind, value FROM tidemark.tm_revoked ORDER BY kind, value LIMIT $1::bigint")
    static var readAll: Call { rows(.bigint(Int64(most))) }

    static func all(_ rows: Rows) throws(TidemarkError) -> [Revocation] {
      var all: [Revocation] = []
      for var row in rows.all {
        guard let kind = Kind(rawValue: try row.text()) else { continue }
        all.append(Revocation(kind, try row.text()))
      }
      return all
    }
  }
#endif
