import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// Several devices and a server on simulated disks, and a network that one can break: everything
/// runs in one thread, and the same seed does the same.
final class SyncWorld {
  final class Device {
    let name: String
    let clock: ManualClock
    var disk: SimulatedFileSystem
    var engine: Engine
    var session: SyncSession
    var openings: UInt64 = 1
    /// Counts from the next opening on.
    var scope = SyncScope.everything
    /// The access of calls that are made from now on.
    var access = SyncAccess.everything
    var direction = SyncDirection.both

    init(
      _ name: String, engine: Engine, disk: SimulatedFileSystem, clock: ManualClock,
      resolver: ConflictResolver
    ) throws {
      self.name = name
      self.clock = clock
      self.disk = disk
      self.engine = engine
      session = try SyncSession(
        ReplicationLog(engine), name: "server", resolver: resolver,
        capabilities: PeerCapabilities(hasMarkBehindBatch: true))
    }
  }

  let clock = ManualClock()
  private(set) var server: Bench
  private(set) var devices: [Device] = []
  var resolver = ConflictResolver.localWins
  private let seed: UInt64
  private var restores: UInt64 = 0
  private(set) var lastError: PeerError?

  init(seed: UInt64 = 1, devices count: Int = 2, resolver: ConflictResolver = .localWins) throws {
    self.seed = seed
    self.resolver = resolver
    server = Bench(clock: clock)
    for number in 0..<count { try addDevice("device \(number)") }
  }

  private func environment(
    _ disk: SimulatedFileSystem, _ clock: ManualClock, _ salt: UInt64
  ) -> EngineEnvironment {
    EngineEnvironment(
      fileSystem: disk, clock: clock, random: SeededRandom(seed: seed &* 1_000_003 &+ salt))
  }

  /// - Parameter clock: the device's own; nil for the world's.
  func addDevice(_ name: String, clock: ManualClock? = nil) throws {
    let disk = SimulatedFileSystem(seed: seed &+ UInt64(devices.count))
    let clock = clock ?? self.clock
    let engine = try Engine.open(
      "/store", configuration: .campaign,
      environment: environment(disk, clock, UInt64(devices.count + 1) << 20))
    devices.append(
      try Device(name, engine: engine, disk: disk, clock: clock, resolver: resolver))
  }

  /// Ends a device's process, which has stopped replicating before, and begins another.
  /// - Parameter losesPower: whether unsynced writes may be lost.
  func restart(_ index: Int, losesPower: Bool = false) throws {
    let device = devices[index]
    try device.session.writeDown()
    if losesPower { device.disk.powerCut() } else { device.disk.kill() }
    device.disk.restart(keeping: losesPower ? .loseAll : .keepAll)
    try reopen(index)
  }

  /// Kills a device's process in the midst of its work, and begins another.
  func reopenKilled(_ index: Int) throws {
    devices[index].disk.kill()
    devices[index].disk.restart(keeping: .keepAll)
    try reopen(index)
  }

  /// Opens a device's store again.
  func reopen(_ index: Int) throws {
    let device = devices[index]
    device.openings += 1
    device.engine = try Engine.open(
      "/store", configuration: .campaign,
      environment: environment(
        device.disk, device.clock, UInt64(index + 1) << 20 &+ device.openings &+ restores << 10))
    device.session = try SyncSession(
      ReplicationLog(device.engine), name: "server", scope: device.scope, resolver: resolver,
      capabilities: PeerCapabilities(hasMarkBehindBatch: true))
  }

  // MARK: Programs

  func put(_ index: Int, _ key: String, _ value: String, labels: [String] = []) throws {
    var batch = OperationBatch()
    try batch.add(
      .put, key: Array(key.utf8).rawSpan, value: Array(value.utf8).rawSpan,
      labelSet: batch.addLabelSet(labels.map { Array($0.utf8) }))
    try devices[index].engine.commit(batch)
  }

  func delete(_ index: Int, _ key: String) throws {
    var batch = OperationBatch()
    try batch.add(.delete, key: Array(key.utf8).rawSpan)
    try devices[index].engine.commit(batch)
  }

  func get(_ index: Int, _ key: String) throws -> String? {
    try Self.get(devices[index].engine, key)
  }

  static func get(_ engine: Engine, _ key: String) throws -> String? {
    try engine.reader.withValue(forKey: Array(key.utf8).rawSpan) {
      (value, _) throws(TidemarkError) in
      String(decoding: [UInt8](copying: value), as: UTF8.self)
    }
  }

  /// Everything that an engine holds: keys with values and labels.
  static func state(_ engine: Engine) throws -> [String: String] {
    var state: [String: String] = [:]
    let scan = EngineScan(engine.reader, ScanQuery(prefix: []), view: try engine.reader.view())
    while true {
      let page = try scan.nextPage(limit: 100)
      if page.isEmpty { return state }
      for row in page {
        let key = String(decoding: row.key, as: UTF8.self)
        let info = try engine.reader.info(engine.reader.entry(at: row.sequence))
        let labels = info.labels.map { String(decoding: $0, as: UTF8.self) }
        state[key] = (try get(engine, key) ?? "-") + " " + labels.joined(separator: ",")
      }
    }
  }

  func serverState() throws -> [String: String] { try server.withEngine(Self.state) }

  // MARK: Network

  /// The network's effect on a call.
  enum Weather: CaseIterable { case fine, requestLost, answerLost, doubled }

  /// Lets a device make its next call.
  /// - Returns: false when it had nothing to do.
  @discardableResult
  func step(_ index: Int, _ weather: Weather = .fine) throws -> Bool {
    let session = devices[index].session
    guard let call = try session.next(devices[index].direction) else { return false }
    if weather == .requestLost {
      session.disconnect()
      return true
    }
    if case .pushRequest(let push) = call {
      try session.expectOrder(push, "seed \(seed)")
      // As a replicator does while the batch travels.
      try session.prepareBatch()
    }
    do {
      let access = devices[index].access
      if weather == .doubled { _ = try answer(call, access) }
      let answer = try answer(call, access)
      if weather == .answerLost {
        session.disconnect()
      } else {
        try session.receive(answer)
      }
    } catch let error as PeerError {
      lastError = error
      try session.failed(error)
    }
    return true
  }

  /// Lets a device work until it pushes, and gives what it would send.
  func nextPush(_ index: Int) throws -> PushRequest? {
    for _ in 0..<100 {
      if case .pushRequest(let push)? = try devices[index].session.next() { return push }
      guard try step(index) else { return nil }
    }
    return nil
  }

  func answer(
    _ call: WireMessage, _ access: SyncAccess = .everything
  ) throws -> WireMessage {
    try server.handler().answer(call, access: access)
  }

  /// Lets devices work until nobody has anything to do.
  /// - Parameters:
  ///   - only: the only device that works; nil for all.
  ///   - mayStop: whether devices may wait for the user.
  func settle(steps most: Int = 3000, only: Int? = nil, mayStop: Bool = false) throws {
    var steps = 0
    while true {
      var isIdle = true
      for index in devices.indices where only == nil || only == index {
        // Somebody else may have brought something: ask.
        devices[index].session.disconnect()
        while try step(index) {
          steps += 1
          guard steps < most else {
            let last = try devices[index].session.next().map { "\($0)" } ?? "nothing"
            Issue.record(
              "seed \(seed): no end of calls; \(String(describing: lastError)); \(last.prefix(300))"
            )
            return
          }
          if devices[index].session.range == nil { continue }
          if mayStop, devices[index].session.progress.resync?.purge == .undecided { break }
          if devices[index].session.isAtRest { break }
          isIdle = false
        }
      }
      if isIdle, mayStop || hasAllHead(only) { return }
    }
  }

  private func hasAllHead(_ only: Int?) -> Bool {
    devices.indices.allSatisfy { (only != nil && only != $0) || devices[$0].session.isAtRest }
  }
}

extension SyncSession {
  /// The changes of a batch come after nothing that has no verdict yet, but for what applies
  /// together with them.
  func expectOrder(_ push: PushRequest, _ comment: Comment? = nil) throws {
    let sent = Set(push.changes.map(\.sequence))
    for item in push.changes {
      guard let change = try log.change(at: item.sequence) else { continue }
      for target in change.attributes.after {
        let other = try log.change(at: target)
        let group = change.attributes.atomicGroup
        if group != 0, other?.attributes.atomicGroup == group { continue }
        let isTogether = sent.contains(target)
        #expect(!isTogether && !isPending(target), comment)
      }
    }
  }
}

extension SyncWorld {
  /// Operation ids that the server's history holds more than once.
  func repeatedOperations() throws -> [String] {
    try server.withEngine { engine in
      var seen: Set<String> = []
      var repeated: [String] = []
      var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
      while let entry = try cursor.next() {
        guard let origin = try entry.attributes().origin else { continue }
        let id = "\(origin.replica) \(origin.sequence)"
        if !seen.insert(id).inserted { repeated.append(id) }
      }
      return repeated
    }
  }
}

extension SyncWorld {
  /// The server's disk as it is now, for a backup.
  func backUpServer() throws -> DiskSnapshot {
    try server.close()
    return server.disk.snapshot()
  }

  /// Puts an older copy in the place of the server's store; nil for an empty one.
  func restoreServer(_ backup: DiskSnapshot?) throws {
    try server.close()
    restores += 1
    let disk =
      backup.map { SimulatedFileSystem(killedAt: $0, seed: restores) }
      ?? SimulatedFileSystem(seed: restores)
    server = Bench(disk: disk, clock: clock, openings: restores * 1000)
  }

  /// A device's disk as it is now.
  func backUp(_ index: Int) throws -> DiskSnapshot {
    try devices[index].engine.close()
    let backup = devices[index].disk.snapshot()
    try reopen(index)
    return backup
  }

  /// Puts an older copy in the place of a device's store.
  func restore(_ index: Int, _ backup: DiskSnapshot) throws {
    try devices[index].engine.close()
    restores += 1
    devices[index].disk = SimulatedFileSystem(killedAt: backup, seed: restores)
    try reopen(index)
  }

  /// A further device on a copy of another's store.
  func clone(_ backup: DiskSnapshot) throws {
    try addDevice("clone")
    try restore(devices.count - 1, backup)
  }

  /// Nothing waits, and everybody holds what the server does.
  func expectEqual(_ comment: Comment? = nil) throws {
    let held = try serverState()
    for device in devices {
      let state = try SyncWorld.state(device.engine)
      let differing = Set(held.keys).union(state.keys).filter { held[$0] != state[$0] }
      #expect(
        differing.isEmpty,
        """
        \(comment.map { "\($0)" } ?? ""): \(device.name): \
        \(differing.map { "\($0): \(state[$0] ?? "-") instead of \(held[$0] ?? "-")" })
        """)
      #expect(device.session.outbox.waiting.isEmpty, comment)
    }
    #expect(try repeatedOperations().isEmpty, comment)
  }
}
