internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// Several servers over one database of SQL, whose calls interleave within each other, while
/// transactions fail and primaries come and go beneath the servers.
///
/// A batch counts once, and only upon what it was judged by; a position stands for one entry for
/// ever; with a synchronous standby nothing is lost that somebody was told of; and in the end, when
/// nothing happens any more, all replicas hold what the feed does.
@_spi(Campaigns) public struct ClusterSimulation: Sendable {
  /// Decides everything.
  public var seed: UInt64
  /// How many steps there are; a call of some feed each, or something that befalls the database.
  public var steps: Int

  /// A simulation of what a seed stands for.
  public init(seed: UInt64, steps: Int = 400) {
    self.seed = seed
    self.steps = steps
  }

  /// Runs it.
  /// - Returns: how often what happened.
  /// - Throws: what was broken, as text.
  @discardableResult
  public func run() throws -> SyncSimulationReport {
    let world = try ClusterWorld(seed: seed)
    defer { world.end() }
    do {
      for _ in 0..<steps { try world.step() }
      try world.finish()
    } catch { throw BrokenPromise("seed \(seed): \(error)") }
    return world.report
  }
}

/// The servers and replicas, and what must be true of them.
final class ClusterWorld {
  private struct Server {
    var feed: DatabaseFeed
    var handler: SyncHandler
    var call: Call?
  }

  /// A call that may have paused.
  private struct Call {
    var number: Int
    /// Who waits for its answer; nil for nobody.
    var replica: Int?
    var result: Lock<Result<WireMessage, PeerError>?>
  }

  /// What appends and answers have told, by all servers.
  private struct Told {
    var entries: [FeedPosition: OperationID] = [:]
    var failure: String?
  }

  private let calls = Interleaver()
  private let database: SimulatedDatabase
  private var generator: SeededGenerator
  private var servers: [Server] = []
  private var replicas: [ClusterReplica] = []
  private let told = Lock(Told())
  /// A compaction under way.
  private var compaction: Int?
  private(set) var report = SyncSimulationReport()

  init(seed: UInt64) throws(TidemarkError) {
    generator = SeededGenerator(seed: seed &* 17 &+ 3)
    database = try SimulatedDatabase(seed: seed, calls: calls)
    for _ in 0..<2 + generator.int(below: 3) { servers.append(try newServer()) }
    replicas = (0..<3 + generator.int(below: 2)).map { ClusterReplica($0) }
  }

  private func newServer() throws(TidemarkError) -> Server {
    let feed = DatabaseFeed(database) { [told] batch, view, before in
      let failure = Self.fault(of: batch, view, before)
      told.withLock { $0.failure = $0.failure ?? failure }
    }
    return Server(
      feed: feed,
      handler: try SyncHandler(feed: feed, options: SyncHandler.Options(lease: nil)))
  }

  /// The reason why a batch must not have been appended.
  private static func fault(
    of batch: DecidedBatch, _ view: FeedView, _ before: FeedView
  ) -> String? {
    let request = batch.request
    if before.mark.mark.number + 1 != request.number { return "a batch out of its turn" }
    if !before.range.contains(request.knownHead) { return "a batch formed by a lost end" }
    if before.policies.revision != view.policies.revision { return "a batch by other policies" }
    for (entry, state) in zip(batch.entries, before.states) {
      guard case .applies(let revision?) = entry.kind else { continue }
      guard revision == (state?.isDeleted == false ? state?.revision : 0) else {
        return "a change upon another state"
      }
    }
    return nil
  }

  // MARK: Steps

  func step() throws {
    report.note(database.primary.feed.log.head)
    switch generator.int(below: 100) {
    case 0..<30: try beginCall()
    case 30..<80: try goOn()
    case 80..<84: try beginLateBatch()
    case 84..<88:
      report.count("failovers")
      try database.failOver()
    case 88: database.copy()
    case 89: try database.restore()
    case 90..<92: database.forgetOld()
    case 92..<95: try beginCompaction()
    case 95..<98: try setPolicy()
    default: try dieAndComeBack()
    }
    try check()
  }

  private var idleServers: [Int] { servers.indices.filter { servers[$0].call == nil } }

  private func begin(_ message: WireMessage, for replica: Int?, at server: Int) throws {
    let result = Lock<Result<WireMessage, PeerError>?>(nil)
    let handler = servers[server].handler
    let number = try calls.begin {
      let answer: Result<WireMessage, PeerError>
      do throws(PeerError) { answer = .success(try handler.answer(message)) } catch {
        answer = .failure(error)
      }
      result.withLock { $0 = answer }
    }
    servers[server].call = Call(number: number, replica: replica, result: result)
    try receive(at: server)
  }

  private func beginCall() throws {
    let waiting = Set(servers.compactMap { $0.call?.replica })
    let idle = replicas.indices.filter { !waiting.contains($0) }
    guard !idle.isEmpty, !idleServers.isEmpty else { return }
    let replica = idle[generator.int(below: idle.count)]
    let server = idleServers[generator.int(below: idleServers.count)]
    let message = replicas[replica].next(&generator, writes: true)
    report.count("calls")
    try begin(message, for: replica, at: server)
  }

  /// A batch that the network has kept, or doubled, arrives.
  private func beginLateBatch() throws {
    guard !idleServers.isEmpty else { return }
    let replica = replicas[generator.int(below: replicas.count)]
    guard let batch = replica.late(&generator) else { return }
    report.count("late batches")
    let server = idleServers[generator.int(below: idleServers.count)]
    try begin(.pushRequest(batch), for: nil, at: server)
  }

  private func goOn() throws {
    let busy = servers.indices.filter { servers[$0].call != nil }
    let most = busy.count + (compaction == nil ? 0 : 1)
    guard most > 0 else { return }
    let choice = generator.int(below: most)
    guard choice < busy.count else {
      guard let call = compaction else { return }
      calls.resume(call)
      if calls.hasEnded(call) { compaction = nil }
      return
    }
    if let call = servers[busy[choice]].call { calls.resume(call.number) }
    try receive(at: busy[choice])
  }

  /// Gives a replica the answer to its call, if that has come to its end.
  private func receive(at server: Int) throws {
    guard let call = servers[server].call, calls.hasEnded(call.number) else { return }
    servers[server].call = nil
    guard let index = call.replica, let result = call.result.withLock({ $0 }) else { return }
    switch result {
    case .success(let answer):
      try note(answer, to: replicas[index])
      try replicas[index].receive(answer)
    case .failure(let error):
      report.count("failed: \(error.kind.rawValue)")
      try replicas[index].fail(error)
    }
  }

  private func beginCompaction() throws {
    guard compaction == nil else { return }
    report.count("compactions")
    let call = try calls.begin { [database] in _ = try? database.compact() }
    compaction = calls.hasEnded(call) ? nil : call
  }

  private func setPolicy() throws {
    guard let server = idleServers.first else { return }
    let policy: ConflictPolicy = generator.chance(0.5) ? .detect : .lastWriterWins
    // Many things may happen to it; another one comes.
    try? servers[server].handler.setPolicy(policy, forKeysWithPrefix: "a")
  }

  /// A server dies at a call of its feed, and another one takes its place.
  private func dieAndComeBack() throws {
    let server = generator.int(below: servers.count)
    report.count("deaths of servers")
    servers[server].feed.die()
    while let call = servers[server].call {
      calls.resume(call.number)
      try receive(at: server)
    }
    servers[server] = try newServer()
  }

  // MARK: Promises

  private func check() throws {
    if let failure = told.withLock({ $0.failure }) { throw BrokenPromise(failure) }
  }

  /// A position stands for one entry, whoever tells of it.
  private func note(_ operation: OperationID, at position: FeedPosition) throws {
    let other = told.withLock { told in
      defer { told.entries[position] = operation }
      return told.entries[position]
    }
    guard other ?? operation == operation else {
      throw BrokenPromise("\(position) stands for \(operation), and stood for another entry")
    }
  }

  private func note(_ answer: WireMessage, to replica: ClusterReplica) throws {
    switch answer {
    case .pullAnswer(let page):
      for entry in page.entries { try note(entry.operation, at: entry.position) }
    case .valuesAnswer(let values):
      for entry in values.entries { try note(entry.operation, at: entry.position) }
    case .pushAnswer(let push):
      guard let batch = replica.batches.first(where: { $0.batchID == push.mark.batchID }) else {
        return
      }
      for (change, verdict) in zip(batch.changes, push.mark.verdicts) {
        guard case .applied(let position) = verdict else { continue }
        try note(OperationID(replica: replica.id, sequence: change.sequence), at: position)
      }
    default: break
    }
  }

  /// Lets all calls come to their end, then everybody talk to one server until nobody has anything
  /// to say, and looks whether all hold the same.
  func finish() throws {
    end()
    try check()
    database.forgetOld()
    // What is appended once more begins another epoch, if one is due.
    for server in servers.indices { servers[server].feed.die() }
    let server = try newServer()
    // An answer on its way is lost.
    for index in replicas.indices where replicas[index].step == .ready {
      replicas[index].step = .hello
    }
    for _ in 0..<2 {
      for index in replicas.indices { try settle(index, server.handler) }
    }
    let log = database.primary.feed.log
    var state: [[UInt8]: [UInt8]] = [:]
    var seen: Set<OperationID> = []
    for offset in 1..<log.head + 1 {
      guard let change = log.change(at: offset) else { continue }
      guard seen.insert(change.head.operation).inserted else {
        throw BrokenPromise("\(change.head.operation) counts twice")
      }
      state[change.head.key] = change.head.kind == .put ? change.value : nil
    }
    report.note(log.head)
    for replica in replicas {
      guard replica.state.mapValues({ $0.value }) == state else {
        let keys = Set(state.keys).union(replica.state.keys).filter {
          state[$0] != replica.state[$0]?.value
        }
        throw BrokenPromise(
          "replica \(replica.id.bytes[0]) does not hold what the feed does at \(keys)")
      }
    }
    guard database.isSynchronous else { return }
    let isLost = told.withLock { $0.entries.keys.contains { !log.range.contains($0) } }
    if isLost { throw BrokenPromise("an entry is lost that somebody was told of") }
  }

  /// Lets all calls come to their end.
  func end() {
    for server in servers.indices {
      while let call = servers[server].call, !calls.hasEnded(call.number) {
        calls.resume(call.number)
      }
      servers[server].call = nil
    }
    while let call = compaction, !calls.hasEnded(call) { calls.resume(call) }
    compaction = nil
  }

  private func settle(_ index: Int, _ handler: SyncHandler) throws {
    for _ in 0..<200 {
      let message = replicas[index].next(&generator, writes: false)
      let answer: WireMessage
      do throws(PeerError) { answer = try handler.answer(message) } catch {
        try replicas[index].fail(error)
        continue
      }
      try note(answer, to: replicas[index])
      try replicas[index].receive(answer)
      if replicas[index].isSent, case .pullAnswer(let page) = answer,
        page.cursor == page.range.headPosition
      {
        return
      }
    }
    throw BrokenPromise("replica \(index) comes to no end")
  }
}
