internal import ArgumentParser
internal import SyncServerKit

/// The options of authorization. Secrets are only read from files or the environment: every user of
/// the machine can read a command line.
struct AccessOptions: ParsableArguments {
  @Flag(help: "Everybody may do everything. (default on loopback addresses without tokens)")
  var open = false
  @Option(
    help: ArgumentHelp(
      "Lines TOKEN DATABASES|* [label=X,Y] [prefix=P] [read|write]; or TIDEMARK_TOKENS itself.",
      valueName: "path"))
  var tokenFile: String?
  @Option(
    help: ArgumentHelp(
      "The secret of JSON Web Tokens by HS256; or TIDEMARK_JWT_HS256_SECRET itself.",
      valueName: "path"))
  var jwtHs256SecretFile: String?
  @Option(help: ArgumentHelp("The public key, as PEM, of those by ES256.", valueName: "path"))
  var jwtEs256KeyFile: String?
  @Option(help: ArgumentHelp("What their iss has to be.", valueName: "text"))
  var jwtIssuer: String?
  @Option(help: ArgumentHelp("What their aud has to be or to hold.", valueName: "text"))
  var jwtAudience: String?
  @Option(
    help: ArgumentHelp(
      "The token of administration over HTTP; or TIDEMARK_ADMIN_TOKEN itself.", valueName: "path"))
  var adminTokenFile: String?
  @Flag(help: "Let /metrics be read without a token.")
  var openMetrics = false
  @Flag(help: "Take callers' addresses from X-Forwarded-For, which a proxy in front sets.")
  var trustProxy = false

  /// Whether a key of JSON Web Tokens is read from a file, and so can change while the server runs.
  var hasKeyFiles: Bool { jwtHs256SecretFile != nil || jwtEs256KeyFile != nil }

  /// Reads the static tokens from their file or the environment.
  func tokens() throws -> String {
    try tokenFile.map(Self.text) ?? Environment.text("TOKENS") ?? ""
  }

  /// Reads the keys and expected claims of JSON Web Tokens from options, files and environment.
  func webTokens() throws -> WebTokenSettings {
    var settings = WebTokenSettings()
    settings.secret =
      try jwtHs256SecretFile.map(Self.bytes)
      ?? Environment.text("JWT_HS256_SECRET").map { Array($0.utf8) }
    settings.publicKey = try jwtEs256KeyFile.map(Self.text)
    settings.issuer = jwtIssuer
    settings.audience = jwtAudience
    return settings
  }

  /// The bearer token that requests to `--admin-port` need, from `--admin-token-file` or
  /// TIDEMARK_ADMIN_TOKEN; empty for none, with which the port is not opened.
  func adminToken() throws -> String {
    try adminTokenFile.map(Self.text) ?? Environment.text("ADMIN_TOKEN") ?? ""
  }

  func apply(to options: inout ServerOptions) throws {
    if open { options.isOpen = true }
    options.tokens = try tokens()
    options.webTokens = try webTokens()
    options.hasOpenMetrics = openMetrics
    options.trustsProxy = trustProxy
  }

  /// The bytes of a file without white space at the end, which editors append to a secret.
  private static func bytes(of path: String) throws -> [UInt8] {
    var bytes: [UInt8]
    do { bytes = try SettingsFile.bytes(at: path) } catch {
      throw ValidationError(error.description)
    }
    while let last = bytes.last, last == 10 || last == 13 || last == 32 { bytes.removeLast() }
    return bytes
  }

  private static func text(of path: String) throws -> String {
    guard let text = String(validating: try bytes(of: path), as: UTF8.self) else {
      throw ValidationError("\(path) is not UTF-8")
    }
    return text
  }
}
