internal import ArgumentParser
internal import SyncServerKit

/// The options of the data directory and the address.
struct ServingOptions: ParsableArguments {
  @Option(
    name: .customLong("data"),
    help: ArgumentHelp("The directory with a store for each database.", valueName: "directory"))
  var dataDirectory: String?
  @Option(
    help: ArgumentHelp(
      "Where to listen: a name or an address. (default: 127.0.0.1)", valueName: "host"))
  var host: String?
  @Option(
    help: ArgumentHelp("The port; 0 for any that is free. (default: 8080)", valueName: "port"))
  var port: Int?
  @Flag(name: .customLong("no-create"), help: "Make no databases; serve those that exist.")
  var doesNotCreate = false

  /// The server's options: these, and the defaults of all others.
  func options() throws -> ServerOptions {
    guard let data = dataDirectory ?? Setting.text("DATA") else {
      throw ValidationError("say with --data where the databases are")
    }
    var options = ServerOptions(dataDirectory: data)
    options.host = host ?? Setting.text("HOST") ?? options.host
    options.port = try port ?? Setting.number("PORT") ?? options.port
    guard (0...65_535).contains(options.port) else {
      throw ValidationError("ports are 0 to 65535")
    }
    options.createsDatabases = try !(doesNotCreate || Setting.flag("NO_CREATE") ?? false)
    return options
  }
}
