internal import ArgumentParser
internal import SyncServerKit

/// The options of databases in PostgreSQL.
struct PostgresArguments: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The address of a PostgreSQL server that has the databases, for any number of servers.",
      valueName: "url"))
  var postgres: String?
  @Flag(help: "A pooler in transaction mode stands before PostgreSQL.")
  var postgresPooler = false
  @Option(
    help: ArgumentHelp(
      "PostgreSQL's own address, for notifications; without it heads are polled.",
      valueName: "url"))
  var postgresDirect: String?
  @Flag(help: "Be ready only while commits wait for a synchronous standby.")
  var requireStandby = false
  @Option(1...1_000, "count", "Most connections to PostgreSQL.")
  var postgresConnections = PostgresOptions(url: "").connections

  /// - Returns: nil without an address.
  /// - Throws: for a password in the command line.
  func options() throws -> PostgresOptions? {
    guard let postgres else { return nil }
    // What came from the environment is not among the arguments.
    let isVisible = [postgres, postgresDirect ?? postgres].contains { url in
      Self.hasPassword(url) && CommandLine.arguments.contains { $0.hasSuffix(url) }
    }
    guard !isVisible else {
      throw ValidationError(
        "everybody on this machine can read a password in the arguments: give the address in "
          + "TIDEMARK_POSTGRES, or the password in a file (PGPASSFILE)")
    }
    var options = PostgresOptions(url: postgres)
    (options.isPooled, options.directURL) = (postgresPooler, postgresDirect)
    (options.connections, options.requiresStandby) = (postgresConnections, requireStandby)
    return options
  }

  private static func hasPassword(_ url: String) -> Bool {
    if url.filter({ $0 != " " }).contains("password=") { return true }
    guard let start = url.firstRange(of: "://") else { return false }
    let authority = url[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
    return authority.contains("@") && authority.prefix { $0 != "@" }.contains(":")
  }
}
