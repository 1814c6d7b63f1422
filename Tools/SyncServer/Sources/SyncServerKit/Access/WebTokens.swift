/// The settings that JSON Web Tokens are checked against.
public struct WebTokenSettings: Sendable {
  /// The secret that tokens signed by HS256 share with the server.
  public var secret: [UInt8]?
  /// The public key, as PEM, of tokens signed by ES256.
  public var publicKey: String?
  /// The `iss` and `aud` that a token has to have, where this is told.
  public var issuer: String?
  public var audience: String?

  /// Shortest secret in bytes: as many as the hash has.
  static let shortestSecret = 32

  /// Nothing to check against, so no token is valid.
  public init() {}

  var isEmpty: Bool { secret == nil && publicKey == nil }
}

#if JWT
  internal import FoundationEssentials
  internal import JWTKit

  /// Checks JSON Web Tokens: signed by HS256 or ES256, whichever there is a key for, and by
  /// nothing else.
  struct WebTokens: Sendable {
    private struct Claims: JWTPayload {
      var exp: ExpirationClaim
      var nbf: NotBeforeClaim?
      var iss: IssuerClaim?
      var sub: SubjectClaim?
      var aud: AudienceClaim?
      var databases: [String]
      var labels: [String]?
      var prefixes: [String]?
      var access: String?

      func verify(using algorithm: some JWTAlgorithm) throws {
        try exp.verifyNotExpired()
        try nbf?.verifyNotBefore()
      }
    }

    /// By the name of the algorithm.
    private let keys: [String: JWTKeyCollection]
    private let issuer: String?
    private let audience: String?

    init(_ settings: WebTokenSettings) async throws(SettingsError) {
      var keys: [String: JWTKeyCollection] = [:]
      if let secret = settings.secret {
        guard secret.count >= WebTokenSettings.shortestSecret else {
          throw SettingsError(
            "the secret of HS256 has to have \(WebTokenSettings.shortestSecret) bytes or more")
        }
        keys["HS256"] = await JWTKeyCollection().add(
          hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
      }
      if let pem = settings.publicKey {
        guard let key = try? ES256PublicKey(pem: pem) else {
          throw SettingsError("the key of ES256 is no public key of P-256 as PEM")
        }
        keys["ES256"] = await JWTKeyCollection().add(ecdsa: key)
      }
      self.keys = keys
      issuer = settings.issuer
      audience = settings.audience
    }

    /// Whom a token speaks for.
    /// - Returns: nil for one that is not valid, whatever is wrong with it.
    func caller(_ token: String) async -> Caller? {
      guard
        let header = try? DefaultJWTParser().parse(Array(token.utf8), as: Claims.self).header,
        // A critical header has to be understood, and none is here.
        header.fields["crit"] == nil,
        let algorithm = header.alg, let keys = keys[algorithm],
        let claims = try? await keys.verify(token, as: Claims.self)
      else { return nil }
      if let issuer, claims.iss?.value != issuer { return nil }
      if let audience, claims.aud?.value.contains(audience) != true { return nil }
      guard claims.access == nil || claims.access == "read" || claims.access == "write" else {
        return nil
      }
      let grant = Grant(
        databases: claims.databases, labels: claims.labels, prefixes: claims.prefixes,
        canPush: claims.access != "read")
      let left = claims.exp.value.timeIntervalSinceNow
      return Caller(
        id: "subject " + (claims.sub?.value ?? claims.databases.joined(separator: ",")),
        grant: grant, validFor: .seconds(min(max(left, 0), 1e9)))
    }
  }
#else
  /// Stands for the checks of JSON Web Tokens in a build without them.
  struct WebTokens: Sendable {
    init(_ settings: WebTokenSettings) async throws(SettingsError) {
      throw SettingsError("this server was built without JSON Web Tokens (trait JWT)")
    }

    func caller(_ token: String) async -> Caller? { nil }
  }
#endif
