public import ArgumentParser
public import Logging
internal import SyncServerKit
internal import TidemarkSyncServer

private let defaults = ServerOptions(dataDirectory: "")

/// The options of leases, conflicts, logs, HTTPS and shutdown.
struct RunningOptions: ParsableArguments {
  @Option(
    0...36_500, "days", "Days for which deletes are kept for a device that does not call.")
  var leaseDays = (defaults.handler.lease ?? .zero).seconds / 86_400
  @Option(1...1_000_000, "count", "Most devices of a database for which that is kept on disk.")
  var maxLeases = defaults.handler.mostLeases
  @Option(
    help: ArgumentHelp(
      "Who wins a conflict: NAME=P or NAME/PREFIX=P, P detect or lastWriterWins; * is any NAME.",
      valueName: "rule"))
  var policy: [String] = []
  @Option(
    0...1 << 40, "seconds", "How long requests may go on when the server ends, in seconds.")
  var shutdownTimeout = defaults.shutdownTimeout.seconds
  @Option(
    help: ArgumentHelp(
      "How long it goes on at SIGTERM, not ready, so that balancers send it nothing more. "
        + "(default: 10 with PostgreSQL, else 0)", valueName: "seconds"))
  var drainSeconds: UInt16?
  @Option(
    help: ArgumentHelp(
      "The port for administration over HTTP; its token is in TIDEMARK_ADMIN_TOKEN.",
      valueName: "port"))
  var adminPort: Int?
  @Option(help: "Where to listen for that.")
  var adminHost = "127.0.0.1"
  @Option(help: ArgumentHelp("Log from this level on.", valueName: "level"))
  var logLevel = Logger.Level.info
  @Flag(help: "Log every request, not only those that fail.")
  var logRequests = false
  @Option(help: ArgumentHelp("Certificates for HTTPS, as PEM.", valueName: "path"))
  var tlsCert: String?
  @Option(help: ArgumentHelp("Their key, as PEM.", valueName: "path"))
  var tlsKey: String?

  func apply(to options: inout ServerOptions) {
    options.handler.lease = leaseDays > 0 ? .seconds(leaseDays * 86_400) : nil
    options.handler.mostLeases = maxLeases
    options.policies = policy
    options.shutdownTimeout = .seconds(shutdownTimeout)
    options.logsRequests = logRequests
    options.certificateFile = tlsCert
    options.keyFile = tlsKey
  }

  /// A logger that writes to standard error.
  func logger() -> Logger {
    LoggingSystem.bootstrap(StreamLogHandler.standardError)
    var logger = Logger(label: "tidemark-server")
    logger.logLevel = logLevel
    return logger
  }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
