internal import Tidemark
internal import TidemarkEngine
internal import TidemarkREST
internal import TidemarkSync
internal import TidemarkTestKit

/// A store that replicates with a REST back end.
final class RestDevice {
  let index: Int
  let back: SimulatedBackEnd
  private let script: RestScript
  private let clock: ManualClock
  private(set) var disk: SimulatedFileSystem
  private(set) var engine: Engine
  private(set) var session: SyncSession
  private(set) var peer: RequestPeer
  /// The writes that it has, by number, in order: those of a copy come from the original.
  var writes: [Int] = []
  /// The number of the user who is signed in: requests have that user's token.
  private(set) var user: Int
  private var sender: RestSender { RestSender(device: index, user: user) }
  private var backups: [(disk: DiskSnapshot, writes: [Int], user: Int)] = []

  init(
    _ index: Int, _ script: RestScript, _ back: SimulatedBackEnd, _ clock: ManualClock,
    copyOf original: RestDevice? = nil, random: UInt64
  ) throws {
    (self.index, self.script, self.back, self.clock) = (index, script, back, clock)
    disk =
      original.map { SimulatedFileSystem(killedAt: $0.disk.snapshot(), seed: random) }
      ?? SimulatedFileSystem(seed: random)
    writes = original?.writes ?? []
    user = original?.user ?? index
    let sender = RestSender(device: index, user: user)
    (engine, session, peer) = try Self.open(disk, script, back, clock, random, sender)
  }

  deinit { disk.kill() }

  private static func open(
    _ disk: SimulatedFileSystem, _ script: RestScript, _ back: SimulatedBackEnd,
    _ clock: ManualClock, _ random: UInt64, _ sender: RestSender
  ) throws -> (Engine, SyncSession, RequestPeer) {
    let engine = try Engine.open(
      "/store", configuration: .campaign,
      environment: EngineEnvironment(
        fileSystem: disk, clock: clock, random: SeededRandom(seed: random)))
    let names = Lock<KnownAliases?>(nil)
    let peer = RestClosures(back, script.traits, names, sender).peer(batch: script.batch, clock)
    func begin() throws -> SyncSession {
      try SyncSession(
        ReplicationLog(engine), name: "rest", resolver: resolver(script.resolver, back),
        capabilities: peer.capabilities)
    }
    var session = try begin()
    if try session.finishSignOut() { session = try begin() }
    let aliases = try session.knownAliases()
    names.withLock { $0 = aliases }
    return (engine, session, peer)
  }

  /// Edits survive deletes; of two edits the local, the remote or the later one wins.
  private static func resolver(_ number: Int, _ back: SimulatedBackEnd) -> ConflictResolver {
    ConflictResolver(deleteEdit: .resolve) { conflict in
      let winsHere =
        switch (conflict.local, conflict.remote) {
        case (_?, nil): true
        case (nil, _): false
        case (_?, _?):
          switch number % 3 {
          case 0: true
          case 1: false
          default: conflict.remoteTime.map { conflict.localTime > $0 } ?? true
          }
        }
      if !winsHere, let local = conflict.local {
        back.state.withLock { $0.ledger.drop(String(decoding: local.value, as: UTF8.self)) }
      }
      return winsHere ? .local : .remote
    }
  }

  // MARK: Accidents

  func restart(_ survival: Survival, random: UInt64) throws {
    if survival == .keepAll { disk.kill() } else { disk.powerCut() }
    disk.restart(keeping: survival)
    (engine, session, peer) = try Self.open(disk, script, back, clock, random, sender)
  }

  func backUp() { backups.append((disk.snapshot(), writes, user)) }

  func restore(_ number: Int, random: UInt64) throws {
    guard !backups.isEmpty else { return }
    let backup = backups[number % backups.count]
    disk.kill()
    disk = SimulatedFileSystem(killedAt: backup.disk, seed: random)
    (writes, user) = (backup.writes, backup.user)
    (engine, session, peer) = try Self.open(disk, script, back, clock, random, sender)
  }

  /// Ends what a user has here.
  /// - Parameter user: who signs in.
  /// - Returns: false when something is unsent that is not given up.
  func signOut(for user: Int, isForced: Bool, dies: Bool, random: UInt64) throws -> Bool {
    do { try session.beginSignOut(keeping: [], isForced: isForced) } catch is UnsentChangesError {
      return false
    }
    (self.user, writes) = (user, [])
    if dies { disk.kill() } else { _ = try session.finishSignOut() }
    try restart(.keepAll, random: random)
    return true
  }

  // MARK: Work

  /// Commits writes as one batch.
  /// - Returns: their sequences.
  func commit(_ writes: [RestWrite], after target: UInt64?) throws -> [UInt64] {
    var batch = OperationBatch()
    for write in writes {
      var attributes = EntryAttributes()
      if write.kind == .group { attributes.atomicGroup = OperationBatch.unnumberedGroup }
      if let target { attributes.after = [target] }
      try batch.add(
        write.kind == .delete ? .delete : .put, key: Array(write.key.utf8).rawSpan,
        value: Array(write.value.utf8).rawSpan, attributes: attributes)
    }
    let last = try engine.commit(batch, durability: .durable).lastSeen
    return (1...UInt64(writes.count)).map { last - UInt64(writes.count) + $0 }
  }

  /// The values of all keys.
  func contents() throws -> [String: String] {
    var contents: [String: String] = [:]
    let scan = EngineScan(engine.reader, ScanQuery(prefix: []), view: try engine.reader.view())
    while true {
      let page = try scan.nextPage(limit: 100)
      if page.isEmpty { return contents }
      for row in page {
        let value = try engine.reader.withValue(forKey: row.key.rawSpan) {
          (value, _) throws(TidemarkError) in [UInt8](copying: value)
        }
        contents[String(decoding: row.key, as: UTF8.self)] = String(
          decoding: value ?? [], as: UTF8.self)
      }
    }
  }

  /// Makes one call.
  /// - Returns: false when there was nothing to do, or it failed.
  func call() async throws -> Bool {
    guard let call = try session.next() else {
      // A user who is asked whether much may go says yes.
      guard session.progress.resync?.purge == .undecided else { return false }
      try session.decidePurge(true)
      return true
    }
    do {
      let answer = try await peer.answer(to: call)
      if back.state.withLock({ $0.isDead }) { return false }
      try session.receive(answer)
      return true
    } catch let error as PeerError {
      if back.state.withLock({ $0.isDead }) { return false }
      back.state.withLock { $0.ledger.narrate("  \(error)") }
      try session.failed(error)
      return false
    }
  }
}
