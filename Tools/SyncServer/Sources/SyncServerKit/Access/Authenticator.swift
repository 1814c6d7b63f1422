internal import HTTPTypes
internal import TidemarkSyncServer

/// Finds the caller of a request, and its rights, by the request's bearer token.
struct Authenticator: Sendable {
  /// Whether every request may do everything, without a token.
  private let isOpen: Bool
  private var tokens: StaticTokens
  private var webTokens: WebTokens?
  /// Counts how often static tokens, or the keys of JSON Web Tokens, were replaced.
  private(set) var generation = 0

  /// Longest bearer token.
  private static let longest = 8 << 10

  init(isOpen: Bool, tokens: StaticTokens, webTokens: WebTokens?) {
    self.isOpen = isOpen
    self.tokens = tokens
    self.webTokens = webTokens
  }

  /// Replaces the static tokens, which come from a file.
  /// - Throws: when there would be no tokens at all, or the server is open; then nothing changes.
  mutating func replace(_ tokens: StaticTokens) throws(SettingsError) {
    guard !isOpen else { throw SettingsError("a server that is open takes no tokens") }
    guard !tokens.isEmpty || webTokens != nil else {
      throw SettingsError("there are no tokens, so every request would be refused")
    }
    self.tokens = tokens
    generation += 1
  }

  /// Replaces the keys that JSON Web Tokens are verified with.
  /// - Throws: if the server was started without such keys; then nothing changes.
  mutating func replace(_ webTokens: WebTokens) throws(SettingsError) {
    guard self.webTokens != nil else { throw SettingsError("the server takes no web tokens") }
    self.webTokens = webTokens
    generation += 1
  }

  /// The caller that makes a request.
  /// - Parameters:
  ///   - fields: the request's header fields.
  ///   - address: the client's address, which identifies callers of an open server.
  /// - Throws: `unauthorized`.
  func caller(_ fields: HTTPFields, address: String) throws(Problem) -> Caller {
    if isOpen { return Caller(id: "at " + address, grant: .everything) }
    guard fields[values: .authorization].count <= 1, let field = fields[.authorization] else {
      throw Self.refused("the request has no authorization, or more than one")
    }
    let parts = field.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer", parts[1].utf8.count <= Self.longest
    else { throw Self.refused("the authorization is no bearer token") }
    let token = parts[1]
    if let found = tokens.grant(for: token.utf8) {
      return Caller(id: "token \(found.row)", grant: found.grant, generation: generation)
    }
    guard var caller = webTokens?.caller(token.utf8) else {
      throw Self.refused("the token is not valid, or not any more")
    }
    caller.generation = generation
    return caller
  }

  private static func refused(_ message: String) -> Problem {
    Problem(.unauthorized, message)
  }
}
