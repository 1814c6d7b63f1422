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
    name: .customLong("jwt-hs256-secret-file"),
    help: ArgumentHelp(
      "The secret of JSON Web Tokens by HS256; or TIDEMARK_JWT_HS256_SECRET itself.",
      valueName: "path"))
  var secretFile: String?
  @Option(
    name: .customLong("jwt-es256-key-file"),
    help: ArgumentHelp("The public key, as PEM, of those by ES256.", valueName: "path"))
  var keyFile: String?
  @Option(
    name: .customLong("jwt-issuer"),
    help: ArgumentHelp("What their iss has to be.", valueName: "text"))
  var issuer: String?
  @Option(
    name: .customLong("jwt-audience"),
    help: ArgumentHelp("What their aud has to be or to hold.", valueName: "text"))
  var audience: String?
  @Flag(help: "Let /metrics be read without a token.")
  var openMetrics = false
  @Flag(help: "Take callers' addresses from X-Forwarded-For, which a proxy in front sets.")
  var trustProxy = false

  /// The path of the file with static tokens, if any.
  var tokenPath: String? { tokenFile ?? Setting.text("TOKEN_FILE") }

  /// Whether a key of JSON Web Tokens is read from a file, and so can change while the server runs.
  var hasKeyFiles: Bool { secretPath != nil || keyPath != nil }

  private var secretPath: String? { secretFile ?? Setting.text("JWT_HS256_SECRET_FILE") }
  private var keyPath: String? { keyFile ?? Setting.text("JWT_ES256_KEY_FILE") }

  /// Reads the keys and expected claims of JSON Web Tokens from options, files and environment.
  func webTokens() throws -> WebTokenSettings {
    var settings = WebTokenSettings()
    settings.secret =
      try secretPath.map { try Setting.file($0) }
      ?? Setting.text("JWT_HS256_SECRET").map { Array($0.utf8) }
    settings.publicKey = try keyPath.map { try Setting.textFile($0) }
    settings.issuer = issuer ?? Setting.text("JWT_ISSUER")
    settings.audience = audience ?? Setting.text("JWT_AUDIENCE")
    return settings
  }

  func apply(to options: inout ServerOptions) throws {
    if try open || Setting.flag("OPEN") ?? false { options.isOpen = true }
    if let path = tokenPath {
      options.tokens = try Setting.textFile(path)
    } else {
      options.tokens = Setting.text("TOKENS") ?? ""
    }
    options.webTokens = try webTokens()
    options.hasOpenMetrics = try openMetrics || Setting.flag("OPEN_METRICS") ?? false
    options.trustsProxy = try trustProxy || Setting.flag("TRUST_PROXY") ?? false
  }
}
