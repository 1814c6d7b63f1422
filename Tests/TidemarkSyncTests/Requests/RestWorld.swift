import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// A back end in memory that keeps idempotency keys, as it should.
final class BackEnd: Sendable {
  struct State {
    /// Every change that was taken, in order; the token is its count.
    var log: [(key: Key, state: RequestState, idempotencyKey: String)] = []
    var items: [Key: RequestState] = [:]
    var answers: [String: RequestOutcome] = [:]
    /// All requests, also those that were answered as before.
    var requests: [String] = []
    var fetches: [String?] = []
    /// Says what to answer instead of looking.
    var trouble: (@Sendable (RequestChange) throws -> RequestOutcome?)?
    /// Keys for which a change is a conflict unless it was sent again for that.
    var contested: Set<Key> = []
    var tellsKeys = true
    var keepsKeys = true
    /// Whether the list has every version of a key, or only the last.
    var listsVersions = true
  }

  let state = Lock(State())

  func send(_ change: RequestChange) throws -> RequestOutcome {
    try state.withLock { (state: inout State) throws in
      state.requests.append(change.idempotencyKey)
      if let answer = try state.trouble?(change) { return answer }
      if state.keepsKeys, let answer = state.answers[change.idempotencyKey] { return answer }
      let outcome: RequestOutcome
      if state.contested.contains(change.key), !isSalted(change.idempotencyKey) {
        outcome = .conflict(state.items[change.key])
      } else {
        let held: RequestState = change.kind == .put ? .value(change.content) : .absent
        state.items[change.key] = held
        state.log.append((change.key, held, change.idempotencyKey))
        outcome = .applied
      }
      state.answers[change.idempotencyKey] = outcome
      return outcome
    }
  }

  func fetch(_ token: String?) -> RequestPage {
    state.withLock { state in
      state.fetches.append(token)
      let start = token.flatMap { Int($0) } ?? 0
      let newest = Dictionary(state.log.indices.map { (state.log[$0].key, $0) }) { $1 }
      let rows = state.log.indices.dropFirst(start).filter {
        state.listsVersions || newest[state.log[$0].key] == $0
      }
      let page = rows.prefix(3)
      return RequestPage(
        changes: page.map { index in
          let row = state.log[index]
          return RequestPage.Change(
            key: row.key, state: row.state,
            idempotencyKey: state.tellsKeys ? row.idempotencyKey : nil)
        }, token: String(page.last.map { $0 + 1 } ?? start), hasMore: rows.count > page.count)
    }
  }

  /// Somebody else's change.
  func put(_ key: String, _ value: String) {
    state.withLock { state in
      let held = RequestState.value(SyncContent(value: Array(value.utf8)))
      state.items[Key(key)] = held
      state.log.append((Key(key), held, "web-\(state.log.count)"))
    }
  }

  func value(_ key: String) -> String? {
    guard case .value(let content, _)? = state.withLock({ $0.items[Key(key)] }) else {
      return nil
    }
    return String(decoding: content.value, as: UTF8.self)
  }
}

/// Whether a change was sent upon a conflict.
func isSalted(_ idempotencyKey: String) -> Bool {
  IdempotencyKey(idempotencyKey).map { $0.salt != 0 } ?? false
}

/// A store that replicates with a back end, and that can be killed.
final class RestDevice {
  private let disk: SimulatedFileSystem
  private let resolver: ConflictResolver
  private let makePeer: () -> RequestPeer
  private var openings: UInt64 = 0
  let clock = ManualClock()
  private(set) var engine: Engine
  private(set) var session: SyncSession
  private(set) var peer: RequestPeer

  convenience init(
    _ back: BackEnd, seed: UInt64 = 1, resolver: ConflictResolver = .localWins,
    canFetch: Bool = true
  ) throws {
    try self.init(seed: seed, resolver: resolver) {
      let fetch: RequestPeer.Fetch = { back.fetch($0) }
      return RequestPeer(
        named: "https://api.example.org", options: RequestPeer.Options(changesPerBatch: 4),
        send: { try back.send($0) }, fetch: canFetch ? fetch : nil)
    }
  }

  /// - Parameter snapshot: the disk of another one, or of a backup.
  init(
    seed: UInt64 = 1, resolver: ConflictResolver = .localWins, disk snapshot: DiskSnapshot? = nil,
    makePeer: @escaping () -> RequestPeer
  ) throws {
    self.resolver = resolver
    self.makePeer = makePeer
    disk =
      snapshot.map { SimulatedFileSystem(killedAt: $0, seed: seed) }
      ?? SimulatedFileSystem(seed: seed)
    (engine, session, peer) = try Self.open(disk, seed << 20, makePeer(), resolver, clock)
  }

  private static func open(
    _ disk: SimulatedFileSystem, _ seed: UInt64, _ peer: RequestPeer, _ resolver: ConflictResolver,
    _ clock: ManualClock
  ) throws -> (Engine, SyncSession, RequestPeer) {
    let engine = try Engine.open(
      "/store", configuration: .campaign,
      environment: EngineEnvironment(
        fileSystem: disk, clock: clock, random: SeededRandom(seed: seed)))
    return (
      engine,
      try SyncSession(
        ReplicationLog(engine), name: "rest", resolver: resolver, capabilities: peer.capabilities),
      peer
    )
  }

  func snapshot() -> DiskSnapshot { disk.snapshot() }

  /// The process dies and another one begins.
  func restart() throws {
    disk.kill()
    disk.restart(keeping: .keepAll)
    openings += 1
    (engine, session, peer) = try Self.open(
      disk, 77 << 20 + openings, makePeer(), resolver, clock)
  }

  func put(_ key: String, _ value: String) throws {
    var batch = OperationBatch()
    try batch.add(.put, key: Array(key.utf8).rawSpan, value: Array(value.utf8).rawSpan)
    try engine.commit(batch, durability: .durable)
  }

  func delete(_ key: String) throws {
    var batch = OperationBatch()
    try batch.add(.delete, key: Array(key.utf8).rawSpan)
    try engine.commit(batch, durability: .durable)
  }

  func get(_ key: String) throws -> String? { try SyncWorld.get(engine, key) }

  /// Makes one call.
  /// - Parameters:
  ///   - losesAnswer: whether the answer is lost.
  ///   - toPush: whether it is lost if the call is a push.
  /// - Returns: false when there was nothing to do.
  func step(losesAnswer: Bool = false, toPush: Bool = false) async throws -> Bool {
    guard let call = try session.next() else { return false }
    var losesAnswer = losesAnswer
    if call.kind == .pushRequest { losesAnswer = losesAnswer || toPush }
    do {
      let answer = try await peer.answer(to: call)
      if losesAnswer { session.disconnect() } else { try session.receive(answer) }
    } catch is PeerError { session.disconnect() }
    return true
  }

  /// Works until there is nothing to do, however long changes rest.
  func settle() async throws {
    session.disconnect()
    for _ in 0..<500 where try await !step() {
      guard let rest = session.timeToRetry else { return }
      clock.advance(by: rest + .seconds(1))
      session.disconnect()
    }
    Issue.record("no end of calls")
  }
}
