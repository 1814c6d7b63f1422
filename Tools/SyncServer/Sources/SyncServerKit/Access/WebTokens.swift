/// The settings that JSON Web Tokens are checked against.
public struct WebTokenSettings: Sendable {
  /// The secret that tokens signed by HS256 share with the server.
  public var secret: [UInt8]?
  /// The public key, as PEM, of tokens signed by ES256.
  public var publicKey: String?
  /// The `iss` and `aud` that a token must have; nil for any.
  public var issuer: String?
  public var audience: String?

  /// Shortest secret in bytes: the length of the hash.
  static let shortestSecret = 32

  /// Settings without keys, so that no token is valid.
  public init() {}

  var isEmpty: Bool { secret == nil && publicKey == nil }
}

#if JWT
  internal import Crypto
  internal import Tidemark

  #if canImport(Darwin)
    internal import Foundation
  #else
    internal import FoundationEssentials
  #endif

  /// Verifies JSON Web Tokens (RFC 7519) that are signed by HS256 or ES256, whichever there is a
  /// key for, and by nothing else.
  ///
  /// Tokens are not trusted: only the header is decoded before the signature is verified, and JSON
  /// is parsed by this library, whose parser throws where Foundation's traps: for arrays nested 513
  /// levels deep.
  struct WebTokens: Sendable {
    /// A field of a header: its text, or nil for any other value, as only texts matter.
    private struct Field: Codable {
      let text: String?

      init(from decoder: any Decoder) { text = try? String(from: decoder) }
    }

    private struct Claims: Codable {
      /// Seconds since 1970.
      let exp: Double
      let nbf: Double?
      let iss: String?
      let sub: String?
      let jti: String?
      let replica: String?
      let aud: Audience?
      let databases: [String]
      let labels: [String]?
      let prefixes: [String]?
      let access: String?
    }

    /// A JSON object whose member names are unique. Parsers differ in which of two members of one
    /// name they take, so that the issuer may have meant other claims than the server reads.
    private struct Unambiguous<Value: Codable & Sendable>: Codable {
      struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
      }

      let value: Value

      init(from decoder: any Decoder) throws {
        let names = try decoder.container(keyedBy: Name.self).allKeys.map(\.stringValue)
        guard Set(names).count == names.count else {
          throw DecodingError.dataCorrupted(
            DecodingError.Context(codingPath: [], debugDescription: "a name stands twice"))
        }
        value = try Value(from: decoder)
      }
    }

    /// The `aud` of a token: one name, or an array of names.
    private struct Audience: Codable {
      let names: [String]

      init(from decoder: any Decoder) throws {
        names = try (try? String(from: decoder)).map { [$0] } ?? [String](from: decoder)
      }
    }

    private let secret: SymmetricKey?
    private let publicKey: P256.Signing.PublicKey?
    private let issuer: String?
    private let audience: String?

    init(_ settings: WebTokenSettings) throws(SettingsError) {
      if let secret = settings.secret, secret.count < WebTokenSettings.shortestSecret {
        throw SettingsError(
          "the secret of HS256 has to have \(WebTokenSettings.shortestSecret) bytes or more")
      }
      secret = settings.secret.map { SymmetricKey(data: $0) }
      publicKey = settings.publicKey.flatMap { try? P256.Signing.PublicKey(pemRepresentation: $0) }
      guard (publicKey == nil) == (settings.publicKey == nil) else {
        throw SettingsError("the key of ES256 is no public key of P-256 as PEM")
      }
      issuer = settings.issuer
      audience = settings.audience
    }

    /// The caller that a token identifies.
    /// - Returns: nil for a token that is not valid, for any reason.
    func caller(_ token: some Collection<UInt8>) -> Caller? {
      let now = Date().timeIntervalSince1970
      guard let claims = claims(of: Array(token)), claims.exp > now, claims.nbf ?? now <= now,
        issuer == nil || Self.isSame(claims.iss, issuer),
        audience == nil || claims.aud?.names.contains(where: { Self.isSame($0, audience) }) == true,
        [nil, "read", "write"].contains(claims.access)
      else { return nil }
      let grant = Grant(
        databases: claims.databases, labels: claims.labels, prefixes: claims.prefixes,
        canPush: claims.access != "read")
      // The id is bounded, as the rate limits keep those of many callers in memory.
      let id = (claims.sub ?? claims.databases.joined(separator: ",")).utf8.prefix(255)
      return Caller(
        id: "subject " + String(decoding: id, as: UTF8.self), grant: grant, subject: claims.sub,
        tokenID: claims.jti, replica: claims.replica,
        validFor: .seconds(min(claims.exp - now, 1e9)))
    }

    /// Whether names have the same bytes. `==` also holds for strings that are only canonically
    /// equivalent in Unicode, as `é` in one scalar and in two.
    private static func isSame(_ one: String?, _ other: String?) -> Bool {
      one.map { Array($0.utf8) } == other.map { Array($0.utf8) }
    }

    /// The claims of a token in the compact form of RFC 7515, if its signature is valid.
    private func claims(of token: [UInt8]) -> Claims? {
      let parts = token.split(
        separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
      guard parts.count == 3, let header = Self.decode([String: Field].self, parts[0]),
        // A token with critical extensions must be refused, as none are implemented.
        header["crit"] == nil, let algorithm = header["alg"]?.text,
        let signature = Self.bytes(parts[2]),
        isValid(signature, of: token[..<parts[1].endIndex], by: algorithm)
      else { return nil }
      return Self.decode(Claims.self, parts[1])
    }

    private func isValid(
      _ signature: [UInt8], of text: ArraySlice<UInt8>, by algorithm: String
    ) -> Bool {
      switch algorithm {
      case "HS256":
        return secret.map {
          HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: text, using: $0)
        } ?? false
      case "ES256":
        guard let publicKey,
          let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return publicKey.isValidSignature(signature, for: text)
      default: return false
      }
    }

    private static func decode<Value: Codable & Sendable>(
      _ type: Value.Type, _ part: ArraySlice<UInt8>
    ) -> Value? {
      bytes(part).flatMap { try? CollectionCoding<Unambiguous<Value>>.json.decode($0).value }
    }

    /// Decodes base64url without padding, as RFC 7515 has it.
    private static func bytes(_ part: ArraySlice<UInt8>) -> [UInt8]? {
      guard !part.contains(where: "+/=".utf8.contains) else { return nil }
      let text = String(decoding: part, as: UTF8.self)
        .replacing("-", with: "+").replacing("_", with: "/")
      let padding = String(repeating: "=", count: (4 - part.count % 4) % 4)
      return Data(base64Encoded: text + padding).map { [UInt8]($0) }
    }
  }
#else
  /// A placeholder in a build without JSON Web Tokens.
  struct WebTokens: Sendable {
    init(_ settings: WebTokenSettings) throws(SettingsError) {
      throw SettingsError("this server was built without JSON Web Tokens (trait JWT)")
    }

    func caller(_ token: some Collection<UInt8>) -> Caller? { nil }
  }
#endif
