import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

/// Several devices and a server on simulated disks, and a network that one can break: everything
/// runs in one thread, and the same seed does the same.
final class SyncWorld {
  final class Device {
    let name: String
    let disk: SimulatedFileSystem
    var engine: Engine
    var session: SyncSession
    var openings: UInt64 = 1

    init(_ name: String, engine: Engine, disk: SimulatedFileSystem, resolver: ConflictResolver)
      throws
    {
      self.name = name
      self.disk = disk
      self.engine = engine
      session = try SyncSession(engine, name: "server", resolver: resolver)
    }
  }

  let clock = ManualClock()
  let server: Bench
  private(set) var devices: [Device] = []
  var resolver = ConflictResolver.localWins
  private let seed: UInt64

  init(seed: UInt64 = 1, devices count: Int = 2, resolver: ConflictResolver = .localWins) throws {
    self.seed = seed
    self.resolver = resolver
    server = Bench(clock: clock)
    for number in 0..<count { try addDevice("device \(number)") }
  }

  private func environment(_ disk: SimulatedFileSystem, _ salt: UInt64) -> EngineEnvironment {
    EngineEnvironment(
      fileSystem: disk, clock: clock, random: SeededRandom(seed: seed &* 1_000_003 &+ salt))
  }

  func addDevice(_ name: String) throws {
    let disk = SimulatedFileSystem(seed: seed &+ UInt64(devices.count))
    let engine = try Engine.open(
      "/store", configuration: .campaign,
      environment: environment(disk, UInt64(devices.count + 1) << 20))
    devices.append(try Device(name, engine: engine, disk: disk, resolver: resolver))
  }

  /// Ends a device's process and begins another.
  /// - Parameter losesPower: whether unsynced writes may be lost.
  func restart(_ index: Int, losesPower: Bool = false) throws {
    let device = devices[index]
    if losesPower { device.disk.powerCut() } else { device.disk.kill() }
    device.disk.restart(keeping: losesPower ? .loseAll : .keepAll)
    device.openings += 1
    device.engine = try Engine.open(
      "/store", configuration: .campaign,
      environment: environment(device.disk, UInt64(index + 1) << 20 &+ device.openings))
    device.session = try SyncSession(device.engine, name: "server", resolver: resolver)
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
    try engine.withValue(forKey: Array(key.utf8).rawSpan) { (value, _) throws(TidemarkError) in
      String(decoding: [UInt8](copying: value), as: UTF8.self)
    }
  }

  /// Everything that an engine holds: keys with values and labels.
  static func state(_ engine: Engine) throws -> [String: String] {
    var state: [String: String] = [:]
    let scan = EngineScan(engine, ScanQuery(prefix: []), view: try engine.view())
    while true {
      let page = try scan.nextPage(limit: 100)
      if page.isEmpty { return state }
      for row in page {
        let key = String(decoding: row.key, as: UTF8.self)
        let info = try engine.info(engine.entry(at: row.sequence))
        let labels = info.labels.map { String(decoding: $0, as: UTF8.self) }
        state[key] = (try get(engine, key) ?? "-") + " " + labels.joined(separator: ",")
      }
    }
  }

  func serverState() throws -> [String: String] { try server.withEngine(Self.state) }

  // MARK: Network

  /// What the network does to a call.
  enum Weather: CaseIterable { case fine, requestLost, answerLost, doubled }

  /// Lets a device make its next call.
  /// - Returns: false when it had nothing to do.
  @discardableResult
  func step(_ index: Int, _ weather: Weather = .fine) throws -> Bool {
    let session = devices[index].session
    guard let call = try session.next() else { return false }
    if weather == .requestLost {
      session.disconnect()
      return true
    }
    do {
      if weather == .doubled { _ = try answer(call) }
      let answer = try answer(call)
      if weather == .answerLost {
        session.disconnect()
      } else {
        try session.receive(answer)
      }
    } catch is PeerError { session.disconnect() }
    return true
  }

  /// Lets a device work until it pushes, and gives what it would send.
  func nextPush(_ index: Int) throws -> PushRequest? {
    for _ in 0..<100 {
      if case .push(let push)? = try devices[index].session.next() { return push }
      guard try step(index) else { return nil }
    }
    return nil
  }

  func answer(_ call: SyncSession.Call) throws -> SyncSession.Answer {
    let handler = try server.handler()
    switch call {
    case .hello(let request): return .hello(try handler.hello(request))
    case .push(let request): return .push(try handler.push(request))
    case .pull(let request): return .pull(try handler.pull(request))
    case .values(let request): return .values(try handler.values(request))
    }
  }

  /// Lets all devices work until nobody has anything to do.
  func settle(rounds: Int = 2000) throws {
    for _ in 0..<rounds {
      var isIdle = true
      for index in devices.indices {
        // Somebody else may have brought something: ask.
        devices[index].session.disconnect()
        while try step(index) {
          if devices[index].session.range == nil { continue }
          if devices[index].session.isAtRest { break }
          isIdle = false
        }
      }
      if isIdle, try hasAllHead() { return }
    }
    Issue.record("seed \(seed): no end of calls")
  }

  private func hasAllHead() throws -> Bool {
    devices.allSatisfy { $0.session.isAtRest }
  }
}

extension SyncWorld {
  /// Operation ids that the server's history holds more than once.
  func repeatedOperations() throws -> [String] {
    try server.withEngine { engine in
      var seen: Set<String> = []
      var repeated: [String] = []
      var cursor = LogCursor(engine, from: 1, through: engine.lastSequence)
      while let entry = try cursor.next() {
        guard let origin = try entry.attributes().origin else { continue }
        let id = "\(origin.replica) \(origin.sequence)"
        if !seen.insert(id).inserted { repeated.append(id) }
      }
      return repeated
    }
  }
}
