internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The session of one peer name in one store, for all who need it: a replicator, and whoever asks
/// what is pending. It works on a thread of its own, one thing at a time.
final class SyncHost: Sendable {
  let engine: Engine
  let name: String
  /// Raised after everything that changes what is known of the peer.
  let changed = Signal()
  private let state: Lock<HostState>
  /// Nil where there are to be no threads.
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

  /// The host of a name, which lives as long as somebody has it.
  static func of(_ store: Store, name: String) throws(TidemarkError) -> SyncHost {
    try hosts.withLock { (hosts: inout [Name: Reference]) throws(TidemarkError) in
      // A host keeps its engine, so that an identifier is not given to another one meanwhile.
      let key = Name(engine: ObjectIdentifier(store.engine), name: name)
      if let host = hosts[key]?.host { return host }
      hosts = hosts.filter { $0.value.host != nil }
      let host = try SyncHost(store.engine, name: name, usesThreads: store.usesThreads)
      hosts[key] = Reference(host: host)
      return host
    }
  }

  /// - Returns: the number of the owner, to release it with.
  /// - Throws: `invalidArgument` when another one has it.
  func take(_ settings: HostState.Settings) throws(TidemarkError) -> Int {
    try toldHere { state in
      guard state.settings == nil else {
        throw TidemarkError(
          .invalidArgument,
          "the store has a replicator named \(state.name) already; give this one another name, or "
            + "let go of the other")
      }
      state.configure(settings)
      return state.owner
    }
  }

  func release(_ owner: Int) { state.withLock { $0.release(owner) } }

  // MARK: Working

  /// Does something with the session, on the host's thread.
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

  /// The same for programs: what fails is told as a `TidemarkError`.
  func told<R: Sendable>(
    _ body: @escaping @Sendable (inout HostState) throws -> R
  ) async throws(TidemarkError) -> R {
    try await TidemarkError.asSyncError { try await perform(body) }
  }

  /// Does something with the session meanwhile, on the host's thread; nothing where it has none.
  func performAside(_ body: @escaping @Sendable (inout HostState) -> Void) {
    thread?.add { [state] in state.withLock { body(&$0) } }
  }

  /// Likewise, on the calling thread, which waits.
  func toldHere<R>(_ body: (inout HostState) throws -> R) throws(TidemarkError) -> R {
    do { return try state.withLock(body) } catch { throw TidemarkError(sync: error) }
  }
}

struct HostState {
  /// The wishes of the replicator that has the host.
  struct Settings {
    var scope = SyncScope.everything
    var resolver = ConflictResolver.byPolicy
    var capabilities = PeerCapabilities()
    var attachments = AttachmentPolicy()
    var target = ""
  }

  let engine: Engine
  let name: String
  /// Nil where no replicator has the host: then the scope that was written down counts.
  private(set) var settings: Settings?
  /// The number of the replicator that has the host, or had it last.
  private(set) var owner = 0
  private var opened: SyncSession?
  /// How many sessions there have been: answers to the calls of an earlier one do not count.
  private(set) var sessions = 0
  private var earlier = SyncTotals()
  private var table: PendingTable?
  /// The facts known of the peer, and when they were written down.
  var status = PeerStatus()
  var recorded: PeerStatus?
  /// The use of a day's bytes, and what the log says of it; nil where nobody has asked.
  var ledger: BudgetLedger?
  var recordedLedger: BudgetLedger?
  /// The batch that was counted last.
  var chargedBatch: BatchID?
  /// Repeated calls, which tell a peer that does not go on.
  var repeats = CallRepeats()

  var log: ReplicationLog { ReplicationLog(engine) }

  init(_ engine: Engine, name: String) {
    self.engine = engine
    self.name = name
  }

  mutating func configure(_ settings: Settings?) {
    // The next session reads from the log what this one knows.
    try? opened?.writeDown()
    self.settings = settings
    owner += 1
    reopen()
  }

  /// Detaches a replicator, unless another one has taken the host since.
  mutating func release(_ owner: Int) { if owner == self.owner { configure(nil) } }

  /// - Throws: `closed` for a replicator that does not have the host any more.
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

  /// The work that has been done since the host was made.
  var totals: SyncTotals { earlier + (opened?.totals ?? SyncTotals()) }

  /// The session, read from the log if it is not there.
  mutating func session() throws(TidemarkError) -> SyncSession {
    if let opened { return opened }
    var session = try newSession(settings ?? Settings())
    if engine.configuration.access != .readOnly,
      try session.finishSignOut()
    {
      session = try newSession(settings ?? Settings())
    }
    // One that cannot be read counts for nothing.
    if let value = try session.records.table.value(of: .peerStatus, key: session.name),
      let known = try? PeerStatus(decoding: value.rawSpan)
    {
      status = known
      recorded = known
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

  /// Lets go of the session, whose state may not be what the log says: the next one reads it.
  mutating func reopen() {
    earlier = totals
    opened = nil
    table = nil
  }

  /// The pending entries now; takes up what was written since it was asked last.
  mutating func pending() throws(TidemarkError) -> PendingTable {
    let session = try session()
    var now = table ?? PendingTable(after: session.outbox.frontier)
    // While it is changed nobody else has it, so that nothing is copied.
    table = nil
    try now.refresh(session)
    table = now
    return now
  }
}

/// Counts calls that are made again and again without getting anywhere.
struct CallRepeats {
  private static let most = 3
  private var last: WireMessage?
  private var count = 0

  /// - Throws: ``PeerError`` when it has been made too often.
  mutating func note(_ call: WireMessage) throws(PeerError) {
    let isSame =
      switch (call, last) {
      // A peer can make us change names, and a budget how much is asked for.
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
  /// The calls that are allowed now, nil for none, and why not all are.
  mutating func permit(
    _ budget: SyncBudget?
  ) throws(TidemarkError) -> (gate: SyncGate?, reason: HoldReason?) {
    guard let budget else { return (SyncGate(), nil) }
    let condition = budget.network?.condition ?? .unrestricted
    guard let bytesPerDay = budget.bytesPerDay else {
      return budget.permit(on: condition, remaining: nil, until: .init(milliseconds: 0))
    }
    let now = engine.environment.clock.now().sinceEpoch
    var ledger = try readLedger()
    let hasChanged = ledger.renew(now)
    self.ledger = ledger
    if hasChanged { try record(ledger) }
    return budget.permit(
      on: condition, remaining: ledger.remaining(of: bytesPerDay),
      until: Timestamp(milliseconds: Int64(clamping: ledger.end(now))))
  }

  /// Counts a call that is about to be made, or an answer.
  mutating func charge(
    sent: Int = 0, taken: Int = 0, _ budget: SyncBudget?
  ) throws(TidemarkError) {
    guard let budget, let bytesPerDay = budget.bytesPerDay else { return }
    let bytes = sent + (budget.counted == .both ? taken : 0)
    guard bytes > 0 else { return }
    var ledger = try readLedger()
    ledger.charge(bytes, at: engine.environment.clock.now().sinceEpoch)
    self.ledger = ledger
    let rounded = ledger.roundedUp(bytesPerDay)
    guard let recordedLedger, recordedLedger.start == rounded.start,
      recordedLedger.used >= rounded.used
    else { return try record(rounded) }
  }

  /// Writes down what is used exactly, before the replicator ends.
  mutating func recordLedger() throws(TidemarkError) {
    guard try session().progress.feed != nil else { return }
    if let ledger, ledger != recordedLedger { try record(ledger) }
  }

  private mutating func readLedger() throws(TidemarkError) -> BudgetLedger {
    if let ledger { return ledger }
    // A ledger that cannot be read counts for nothing, as one that was never written.
    let read =
      try session().records.table.value(of: .peerBudget, key: Array(name.utf8))
      .flatMap { try? BudgetLedger(decoding: $0.rawSpan) }
    recordedLedger = read
    ledger = read
    return read ?? BudgetLedger()
  }

  private mutating func record(_ value: BudgetLedger) throws(TidemarkError) {
    try session().records.record(.peerBudget, value.encoded)
    recordedLedger = value
  }
}

/// The facts that a store knows of a peer besides its progress, for people: a record in the log,
/// written now and then. Nothing depends on it but what is shown, the scope that counts where no
/// replicator gives one, and how long the peer is left alone. Its bytes are in
/// `HowReplicationWorks.md`.
struct PeerStatus: Sendable, Hashable {
  var target = ""
  var scope = SyncScope.everything
  var head: UInt64 = 0
  var lastSuccess: UInt64 = 0
  var leaseEnds: UInt64 = 0
  var errorTime: UInt64 = 0
  var error = ""
  /// Until when the peer is left alone, since it has asked for that; 0 for no such time.
  var patienceEnds: UInt64 = 0
}

extension PeerStatus: StoredRecord {
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    var version: UInt8 = 2
    try record.u8(&version)
    guard (1...2).contains(version) else {
      throw FormatError("written by another version", isNewer: true)
    }
    try record.text(&target)
    try scope.code(&record)
    try record.varint(&head)
    try record.varint(&lastSuccess)
    try record.varint(&leaseEnds)
    try record.varint(&errorTime)
    try record.text(&error)
    // The first version did not have it.
    if version > 1 { try record.varint(&patienceEnds) }
  }
}

extension HostState {
  /// A record is written at most so often when only times have changed, in milliseconds.
  private static let recordInterval: UInt64 = 60_000

  mutating func recordAnswer(_ answer: WireMessage, _ session: SyncSession) {
    let now = engine.environment.clock.now().sinceEpoch
    status.lastSuccess = now
    status.error = ""
    status.errorTime = 0
    status.patienceEnds = 0
    if let head = session.range?.head { status.head = head }
    if case .helloAnswer(let hello) = answer {
      status.leaseEnds =
        hello.isLeaseExpired ? 1 : hello.leaseSeconds.map { now + UInt64($0) * 1000 } ?? 0
    }
  }

  /// Writes down what is known of the peer, unless that was done just now. One that has never
  /// answered leaves nothing behind: it may be an address with a slip.
  mutating func recordStatus() throws(TidemarkError) {
    let session = try session()
    guard session.progress.feed != nil else { return }
    status.scope = session.scope
    if let target = settings?.target, !target.isEmpty { status.target = target }
    let age = status.lastSuccess - min(recorded?.lastSuccess ?? 0, status.lastSuccess)
    if let recorded, recorded.target == status.target, recorded.scope == status.scope,
      recorded.error == status.error, recorded.patienceEnds == status.patienceEnds,
      age < Self.recordInterval
    {
      return
    }
    try session.records.record(.peerStatus, status.encoded)
    recorded = status
  }
}
