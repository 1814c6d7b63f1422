internal import ArgumentParser
internal import Logging
internal import ServiceLifecycle
internal import SyncServerKit
internal import UnixSignals

@main
struct TidemarkServer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tidemark-server",
    abstract: "Serves databases that stores replicate with, over HTTP.",
    discussion: """
      A database is addressed as http://HOST:PORT/NAME and is made when it is first used. GET \
      /health answers 200 when the server is ready, /metrics is for Prometheus. With databases in \
      PostgreSQL there are the commands admin, copy, doctor and schema, each with a --help. Every \
      option can also be given in the environment, as TIDEMARK_ and its name: TIDEMARK_DATA for \
      --data, TIDEMARK_TOKEN_FILE for --token-file.
      """)

  @OptionGroup(title: "What is served where")
  var serving: ServingOptions
  @OptionGroup(title: "Databases in PostgreSQL")
  var postgres: PostgresArguments
  @OptionGroup(title: "Who may do what")
  var access: AccessOptions
  @OptionGroup(title: "Limits")
  var limits: LimitOptions
  @OptionGroup(title: "Attachments")
  var attachments: AttachmentOptions
  @OptionGroup(title: "What is kept")
  var keeping: KeepingOptions
  @OptionGroup(title: "Running")
  var running: RunningOptions

  static func main() async {
    let given = Array(CommandLine.arguments.dropFirst())
    #if PostgreSQL
      Operation.run(given)
    #endif
    do { await main(try Environment.arguments(besides: given) + given) } catch {
      exit(withError: error)
    }
  }

  /// The settings that the options ask for.
  func options() throws -> ServerOptions {
    var options = try serving.options(try postgres.options())
    try access.apply(to: &options)
    limits.apply(to: &options.limits)
    attachments.apply(to: &options)
    keeping.apply(to: &options.compaction)
    running.apply(to: &options)
    return options
  }

  func run() async throws {
    ProcessLimits.giveBackLargeBlocks()
    var options = try options()
    let logger = running.logger()
    Self.fit(&options.limits, logger)
    try await serve(options, logger)
  }

  private func serve(_ options: ServerOptions, _ logger: Logger) async throws {
    let server: SyncServer
    do {
      server = try await SyncServer(options, logger: logger) { port in
        logger.notice(
          "ready", metadata: ["address": "\(options.host):\(port)"])
      }
    } catch { throw Told.exit(error) }
    var quiet = logger
    quiet.logLevel = max(.warning, logger.logLevel)
    var services: [any Service] = [server]
    let hasCertificates = options.certificateFile != nil
    #if PostgreSQL
      if let admin = try admin(of: server, logger) { services.append(admin) }
    #endif
    if access.tokenFile != nil || access.hasKeyFiles || hasCertificates {
      services.append(
        Reload(access: access, hasCertificates: hasCertificates, server: server, logger: logger))
    }
    let drain = running.drainSeconds ?? (options.postgres == nil ? 0 : 10)
    var signals: [UnixSignal] = [.sigint]
    if drain == 0 { signals.append(.sigterm) }
    var configuration = ServiceGroupConfiguration(
      services: services, gracefulShutdownSignals: signals, logger: quiet)
    if drain > 0 {
      configuration.services.append(
        .init(
          service: Drain(server: server, time: .seconds(Int(drain)), logger: logger),
          successTerminationBehavior: .gracefullyShutdownGroup))
    }
    let group = ServiceGroup(configuration: configuration)
    do { try await group.run() } catch let error as SettingsError { throw Told.exit(error) }
    logger.notice("ended")
  }

  #if PostgreSQL
    private func admin(of server: SyncServer, _ logger: Logger) throws -> AdminServer? {
      guard let port = running.adminPort else { return nil }
      let token = try access.adminToken()
      do {
        return try AdminServer(
          of: server, host: running.adminHost, port: port, token: token, logger: logger
        ) { port in
          logger.notice("administered", metadata: ["address": "\(running.adminHost):\(port)"])
        }
      } catch { throw Told.exit(error) }
    }
  #endif

  /// Lowers the limit of connections to the open files that the process may have.
  private static func fit(_ limits: inout ServerLimits, _ logger: Logger) {
    let files = ProcessLimits.raiseOpenFiles()
    // An open database has about 8 files: a lock, a directory and some segments.
    let room = max(16, files - 64 - 8 * limits.openDatabases)
    guard room < limits.connections else { return }
    logger.warning(
      "fewer connections than asked for, since the process may have \(files) files only",
      metadata: ["connections": "\(room)"])
    limits.waiting = min(limits.waiting, room * 3 / 4)
    limits.connections = room
  }
}
