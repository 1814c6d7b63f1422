public import TidemarkSyncServer

/// The settings of a server.
public struct ServerOptions: Sendable {
  /// The address that it listens at.
  public var host = "127.0.0.1"
  /// The port; 0 for any that is free.
  public var port = 8080
  /// The directory with a store for each database; unused with PostgreSQL.
  public var dataDirectory: String
  /// The PostgreSQL server that has the databases; nil for the directory.
  public var postgres: PostgresOptions?
  /// Whether databases are created at their first use.
  public var createsDatabases = true

  /// Whether every request may do everything. Nil: only if there are no tokens and the address is a
  /// loopback address.
  public var isOpen: Bool?
  /// The text of a file with tokens.
  public var tokens = ""
  /// The settings that JSON Web Tokens are checked against.
  public var webTokens = WebTokenSettings()
  /// Whether `/metrics` can be read without a token.
  public var hasOpenMetrics = false
  /// Whether callers' addresses are taken from `X-Forwarded-For`, as a proxy in front sets it.
  public var trustsProxy = false

  /// The limits that it sets its callers.
  public var limits = ServerLimits()
  /// The settings of each database: its leases, and the limits of attachments and uploads.
  public var handler = SyncHandler.Options()
  /// When databases are compacted.
  public var compaction = CompactionSettings()
  /// Policies for conflicts that databases get when they are opened: `NAME=POLICY`, or
  /// `NAME/PREFIX=POLICY` for the keys that begin with a prefix; `*` is any name.
  public var policies: [String] = []
  /// How long running requests may take when the server ends.
  public var shutdownTimeout = Duration.seconds(30)
  /// Whether requests that did not fail are logged, too.
  public var logsRequests = false
  /// Threads for connections.
  public var eventLoops = 2

  /// The files, as PEM, of the certificates and the key for HTTPS.
  public var certificateFile: String?
  public var keyFile: String?

  /// The defaults, with a directory.
  public init(dataDirectory: String) {
    self.dataDirectory = dataDirectory
    handler.attachmentBytes = 4 << 30
    handler.attachmentUploads = 64
    handler.attachmentUploadBytes = 16 << 30
  }

  /// Whether an address can be reached from this machine only.
  static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1"
      || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 46 || (48...57).contains($0) })
  }

  /// The authenticator for the tokens of these settings.
  func authenticator() throws(SettingsError) -> Authenticator {
    let tokens = try StaticTokens(tokens)
    let webTokens = self.webTokens.isEmpty ? nil : try WebTokens(self.webTokens)
    let hasTokens = !tokens.isEmpty || webTokens != nil
    let isOpen = self.isOpen ?? (!hasTokens && Self.isLoopback(host))
    guard isOpen || hasTokens else {
      throw SettingsError(
        "without tokens everybody could read and write everything: give tokens, or a loopback "
          + "address to listen at, or say that the server is to be open")
    }
    guard !isOpen || !hasTokens else {
      throw SettingsError("a server with tokens cannot be open as well")
    }
    return Authenticator(isOpen: isOpen, tokens: tokens, webTokens: webTokens)
  }
}
