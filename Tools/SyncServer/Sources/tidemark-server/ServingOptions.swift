internal import ArgumentParser
internal import SyncServerKit

/// The options of the data directory and the address.
struct ServingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The directory with a store for each database.", valueName: "directory"))
  var data: String?
  @Option(
    help: ArgumentHelp(
      "Or the address of a PostgreSQL server that has them, which any number of servers may serve.",
      valueName: "url"))
  var postgres: String?
  @Flag(help: "A pooler in transaction mode stands before PostgreSQL.")
  var postgresPooler = false
  @Option(
    help: ArgumentHelp(
      "PostgreSQL's own address, for notifications; without it heads are polled.",
      valueName: "url"))
  var postgresDirect: String?
  @Option(1...1_000, "count", "Most connections to PostgreSQL.")
  var postgresConnections = PostgresOptions(url: "").connections
  @Flag(help: "Make the tables, or bring them to this release's version, at the start.")
  var applySchema = false
  @Option(help: "Where to listen: a name or an address.")
  var host = ServerOptions(dataDirectory: "").host
  @Option(0...65_535, "port", "The port; 0 for any that is free.")
  var port = ServerOptions(dataDirectory: "").port
  @Flag(help: "Make no databases; serve those that exist.")
  var noCreate = false

  /// The server's options: these, and the defaults of all others.
  func options() throws -> ServerOptions {
    guard (data == nil) != (postgres == nil) else {
      throw ValidationError("give either --data or --postgres")
    }
    var options = ServerOptions(dataDirectory: data ?? "")
    if let postgres {
      // What came from the environment is not among them.
      let isVisible = [postgres, postgresDirect ?? postgres].contains { url in
        Self.hasPassword(url) && CommandLine.arguments.contains { $0.hasSuffix(url) }
      }
      guard !isVisible else {
        throw ValidationError(
          "everybody on this machine can read a password in the arguments: give the address in "
            + "TIDEMARK_POSTGRES, or the password in a file (PGPASSFILE)")
      }
      var settings = PostgresOptions(url: postgres)
      (settings.isPooled, settings.directURL) = (postgresPooler, postgresDirect)
      settings.connections = postgresConnections
      settings.appliesSchema = applySchema
      options.postgres = settings
    }
    options.host = host
    options.port = port
    options.createsDatabases = !noCreate
    return options
  }

  private static func hasPassword(_ url: String) -> Bool {
    if url.filter({ $0 != " " }).contains("password=") { return true }
    guard let start = url.firstRange(of: "://") else { return false }
    let authority = url[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
    return authority.contains("@") && authority.prefix { $0 != "@" }.contains(":")
  }
}
