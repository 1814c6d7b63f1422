internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Owns the session of one peer name in one store and serializes its uses, by the replicator and by
/// reads of pending entries. Work is done on a thread of its own.
final class SyncHost: Sendable {
  let engine: Engine
  let name: String
  /// Raised after every change of the session's state.
  let changed = Signal()
  private let state: Lock<HostState>
  /// Nil if the store uses no threads.
  private let thread: JobThread?

  private init(_ engine: Engine, name: String, usesThreads: Bool) throws(TidemarkError) {
    self.engine = engine
    self.name = name
    state = Lock(HostState(engine, name: name))
    thread = usesThreads ? try JobThread(name: "tidemark-sync") : nil
  }

  // MARK: One for each name

  private struct Name: Hashable {
    var engine: ObjectIdentifier
    var name: String
  }

  private struct Reference {
    weak var host: SyncHost?
  }

  private static let hosts = Lock<[Name: Reference]>([:])

  /// The only host of a name, which lives as long as a reference to it.
  static func of(_ store: Store, name: String) throws(TidemarkError) -> SyncHost {
    try hosts.withLock { (hosts: inout [Name: Reference]) throws(TidemarkError) in
      // A host retains its engine, so an identifier in the table is not another engine's.
      let key = Name(engine: ObjectIdentifier(store.engine), name: name)
      if let host = hosts[key]?.host { return host }
      hosts = hosts.filter { $0.value.host != nil }
      let host = try SyncHost(store.engine, name: name, usesThreads: store.usesThreads)
      hosts[key] = Reference(host: host)
      return host
    }
  }

  /// Makes a replicator the owner of the session.
  /// - Returns: the number of the owner, to release it with.
  /// - Throws: `invalidArgument` if another replicator owns it.
  func take(_ settings: HostState.Settings) throws(TidemarkError) -> Int {
    try performHere { state in
      guard state.settings == nil else {
        throw TidemarkError(
          .invalidArgument,
          "the store has a replicator named \(state.name) already; give this one another name, or "
            + "release the other")
      }
      state.configure(settings)
      return state.owner
    }
  }

  func release(_ owner: Int) { state.withLock { $0.release(owner) } }

  // MARK: Working

  /// Runs `body` with the session's state on the host's thread.
  func perform<R: Sendable>(
    _ body: @escaping @Sendable (inout HostState) throws -> R
  ) async throws -> R {
    guard let thread else { return try state.withLock(body) }
    return try await withCheckedThrowingContinuation { continuation in
      thread.add { [state] in
        continuation.resume(with: Result { try state.withLock(body) })
      }
    }
  }

  /// The same for public API: every error is a `TidemarkError`.
  func performPublic<R: Sendable>(
    _ body: @escaping @Sendable (inout HostState) throws -> R
  ) async throws(TidemarkError) -> R {
    try await TidemarkError.asSyncError { try await perform(body) }
  }

  /// Runs `body` on the host's thread without waiting for it; does nothing without a thread.
  func performLater(_ body: @escaping @Sendable (inout HostState) -> Void) {
    thread?.add { [state] in state.withLock { body(&$0) } }
  }

  /// The same on the calling thread, which blocks.
  func performHere<R>(_ body: (inout HostState) throws -> R) throws(TidemarkError) -> R {
    do { return try state.withLock(body) } catch { throw TidemarkError(sync: error) }
  }
}

/// The state of a host: its session, opened on demand, the owner's settings and the budget's use.
struct HostState {
  /// The options of the replicator that owns the host.
  struct Settings {
    var scope = SyncScope.everything
    var resolver = ConflictResolver.byPolicy
    var capabilities = PeerCapabilities()
    var attachments = AttachmentPolicy()
    var target = ""
  }

  let engine: Engine
  let name: String
  /// Nil if no replicator owns the host: then the saved scope is used.
  private(set) var settings: Settings?
  /// The number of the replicator that owns the host, or did last.
  private(set) var owner = 0
  private var opened: SyncSession?
  /// The number of sessions so far: answers to requests of an earlier one are dropped.
  private(set) var sessions = 0
  private var earlier = SyncTotals()
  private var table: PendingTable?
  /// The peer's status for people; `recorded` is the one saved last.
  var status = PeerStatus()
  var recorded: PeerStatus?
  /// The budget's use of the day; the status has what was saved of it.
  var ledger = BudgetLedger()
  /// The batch that the budget counted last.
  var chargedBatch: BatchID?
  /// Counts repeated calls, to detect a peer that makes no progress.
  var repeats = CallRepeats()

  var log: ReplicationLog { ReplicationLog(engine) }

  init(_ engine: Engine, name: String) {
    self.engine = engine
    self.name = name
  }

  mutating func configure(_ settings: Settings?) {
    // The next session reads its state from the log, so this one saves it.
    try? opened?.writeDown()
    self.settings = settings
    owner += 1
    reopen()
  }

  /// Detaches a replicator, unless another one owns the host by now.
  mutating func release(_ owner: Int) { if owner == self.owner { configure(nil) } }

  /// - Throws: `closed` for a replicator that does not own the host any more.
  func check(_ owner: Int) throws(TidemarkError) {
    guard owner == self.owner, settings != nil else {
      throw TidemarkError(.closed, "the user of this replicator has signed out; make another one")
    }
  }

  mutating func change(_ scope: SyncScope) throws {
    try opened?.writeDown()
    settings?.scope = scope
    reopen()
  }

  /// The totals since the host was made.
  var totals: SyncTotals { earlier + (opened?.totals ?? SyncTotals()) }

  /// The session; it is read from the log if none is open.
  mutating func session() throws(TidemarkError) -> SyncSession {
    if let opened { return opened }
    var session = try newSession(settings ?? Settings())
    if engine.configuration.access != .readOnly,
      try session.finishSignOut()
    {
      session = try newSession(settings ?? Settings())
    }
    // An unreadable status is ignored.
    if let value = try session.records.table.value(of: .peerStatus, key: session.name),
      let known = try? PeerStatus(decoding: value.rawSpan)
    {
      if recorded == nil { ledger = known.budget }
      (status, recorded) = (known, known)
      if settings == nil, !known.scope.isEverything {
        session = try newSession(Settings(scope: known.scope))
      }
    }
    opened = session
    sessions += 1
    return session
  }

  private func newSession(_ settings: Settings) throws(TidemarkError) -> SyncSession {
    let session = try SyncSession(
      log, name: name, scope: settings.scope, resolver: settings.resolver,
      capabilities: settings.capabilities)
    session.attachmentPolicy = settings.attachments
    return session
  }

  /// Drops the session, whose state may differ from the log: the next one reads the log.
  mutating func reopen() {
    earlier = totals
    opened = nil
    table = nil
  }

  /// The table of pending entries, updated by the entries written since the last call.
  mutating func pending() throws(TidemarkError) -> PendingTable {
    let session = try session()
    var now = table ?? PendingTable(after: session.outbox.frontier)
    // Unique during the update, so that it is not copied.
    table = nil
    try now.refresh(session)
    table = now
    return now
  }
}

/// Counts equal calls in a row: a peer whose answers change nothing would be called for ever.
struct CallRepeats {
  private static let most = 3
  private var last: WireMessage?
  private var count = 0

  /// - Throws: ``PeerError`` after too many equal calls.
  mutating func note(_ call: WireMessage) throws(PeerError) {
    let isSame =
      switch (call, last) {
      // The replica id of a hello, or the limit of a pull, may differ from call to call.
      case (.helloRequest, .helloRequest): true
      case (.pullRequest(let now), .pullRequest(let before)): now.after == before.after
      default: call == last
      }
    count = isSame ? count + 1 : 1
    last = call
    guard count > Self.most else { return }
    self = CallRepeats()
    throw PeerError(.failed, "the peer gives the same answer again and again")
  }
}

extension HostState {
  /// The calls that the budget allows now, nil for none; and why not all are.
  mutating func permit(
    _ budget: SyncBudget?
  ) throws(TidemarkError) -> (gate: SyncGate?, reason: HoldReason?) {
    guard let budget else { return (SyncGate(), nil) }
    let condition = budget.network?.condition ?? .unrestricted
    guard let bytesPerDay = budget.bytesPerDay else {
      return budget.permit(on: condition, remaining: nil, until: .init(milliseconds: 0))
    }
    // The session's opening reads the ledger.
    _ = try session()
    let now = engine.environment.clock.now().sinceEpoch
    if ledger.renew(now) {
      status.budget = ledger
      try recordStatus()
    }
    return budget.permit(
      on: condition, remaining: ledger.remaining(of: bytesPerDay),
      until: Timestamp(milliseconds: Int64(clamping: ledger.end(now))))
  }

  /// Charges the budget with a request before it is sent, or with an answer.
  mutating func charge(
    sent: Int = 0, taken: Int = 0, _ budget: SyncBudget?
  ) throws(TidemarkError) {
    guard let budget, let bytesPerDay = budget.bytesPerDay else { return }
    let bytes = sent + (budget.counted == .both ? taken : 0)
    guard bytes > 0 else { return }
    ledger.charge(bytes, at: engine.environment.clock.now().sinceEpoch)
    let rounded = ledger.roundedUp(bytesPerDay)
    guard status.budget.start != rounded.start || status.budget.used < rounded.used else { return }
    status.budget = rounded
    try recordStatus()
  }
}

/// What a store knows of a peer besides its progress, for people: a record in the log, written now
/// and then. It is shown, and three fields are used: the scope if no replicator gives one, the end
/// of the peer's `Retry-After`, and the budget. Its bytes are in `HowReplicationWorks.md`.
struct PeerStatus: Sendable, Hashable {
  var target = ""
  var scope = SyncScope.everything
  var head: UInt64 = 0
  var lastSuccess: UInt64 = 0
  var leaseEnds: UInt64 = 0
  var errorTime: UInt64 = 0
  var error = ""
  /// The end of the peer's `Retry-After`, before which it is not called; 0 for none.
  var retryAfterEnds: UInt64 = 0
  /// The use of the budget's day, rounded up.
  var budget = BudgetLedger()
}

extension PeerStatus: StoredRecord {
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(3)
    try record.text(&target)
    try scope.code(&record)
    try record.varint(&head)
    try record.varint(&lastSuccess)
    try record.varint(&leaseEnds)
    try record.varint(&errorTime)
    try record.text(&error)
    try record.varint(&retryAfterEnds)
    try budget.code(&record)
  }
}

extension HostState {
  /// The least milliseconds between two records if only times have changed.
  private static let recordInterval: UInt64 = 60_000

  mutating func recordAnswer(_ answer: WireMessage, _ session: SyncSession) {
    let now = engine.environment.clock.now().sinceEpoch
    status.lastSuccess = now
    status.error = ""
    status.errorTime = 0
    status.retryAfterEnds = 0
    if let head = session.range?.head { status.head = head }
    if case .helloAnswer(let hello) = answer {
      status.leaseEnds =
        hello.isLeaseExpired ? 1 : hello.leaseSeconds.map { now + UInt64($0) * 1000 } ?? 0
    }
  }

  /// Saves the status, unless that was done just now. A peer that has never answered gets no
  /// record: its address may be a typing error.
  mutating func recordStatus() throws(TidemarkError) {
    let session = try session()
    guard session.progress.feed != nil else { return }
    status.scope = session.scope
    if let target = settings?.target, !target.isEmpty { status.target = target }
    let age = status.lastSuccess - min(recorded?.lastSuccess ?? 0, status.lastSuccess)
    if let recorded, recorded.target == status.target, recorded.scope == status.scope,
      recorded.error == status.error, recorded.retryAfterEnds == status.retryAfterEnds,
      recorded.budget == status.budget, age < Self.recordInterval
    {
      return
    }
    try session.records.record(.peerStatus, status.encoded())
    recorded = status
  }

  mutating func forgetStatus() { (status, recorded, ledger) = (PeerStatus(), nil, BudgetLedger()) }
}
