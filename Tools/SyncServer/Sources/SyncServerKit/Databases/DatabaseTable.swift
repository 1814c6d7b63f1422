internal import HTTPTypes
internal import Logging
internal import Synchronization
internal import Tidemark
internal import TidemarkSyncServer

/// The open databases: each is opened at its first use and kept open; the least recently used one
/// is closed when there are too many.
///
/// Methods that are documented to block must be called on a ``WorkPool``.
final class DatabaseTable: Sendable {
  /// Keeps a database open while it lives, or until `end()`.
  final class Lease: Sendable {
    let handler: SyncHandler
    private let giveBack: @Sendable () -> Void
    private let hasEnded = Atomic(false)

    fileprivate init(_ handler: SyncHandler, _ giveBack: @escaping @Sendable () -> Void) {
      self.handler = handler
      self.giveBack = giveBack
    }

    /// Ends the use of the database. Called before the answer is sent, so that the caller's next
    /// request finds room for another database.
    func end() {
      if !hasEnded.exchange(true, ordering: .acquiringAndReleasing) { giveBack() }
    }

    deinit { end() }
  }

  /// The lock is held while the database is opened or closed, so that others wait for that.
  private final class Gate: Sendable {
    let opened = Mutex<Opened?>(nil)
  }

  private struct Opened {
    let handler: SyncHandler
    /// The token to end the observation of appends.
    let observation: Int
  }

  private struct Row {
    let gate = Gate()
    var uses = 0
    var lastUse = ContinuousClock.now
    var isOpen = false
    var failure: (error: PeerError, until: ContinuousClock.Instant)?

    /// Begins a use.
    /// - Parameter isUse: see ``DatabaseTable/lease(_:mayCreate:isUse:)``.
    /// - Returns: its gate, and the error of a recent failure to open it.
    mutating func begin(isUse: Bool, at now: ContinuousClock.Instant) -> (Gate, PeerError?) {
      uses += 1
      if isUse { lastUse = now }
      guard let failure else { return (gate, nil) }
      return (gate, failure.until > now ? failure.error : nil)
    }

    /// Ends a use.
    /// - Returns: whether the row must be kept: it is in use, open, or has a recent failure.
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

  let home: any DatabaseHome
  private let creates: Bool
  private let limits: ServerLimits
  private let options: SyncHandler.Options
  private let policies: PolicyRules
  private let logger: Logger
  /// A closure that is the lock's whole state would be wrapped once more at each access.
  private struct Listener: Sendable {
    var call: @Sendable (DatabaseName) -> Void = { _ in }
  }

  private let listener = PosixMutex(Listener())
  private let state = PosixMutex(State())

  /// Whether the home tells of what is new; otherwise the open databases do.
  let hearsHome: Bool

  init(
    _ home: any DatabaseHome, creates: Bool, limits: ServerLimits, options: SyncHandler.Options,
    policies: PolicyRules, logger: Logger
  ) {
    self.home = home
    self.creates = creates
    self.limits = limits
    self.options = options
    self.policies = policies
    self.logger = logger
    let listener = listener
    hearsHome = home.onChange { name in listener.withLock { $0 }.call(name) }
  }

  /// Calls `body` when there is something new to pull from a database, on the thread that appended
  /// it. A long poll need not keep its database open: only this server appends to it, or its home
  /// tells of what others append.
  func onChange(_ body: @escaping @Sendable (DatabaseName) -> Void) {
    listener.withLock { $0.call = body }
  }

  /// Tells the listener that a database has new entries, or was compacted.
  func noteChange(of name: DatabaseName) { listener.withLock { $0 }.call(name) }

  /// How many databases are open.
  var openCount: Int { state.withLock { $0.rows.values.count { $0.isOpen } } }

  /// The names of the open databases.
  var openNames: [DatabaseName] {
    state.withLock { $0.rows.filter { $0.value.isOpen }.map(\.key) }
  }

  /// Whether fewer than half of the allowed databases are open, so that more can be compacted.
  var hasRoomToSpare: Bool { openCount < limits.openDatabases / 2 }

  /// The names of all databases; blocks.
  func allNames() -> [DatabaseName] { home.names() }

  /// Whether a database is open.
  func isOpen(_ name: DatabaseName) -> Bool { state.withLock { $0.rows[name]?.isOpen ?? false } }

  /// Whether a lease of a database might create it; blocks.
  func mightMake(_ name: DatabaseName) -> Bool { creates && !home.has(name) }

  /// The database of a name, opened if it is not; blocks.
  /// - Parameters:
  ///   - mayCreate: whether the caller may create it, if the server creates databases.
  ///   - isUse: whether this counts as a use after which an idle database stays open.
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
      if let opened, !opened.handler.isClosed { return opened.handler }
      // Another server has deleted it; its name may be that of a new one.
      opened?.handler.stopObserving(opened?.observation ?? 0)
      opened = nil
      state.withLock { $0.rows[name]?.isOpen = false }
      try makeRoom()
      let handler = try open(name, mayCreate: mayCreate && creates)
      opened = Opened(
        handler: handler,
        observation: handler.observe { [weak self] in
          if self?.hearsHome == false { self?.noteChange(of: name) }
        })
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
    // Every call ends here: one lookup, without copying the row.
    let now = ContinuousClock.now
    state.withLock { state in
      if state.rows[name]?.end(isUse: isUse, at: now) == false { state.rows[name] = nil }
    }
  }

  // MARK: Opening

  /// Most unreadable uploads of a database that are logged.
  private static let loggedUploads = 5

  private func open(_ name: DatabaseName, mayCreate: Bool) throws(Problem) -> SyncHandler {
    if let handler = try open(name, making: false) { return handler }
    guard mayCreate else {
      throw Problem(.forbidden, "there is no database of this name", status: .notFound)
    }
    do throws(TidemarkError) {
      guard try home.count() < limits.databases else {
        throw TidemarkError(.limitExceeded, "the server makes no more databases")
      }
    } catch {
      guard error.code == .limitExceeded else { throw failed(name, error) }
      throw Problem(.forbidden, error.message)
    }
    guard let handler = try open(name, making: true) else { throw Problem.notFound }
    logger.info("database made", metadata: ["database": "\(name)"])
    return handler
  }

  /// - Returns: nil when there is no such store.
  private func open(
    _ name: DatabaseName, making makes: Bool
  ) throws(Problem) -> SyncHandler? {
    do throws(TidemarkError) {
      let handler = try home.open(name, making: makes, options: options)
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

  /// Notes a failure to open, so that calls within `databaseRetry` fail without another attempt.
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

  /// Closes databases that were not used for `databaseIdle`; blocks.
  func closeIdle() {
    let end = ContinuousClock.now - limits.databaseIdle
    let idle = state.withLock { state in
      state.rows.filter { $0.value.isOpen && $0.value.uses == 0 && $0.value.lastUse < end }.keys
    }
    for name in idle { close(name) }
  }

  /// Closes all databases and opens none any more; blocks.
  func closeAll() {
    let names = state.withLock { state in
      state.isClosed = true
      return Array(state.rows.keys)
    }
    for name in names { close(name, evenInUse: true) }
    home.close()
  }

  private func close(_ name: DatabaseName, evenInUse: Bool = false) {
    guard let gate = state.withLock({ $0.rows[name]?.gate }) else { return }
    gate.opened.withLock { opened in
      // A lease that begins now waits at the gate, and opens the database again.
      let mayClose = state.withLock { state in
        guard let row = state.rows[name], row.isOpen, evenInUse || row.uses == 0 else {
          return false
        }
        state.rows[name]?.isOpen = false
        return true
      }
      guard mayClose, let open = opened else { return }
      opened = nil
      // Closing appends records, which must not wake long polls: they would open it again.
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
