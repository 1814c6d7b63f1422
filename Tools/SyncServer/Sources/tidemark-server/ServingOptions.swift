internal import ArgumentParser
internal import SyncServerKit

/// The options of the data directory and the address.
struct ServingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The directory with a store for each database.", valueName: "directory"))
  var data: String?
  @Flag(help: "Make the tables, or bring them to this release's version, at the start.")
  var applySchema = false
  @Option(help: "Where to listen: a name or an address.")
  var host = ServerOptions(dataDirectory: "").host
  @Option(0...65_535, "port", "The port; 0 for any that is free.")
  var port = ServerOptions(dataDirectory: "").port
  @Flag(help: "Make no databases; serve those that exist.")
  var noCreate = false

  /// The server's options: these, and the defaults of all others.
  /// - Parameter postgres: how PostgreSQL is reached, if it has the databases.
  func options(_ postgres: PostgresOptions?) throws -> ServerOptions {
    guard (data == nil) != (postgres == nil) else {
      throw ValidationError("give either --data or --postgres")
    }
    var options = ServerOptions(dataDirectory: data ?? "")
    options.postgres = postgres
    options.postgres?.appliesSchema = applySchema
    options.host = host
    options.port = port
    options.createsDatabases = !noCreate
    return options
  }
}
