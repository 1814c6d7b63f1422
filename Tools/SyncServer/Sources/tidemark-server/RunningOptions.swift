internal import ArgumentParser
internal import Logging
internal import SyncServerKit

/// The options of leases, conflicts, logs, HTTPS and shutdown.
struct RunningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Days for which deletes are kept for a device that does not call. (default: 90)",
      valueName: "days"))
  var leaseDays: Int?
  @Option(
    help: ArgumentHelp(
      "Most devices of a database for which that is kept on disk. (default: 10000)",
      valueName: "count"))
  var maxLeases: Int?
  @Option(
    help: ArgumentHelp(
      "Who wins a conflict: NAME=P or NAME/PREFIX=P, P detect or lastWriterWins; * is any NAME.",
      valueName: "rule"))
  var policy: [String] = []
  @Option(
    help: ArgumentHelp(
      "How long requests may go on when the server ends, in seconds. (default: 30)",
      valueName: "seconds"))
  var shutdownTimeout: Int?
  @Option(
    help: ArgumentHelp(
      "Log from this level on: debug, info, notice, warning, error. (default: info)",
      valueName: "level"))
  var logLevel: String?
  @Flag(help: "Log every request, not only those that fail.")
  var logRequests = false
  @Option(help: ArgumentHelp("Certificates for HTTPS, as PEM.", valueName: "path"))
  var tlsCert: String?
  @Option(help: ArgumentHelp("Their key, as PEM.", valueName: "path"))
  var tlsKey: String?

  func apply(to options: inout ServerOptions) throws {
    if let days = try leaseDays ?? Setting.number("LEASE_DAYS") {
      guard (0...36_500).contains(days) else {
        throw ValidationError("a lease has 0 to 36500 days")
      }
      options.lease = days > 0 ? .seconds(days * 86_400) : nil
    }
    if let most = try maxLeases ?? Setting.number("MAX_LEASES") {
      guard (1...1_000_000).contains(most) else {
        throw ValidationError("max-leases has to be 1 to 1000000")
      }
      options.mostLeases = most
    }
    options.policies = policy.isEmpty ? Setting.words("POLICY") : policy
    if let seconds = try shutdownTimeout ?? Setting.number("SHUTDOWN_TIMEOUT"), seconds >= 0 {
      options.shutdownTimeout = .seconds(seconds)
    }
    options.logsRequests = try logRequests || Setting.flag("LOG_REQUESTS") ?? false
    options.certificateFile = tlsCert ?? Setting.text("TLS_CERT")
    options.keyFile = tlsKey ?? Setting.text("TLS_KEY")
  }

  /// A logger that writes to standard error.
  func logger() throws -> Logger {
    LoggingSystem.bootstrap(StreamLogHandler.standardError)
    var logger = Logger(label: "tidemark-server")
    guard let level = Logger.Level(rawValue: logLevel ?? Setting.text("LOG_LEVEL") ?? "info")
    else { throw ValidationError("there is no such level of logging") }
    logger.logLevel = level
    return logger
  }
}
