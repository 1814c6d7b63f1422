internal import HTTPTypes
internal import TidemarkSync

/// Finds out who makes a request.
struct Authenticator: Sendable {
  /// Everybody may do everything.
  private let isOpen: Bool
  private let tokens: StaticTokens
  private let webTokens: WebTokens?

  /// Longest bearer token.
  private static let longest = 8 << 10

  init(isOpen: Bool, tokens: StaticTokens, webTokens: WebTokens?) {
    self.isOpen = isOpen
    self.tokens = tokens
    self.webTokens = webTokens
  }

  /// Who makes a request.
  /// - Parameters:
  ///   - fields: the request's.
  ///   - address: where it comes from.
  /// - Throws: `unauthorized`.
  func caller(_ fields: HTTPFields, address: String) async throws(Problem) -> Caller {
    if isOpen { return Caller(id: "at " + address, grant: .everything) }
    guard fields[values: .authorization].count <= 1, let field = fields[.authorization] else {
      throw Self.refused("the request has no authorization, or more than one")
    }
    let parts = field.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer", parts[1].utf8.count <= Self.longest
    else { throw Self.refused("the authorization is no bearer token") }
    let token = parts[1]
    if let found = tokens.grant(for: token.utf8) {
      return Caller(id: "token \(found.row)", grant: found.grant)
    }
    guard let webTokens, let caller = await webTokens.caller(String(token)) else {
      throw Self.refused("the token is not valid, or not any more")
    }
    return caller
  }

  private static func refused(_ message: String) -> Problem {
    Problem(PeerError(.unauthorized, message))
  }
}
