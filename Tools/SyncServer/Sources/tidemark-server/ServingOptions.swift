internal import ArgumentParser
internal import SyncServerKit

/// The options of the data directory and the address.
struct ServingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The directory with a store for each database.", valueName: "directory"))
  var data: String
  @Option(help: "Where to listen: a name or an address.")
  var host = ServerOptions(dataDirectory: "").host
  @Option(0...65_535, "port", "The port; 0 for any that is free.")
  var port = ServerOptions(dataDirectory: "").port
  @Flag(help: "Make no databases; serve those that exist.")
  var noCreate = false

  /// The server's options: these, and the defaults of all others.
  func options() -> ServerOptions {
    var options = ServerOptions(dataDirectory: data)
    options.host = host
    options.port = port
    options.createsDatabases = !noCreate
    return options
  }
}
