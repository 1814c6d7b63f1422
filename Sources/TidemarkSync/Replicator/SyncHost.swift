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

  /// - Throws: `invalidArgument` when another one has it.
  func take(_ settings: HostState.Settings) throws(TidemarkError) {
    try toldHere { state in
      guard state.settings == nil else {
        throw TidemarkError(
          .invalidArgument,
          "the store has a replicator named \(state.name) already; give this one another name, or "
            + "let go of the other")
      }
      state.configure(settings)
    }
  }

  func release() { state.withLock { $0.configure(nil) } }

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
  func toldHere<R>(
    _ body: (inout HostState) throws -> R
  ) throws(TidemarkError) -> R {
    do { return try state.withLock(body) } catch { throw TidemarkError(sync: error) }
  }
}

struct HostState {
  /// The wishes of the replicator that has the host.
  struct Settings {
    var scope = SyncScope.everything
    var resolver = ConflictResolver.localWins
    var capabilities = PeerCapabilities()
    var attachments = AttachmentPolicy()
    var target = ""
  }

  let engine: Engine
  let name: String
  /// Nil where no replicator has the host: then the scope that was written down counts.
  private(set) var settings: Settings?
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
    reopen()
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
    var now = table ?? PendingTable(after: session.progress.frontier)
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
  private var last: [AnyHashable] = []
  private var count = 0

  /// - Throws: ``PeerError`` when it has been made too often.
  mutating func note(_ call: WireMessage) throws(PeerError) {
    let identity = call.identity
    count = identity == last ? count + 1 : 1
    last = identity
    guard count > Self.most else { return }
    self = CallRepeats()
    throw PeerError(.failed, "the peer gives the same answer again and again")
  }
}
