internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import Synchronization
internal import TidemarkSyncServer

/// Answers the requests of all connections.
final class SyncService: Sendable {
  let limits: ServerLimits
  let connections: ConnectionTable
  let databases: DatabaseTable
  let pool: WorkPool
  let settler = Settler()
  let waiters: Waiters
  /// Whether the server has begun to listen.
  let hasStarted = Atomic(false)
  /// Whether balancers are to send it nothing more, since it ends soon.
  let isDraining = Atomic(false)
  let metrics: Metrics
  let compactor: Compactor
  /// The budget of the bytes of all request bodies in memory.
  let bodies: Budget
  /// The budget of the memory of all answers that are encoded or not sent yet.
  let answers: Budget
  /// Decodes requests.
  let reader: WireCoder
  /// Encodes answers, with the largest limit: a log may have values that no body may have now.
  let writer = WireCoder(limit: WireFrame.largestLimit)

  private let authenticator: PosixMutex<Authenticator>
  private let rates: RateLimiter
  /// Limits the seconds of threads that a caller takes with digests and empty pulls.
  let searches: RateLimiter
  private let creations: RateLimiter
  /// How often an answer that is being sent is in memory: with TLS also encrypted.
  private let copiesOfAnswers: Int
  private let hasOpenMetrics: Bool
  /// The field that tells callers' addresses, where a proxy is trusted to set it.
  private let proxyField: HTTPField.Name?
  private let log: RequestLog
  /// When a database last failed because of the disk.
  private let lastDiskFailure = PosixMutex<ContinuousClock.Instant?>(nil)

  init(
    _ options: ServerOptions, _ authenticator: Authenticator, _ databases: DatabaseTable,
    logger: Logger
  ) {
    let limits = options.limits
    self.limits = limits
    self.authenticator = PosixMutex(authenticator)
    self.databases = databases
    let metrics = Metrics()
    self.metrics = metrics
    compactor = Compactor(options.compaction, databases, metrics, logger: logger)
    copiesOfAnswers = options.certificateFile == nil ? 1 : 2
    hasOpenMetrics = options.hasOpenMetrics
    proxyField = options.trustsProxy ? HTTPField.Name("X-Forwarded-For") : nil
    connections = ConnectionTable(limits)
    pool = WorkPool(
      threads: limits.threads, perKey: limits.threadsPerDatabase, queued: limits.queuedCalls)
    waiters = Waiters(most: limits.waiting, perCaller: limits.waitingPerCaller)
    bodies = Budget(limits.allBodyBytes)
    answers = Budget(limits.allAnswerBytes)
    reader = WireCoder(limit: limits.bodyBytes)
    rates = RateLimiter(
      rate: limits.requestsPerSecond, burst: max(limits.requestsAtOnce, 1),
      callers: limits.countedCallers)
    searches = RateLimiter(
      rate: limits.searchShare, burst: limits.searchAtOnce / .seconds(1),
      callers: limits.countedCallers)
    creations = RateLimiter(
      rate: limits.newDatabasesPerMinute / 60, burst: max(limits.newDatabasesPerMinute, 1),
      callers: limits.countedCallers)
    log = RequestLog(
      logger, linesPerSecond: limits.logLinesPerSecond, logsAll: options.logsRequests)
    databases.onChange { [weak self] name in self?.wake(name) }
    // The long polls of whoever is refused now must not go on.
    databases.home.onRefusal { [weak self] in self?.waiters.end() }
  }

  /// Answers one request.
  func respond(
    to request: Request, _ writer: consuming ResponseWriter, on channel: any Channel
  ) async throws {
    var entry = RequestLog.Entry(method: request.method.rawValue)
    entry.address = address(of: request, on: channel)
    let connection = ObjectIdentifier(channel)
    let reply: Reply
    do throws(Problem) {
      let route = try Route(request.head)
      entry.route = route.label
      entry.database = route.database?.description
      let made = try await self.reply(to: route, request, writer, entry.address, connection)
      guard let room = answers.take(made.body.readableBytes * copiesOfAnswers) else {
        throw Problem.tooManyAnswers
      }
      connections.hold(room, connection)
      reply = made
    } catch {
      note(error.error)
      reply = Reply(error, Coding.ofAnswer(request.headers))
    }
    let time = ContinuousClock.now - entry.start
    metrics.finished(
      entry.route, status: reply.status.code,
      received: reply.received, sent: reply.body.readableBytes, entries: reply.entries, in: time)
    entry.status = reply.status.code
    log.finished(entry, reply.error, in: time)
    try await reply.send(writer, isHead: request.method == .head)
  }

  private func reply(
    to route: Route, _ request: Request, _ writer: borrowing ResponseWriter, _ address: String,
    _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    switch route {
    // A server that goes on lives, whatever became of its databases.
    case .health where !waiters.isEnding: return databases.hearsHome ? alive : health
    case .ready where !waiters.isEnding:
      guard databases.home.isReady, !isDraining.load(ordering: .relaxed) else {
        throw Problem.notReady
      }
      return databases.hearsHome ? alive : health
    case .health, .ready: throw Problem.shuttingDown
    case .metrics, .call: break
    }
    if case .metrics = route, hasOpenMetrics { return metricsReply }
    let caller = try caller(request, address)
    guard !waiters.isEnding else { throw Problem.shuttingDown }
    switch route {
    case .health, .ready, .metrics:
      guard caller.grant.databases == nil else {
        throw Problem(.forbidden, "metrics need a token for all databases")
      }
      return metricsReply
    case .call(let call, let name):
      return try await answer(call, name, request, writer, caller, connection)
    }
  }

  private var alive: Reply {
    Reply(text: "{\"status\":\"ok\"}\n", contentType: "application/json")
  }

  /// The answer of `/health`, without shared databases: an error for a while after the disk has
  /// failed, such as a full one.
  private var health: Reply {
    let failure = lastDiskFailure.withLock { $0 }
    guard let failure, ContinuousClock.now - failure < limits.diskFailureTold else {
      return alive
    }
    return Reply(
      text: "{\"status\":\"the disk fails; the log says how\"}\n", contentType: "application/json",
      status: .serviceUnavailable)
  }

  /// Notes the time of an error that came from the database.
  func note(_ error: PeerError) {
    guard error.kind == .unavailable, error.detail != nil else { return }
    lastDiskFailure.withLock { $0 = .now }
  }

  private var metricsReply: Reply {
    Reply(
      text: metrics.text(
        openDatabases: databases.openCount, connections: connections.count,
        home: databases.home.metrics),
      contentType: "text/plain; version=0.0.4; charset=utf-8")
  }

  /// The caller of a request, which is counted by the caller's rate limit. A request without a
  /// valid token counts for its address.
  private func caller(_ request: Request, _ address: String) throws(Problem) -> Caller {
    let caller: Caller
    do throws(Problem) {
      let authenticator = authenticator.withLock { $0 }
      caller = try authenticator.caller(request.headers, address: address)
    } catch {
      try count("at " + address)
      throw error
    }
    try count(caller.id)
    return caller
  }

  /// Replaces the static tokens, or the keys that JSON Web Tokens are verified with. All long polls
  /// are answered without entries, since the tokens of some may not be valid any more.
  func replace(
    _ change: (inout Authenticator) throws(SettingsError) -> Void
  ) throws(SettingsError) {
    try authenticator.withLock { (current) throws(SettingsError) in try change(&current) }
    waiters.end()
  }

  /// Ends a long poll if tokens were replaced after its caller was verified.
  func endIfReplaced(_ waiter: PullWaiter, _ caller: Caller) {
    guard let generation = caller.generation else { return }
    if authenticator.withLock({ $0.generation }) != generation { waiter.end() }
  }

  /// Wakes the long polls of a database that has something new.
  func wake(_ name: DatabaseName) {
    if waiters.wake(name) { Task { await answerWoken(name) } }
  }

  private func count(_ id: String) throws(Problem) {
    guard let seconds = rates.count(id) else { return }
    throw Problem(.busy, "more requests than this server takes", retryAfter: .seconds(seconds))
  }

  /// Counts a request that may create a database by its caller's rate limit: databases are
  /// permanent, and each takes a directory, files and threads.
  func countMaking(
    of name: DatabaseName, _ caller: Caller, _ access: SyncAccess
  ) async throws(Problem) {
    guard access.canPush, !databases.isOpen(name),
      try await pool.run("\(name) look", .calls, { [databases] in databases.mightMake(name) }),
      let seconds = creations.count(caller.id)
    else { return }
    throw Problem(
      .busy, "more new databases than this server makes for one caller",
      retryAfter: .seconds(seconds))
  }

  /// The client's address: that of the connection, or of the trusted proxy's header field.
  private func address(of request: Request, on channel: any Channel) -> String {
    if let proxyField, let field = request.headers[proxyField],
      let last = field.split(separator: ",").last
    {
      // The header field is not trusted, and the address is logged: only its characters are kept.
      let text = last.filter { $0.isHexDigit || $0 == "." || $0 == ":" }
      if !text.isEmpty { return String(text.prefix(45)) }
    }
    return channel.remoteAddress?.ipAddress ?? "unknown"
  }
}
