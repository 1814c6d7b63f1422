internal import HummingbirdCore
public import Logging
internal import NIOCore
internal import NIOPosix
public import ServiceLifecycle
internal import Synchronization
internal import Tidemark

/// Serves the databases in a directory over HTTP.
///
/// ```swift
/// let server = try await SyncServer(ServerOptions(dataDirectory: "data"), logger: logger)
/// try await server.run()
/// ```
/// In a group of services it shuts down gracefully: it accepts no more connections, answers long
/// polls, finishes running requests and closes all databases.
public struct SyncServer: Service {
  private let options: ServerOptions
  private let logger: Logger
  let service: SyncService
  private let files: TLSFiles?
  private let onReady: @Sendable (Int) async -> Void

  /// A server.
  /// - Parameters:
  ///   - options: its settings.
  ///   - logger: for requests and databases, and for warnings of the HTTP library.
  ///   - onReady: called with the port when the server listens.
  /// - Throws: for settings with which it cannot run.
  public init(
    _ options: ServerOptions, logger: Logger,
    onReady: @escaping @Sendable (Int) async -> Void = { _ in }
  ) async throws(SettingsError) {
    self.options = options
    self.logger = logger
    self.onReady = onReady
    files =
      options.certificateFile == nil && options.keyFile == nil
      ? nil : try TLSFiles(certificate: options.certificateFile, key: options.keyFile, logger)
    let compaction = options.compaction
    let home: any DatabaseHome =
      if let postgres = options.postgres {
        try postgres.home(history: compaction.history)
      } else {
        try DirectoryHome(
          options.dataDirectory,
          retention: compaction.isOn ? Retention(age: compaction.history) : nil,
          cacheBytes: options.limits.cacheBytes)
      }
    for warning in home.warnings { logger.warning("\(warning)") }
    let databases = DatabaseTable(
      home, creates: options.createsDatabases, limits: options.limits, options: options.handler,
      policies: try PolicyRules(options.policies), logger: logger)
    service = SyncService(
      options, try options.authenticator(), databases, logger: logger)
  }

  /// Replaces the static tokens while the server runs.
  /// - Parameter text: as ``ServerOptions/tokens``.
  /// - Throws: for tokens with which it would not start; then the previous ones stay.
  public func replaceTokens(_ text: String) throws(SettingsError) {
    let tokens = try StaticTokens(text)
    try service.replace { (current) throws(SettingsError) in try current.replace(tokens) }
  }

  /// Replaces the keys that JSON Web Tokens are verified with, while the server runs. Tokens that
  /// were signed by other keys are refused from then on.
  /// - Parameter settings: as ``ServerOptions/webTokens``.
  /// - Throws: for keys with which the server would not start; then the previous ones stay.
  public func replaceWebTokenKeys(_ settings: WebTokenSettings) throws(SettingsError) {
    let webTokens = try WebTokens(settings)
    try service.replace { (current) throws(SettingsError) in try current.replace(webTokens) }
  }

  /// Reads certificates and key for HTTPS again, for later connections. Does nothing without HTTPS.
  /// - Throws: for files with which it would not start; then the previous ones stay.
  public func reloadCertificates() throws(SettingsError) { try files?.reload() }

  /// From now on `/ready` answers that the server is not; everything else goes on.
  public func drain() { service.isDraining.store(true, ordering: .relaxed) }

  /// Runs until the task is cancelled or the group of services ends.
  /// - Throws: ``SettingsError`` when it cannot listen at its address.
  public func run() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, options.eventLoops))
    let server = server(on: group)
    let upkeep = Task { await keepUp() }
    let service = self.service
    let compaction = Task { await service.compactor.run() }
    let timeout = options.shutdownTimeout
    let outcome: Result<Void, any Error>
    do {
      try await withGracefulShutdownHandler {
        try await server.run()
      } onGracefulShutdown: {
        service.waiters.endAll()
        service.compactor.stop()
        Task {
          try? await Task.sleep(for: timeout)
          service.connections.closeAll()
        }
      }
      outcome = .success(())
    } catch { outcome = .failure(error) }
    upkeep.cancel()
    service.waiters.endAll()
    service.compactor.stop()
    compaction.cancel()
    // A database must not be closed during its compaction.
    await compaction.value
    await service.compactor.shutDown()
    try? await service.pool.run("") { service.databases.closeAll() }
    await service.pool.shutDown()
    // First run the tasks that a failure to listen has left in the event loops.
    for loop in group.makeIterator() { try? await loop.submit {}.get() }
    try? await group.shutdownGracefully()
    do { try outcome.get() } catch {
      guard !service.hasStarted.load(ordering: .relaxed) else { throw error }
      throw SettingsError.listening(at: options.host, options.port, error)
    }
  }

  private func server(on group: any EventLoopGroup) -> any Service {
    let limits = options.limits
    let service = self.service
    var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
    decoder.maxHeaderFieldSize = limits.headerBytes
    decoder.maxHeaderListSize = limits.headerBytes
    decoder.maxHeaderFieldCount = limits.headerFields
    let http = HTTP1Channel(
      responder: { request, writer, channel in
        try await service.respond(to: request, writer, on: channel)
      },
      configuration: HTTP1Channel.Configuration(
        additionalChannelHandlers: [ConnectionHandler(service.connections)],
        httpDecoderConfiguration: decoder))
    // Info messages of the HTTP library repeat what this server logs.
    var quiet = logger
    quiet.logLevel = max(.warning, logger.logLevel)
    let onReady = self.onReady
    return GuardedChannel(http, service.connections, files).server(
      configuration: ServerConfiguration(
        address: .hostname(options.host, port: options.port), backlog: 1024),
      onServerRunning: {
        service.hasStarted.store(true, ordering: .relaxed)
        await onReady($0.localAddress?.port ?? 0)
      }, eventLoopGroup: group,
      logger: quiet)
  }

  /// Closes slow connections every second, and idle databases every 30.
  private func keepUp() async {
    let service = self.service
    var seconds = 0
    while (try? await Task.sleep(for: .seconds(1))) != nil {
      service.connections.closeOverdue()
      seconds += 1
      guard seconds % 30 == 0 else { continue }
      try? await service.pool.run("") { service.databases.closeIdle() }
      service.waiters.forget(before: ContinuousClock.now - options.limits.wait * 2)
    }
  }
}
