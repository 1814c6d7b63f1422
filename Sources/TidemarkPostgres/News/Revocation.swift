#if PostgreSQL
  internal import Tidemark

  /// Whom servers refuse.
  public struct Revocation: Sendable, Hashable, Codable {
    public enum Kind: String, Sendable, Codable, CaseIterable {
      /// A replica, by its id. One whose token does not name it may take another id: revoke its
      /// token as well.
      case replica
      /// The callers with a `sub` in their JSON Web Token, or the token with a `jti`.
      case subject, token
    }

    public var kind: Kind
    public var value: String

    /// - Parameter value: the replica's id in hexadecimal digits; or the claim.
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
