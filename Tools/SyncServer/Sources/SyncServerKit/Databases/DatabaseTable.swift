internal import HTTPTypes
internal import Logging
internal import Synchronization
internal import Tidemark
internal import TidemarkSyncServer

/// The open databases: each is opened when it is first asked for and kept open, the longest unused
/// one is closed when there are too many.
///
/// All methods that say so block, and belong on a ``WorkPool``.
final class DatabaseTable: Sendable {
  /// A database that stays open while this exists, or until it is ended.
  final class Lease: Sendable {
    let handler: SyncHandler
    private let giveBack: @Sendable () -> Void
    private let hasEnded = Atomic(false)

    fileprivate init(_ handler: SyncHandler, _ giveBack: @escaping @Sendable () -> Void) {
      self.handler = handler
      self.giveBack = giveBack
    }

    /// Lets the database be closed: whoever gets an answer finds room for the next one's.
    func end() {
      if !hasEnded.exchange(true, ordering: .acquiringAndReleasing) { giveBack() }
    }

    deinit { end() }
  }

  /// Held while the database is opened or closed.
  private final class Gate: Sendable {
    let opened = Mutex<Opened?>(nil)
  }

  private struct Opened {
    let handler: SyncHandler
    /// Ends the notices of what is appended.
    let observation: Int
  }

  private struct Row {
    let gate = Gate()
    var uses = 0
    var lastUse = ContinuousClock.now
    var isOpen = false
    var failure: (error: PeerError, until: ContinuousClock.Instant)?

    /// Somebody begins to use it.
    /// - Parameter isUse: see ``DatabaseTable/lease(_:mayCreate:isUse:)``.
    /// - Returns: its gate, and why it could not be opened lately.
    mutating func begin(isUse: Bool, at now: ContinuousClock.Instant) -> (Gate, PeerError?) {
      uses += 1
      if isUse { lastUse = now }
      guard let failure else { return (gate, nil) }
      return (gate, failure.until > now ? failure.error : nil)
    }

    /// Somebody has used it.
    /// - Returns: whether it needs a row: one that is not open does so only as long as its failure
    ///   counts.
    mutating func end(isUse: Bool, at now: ContinuousClock.Instant) -> Bool {
      uses -= 1
      if isUse { lastUse = now }
      return uses > 0 || isOpen || failure.map { $0.until > now } ?? false
    }
  }

  private struct State {
    var rows: [DatabaseName: Row] = [:]
    var isClosed = false
  }

  private let directory: DataDirectory
  private let creates: Bool
  private let limits: ServerLimits
  private let options: SyncHandler.Options
  /// nil leaves it to the stores.
  private let retention: Retention?
  private let policies: PolicyRules
  private let logger: Logger
  /// Does for all stores what nobody waits for.
  private let upkeep = StoreUpkeep()
  /// Decoded parts of all stores' logs. Feeds read by position: no cache by key would help.
  let cache: SharedCache
  /// A closure that stood in the lock by itself would be wrapped once more by each look at it.
  private struct Listener: Sendable {
    var call: @Sendable (DatabaseName) -> Void = { _ in }
  }

  private let listener = PosixMutex(Listener())
  private let state = PosixMutex(State())

  init(
    _ directory: DataDirectory, creates: Bool, limits: ServerLimits,
    options: SyncHandler.Options, retention: Retention?, policies: PolicyRules, logger: Logger
  ) {
    self.directory = directory
    self.creates = creates
    self.limits = limits
    self.options = options
    self.retention = retention
    self.policies = policies
    self.logger = logger
    cache = SharedCache(bytes: limits.cacheBytes)
  }

  /// Calls `body` when there is something new to pull from a database, on the thread that has
  /// appended it. Nobody else can append to it: whoever waits for a database need not hold it open.
  func onChange(_ body: @escaping @Sendable (DatabaseName) -> Void) {
    listener.withLock { $0.call = body }
  }

  /// There is something new in a database, or it was changed in another way.
  func noteChange(of name: DatabaseName) { listener.withLock { $0 }.call(name) }

  /// How many are open.
  var openCount: Int { state.withLock { $0.rows.values.count { $0.isOpen } } }

  /// The names of those that are open.
  var openNames: [DatabaseName] {
    state.withLock { $0.rows.filter { $0.value.isOpen }.map(\.key) }
  }

  /// Whether more may be opened without closing others soon.
  var hasRoomToSpare: Bool { openCount < limits.openDatabases / 2 }

  /// The names of all that the directory holds; blocks.
  func allNames() -> [DatabaseName] { directory.names() }

  /// Whether a database is open.
  func isOpen(_ name: DatabaseName) -> Bool { state.withLock { $0.rows[name]?.isOpen ?? false } }

  /// Whether asking for a database may make it; blocks.
  func mightMake(_ name: DatabaseName) -> Bool { creates && !directory.has(name) }

  /// The database of a name, opened if it is not; blocks.
  /// - Parameters:
  ///   - mayCreate: whether the caller may make it, where the server makes any.
  ///   - isUse: whether that keeps it from being closed as one that nobody uses.
  func lease(
    _ name: DatabaseName, mayCreate: Bool, isUse: Bool = true
  ) throws(Problem) -> Lease {
    let now = ContinuousClock.now
    let (gate, failure) = try state.withLock { (state) throws(Problem) in
      guard !state.isClosed else { throw Problem.shuttingDown }
      return state.rows[name, default: Row()].begin(isUse: isUse, at: now)
    }
    var handler: SyncHandler?
    defer { if handler == nil { endUse(of: name, isUse) } }
    if let failure { throw Problem(failure) }
    let opened = try gate.opened.withLock { (opened) throws(Problem) in
      if let opened { return opened.handler }
      try makeRoom()
      let handler = try open(name, mayCreate: mayCreate && creates)
      opened = Opened(
        handler: handler,
        observation: handler.observe { [weak self] in self?.noteChange(of: name) })
      state.withLock {
        $0.rows[name]?.isOpen = true
        $0.rows[name]?.failure = nil
      }
      return handler
    }
    handler = opened
    return Lease(opened) { [self] in endUse(of: name, isUse) }
  }

  private func endUse(of name: DatabaseName, _ isUse: Bool) {
    // Every call comes through here: the table is asked once, and nothing is copied.
    let now = ContinuousClock.now
    state.withLock { state in
      if state.rows[name]?.end(isUse: isUse, at: now) == false { state.rows[name] = nil }
    }
  }

  // MARK: Opening

  /// Most uploads of a database that the log tells of.
  private static let loggedUploads = 5

  private func open(_ name: DatabaseName, mayCreate: Bool) throws(Problem) -> SyncHandler {
    if let handler = try open(name, .write) { return handler }
    guard mayCreate else {
      throw Problem(.forbidden, "there is no database of this name", status: .notFound)
    }
    guard directory.names().count < limits.databases else {
      throw Problem(.forbidden, "the server makes no more databases")
    }
    guard let handler = try open(name, .create) else { throw Problem.notFound }
    logger.info("database made", metadata: ["database": "\(name)"])
    return handler
  }

  /// - Returns: nil when there is none.
  private func open(
    _ name: DatabaseName, _ access: Store.Access
  ) throws(Problem) -> SyncHandler? {
    do throws(TidemarkError) {
      let handler = try SyncHandler(
        at: directory.store(of: name), configuration: configuration(access), options: options)
      do throws(TidemarkError) { try handler.adopt(policies.policies(of: name)) } catch {
        try? handler.close()
        throw error
      }
      for error in handler.unreadableUploads.prefix(Self.loggedUploads) {
        logger.warning(
          "an upload cannot be read and is passed over",
          metadata: ["database": "\(name)", "error": "\(error)"])
      }
      return handler
    } catch {
      if error.code == .storeMissing { return nil }
      throw failed(name, error)
    }
  }

  func configuration(_ access: Store.Access) -> Store.Configuration {
    var configuration = Store.Configuration(
      access: access, retention: retention,
      cacheBytes: 0,
      // The server compacts all databases in turn, and knows which records nobody needs.
      compaction: .onRequest)
    configuration.upkeep = upkeep
    configuration.sharedCache = cache
    return configuration
  }

  /// Takes note of a failure, so that not every call tries again.
  private func failed(_ name: DatabaseName, _ error: TidemarkError) -> Problem {
    logger.error(
      "database cannot be opened", metadata: ["database": "\(name)", "error": "\(error)"])
    var answer = PeerError(
      .unavailable, "the database cannot be opened; the server's log says why",
      retryAfter: max(limits.databaseRetry, .seconds(1)))
    if error.code == .noSpace { answer.detail = error.message }
    state.withLock { $0.rows[name]?.failure = (answer, .now + limits.databaseRetry) }
    return Problem(answer)
  }

  // MARK: Closing

  /// Closes the longest unused databases until there is room for one more.
  private func makeRoom() throws(Problem) {
    while openCount >= limits.openDatabases {
      let victim = state.withLock { state in
        state.rows.filter { $0.value.isOpen && $0.value.uses == 0 }
          .min { $0.value.lastUse < $1.value.lastUse }?.key
      }
      guard let victim else {
        throw Problem.noRoom
      }
      close(victim)
    }
  }

  /// Closes databases that nobody has used for long; blocks.
  func closeIdle() {
    let end = ContinuousClock.now - limits.databaseIdle
    let idle = state.withLock { state in
      state.rows.filter { $0.value.isOpen && $0.value.uses == 0 && $0.value.lastUse < end }.keys
    }
    for name in idle { close(name) }
  }

  /// Closes everything and opens nothing any more; blocks.
  func closeAll() {
    let names = state.withLock { state in
      state.isClosed = true
      return Array(state.rows.keys)
    }
    for name in names { close(name, evenInUse: true) }
  }

  private func close(_ name: DatabaseName, evenInUse: Bool = false) {
    guard let gate = state.withLock({ $0.rows[name]?.gate }) else { return }
    gate.opened.withLock { opened in
      // A caller that wants it from now on waits at the gate, and opens it again.
      let mayClose = state.withLock { state in
        guard let row = state.rows[name], row.isOpen, evenInUse || row.uses == 0 else {
          return false
        }
        state.rows[name]?.isOpen = false
        return true
      }
      guard mayClose, let open = opened else { return }
      opened = nil
      // Records that closing appends are news to nobody; waiters would open it again.
      open.handler.stopObserving(open.observation)
      do { try open.handler.close() } catch {
        logger.error(
          "database not closed in order",
          metadata: ["database": "\(name)", "error": "\(error)"])
      }
    }
    state.withLock { state in
      if let row = state.rows[name], row.uses == 0, !row.isOpen { state.rows[name] = nil }
    }
  }
}
