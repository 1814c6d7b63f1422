internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkTestKit

/// The devices and the back end, and what befalls them.
final class RestWorld {
  private static let mostDevices = 6
  /// More calls or requests than any sync of a script needs.
  private static let mostCalls = 400
  private static let mostRounds = 40

  private(set) var devices: [RestDevice] = []
  let back: SimulatedBackEnd
  private let script: RestScript
  private let clock = ManualClock()
  private var generator: SeededGenerator
  private var names = 0
  /// The last of those who have signed in; each device begins with one of its own.
  private var users = 100

  init(_ script: RestScript, _ tell: (@Sendable (String) -> Void)?) throws {
    self.script = script
    generator = SeededGenerator(seed: script.seed &* 31 &+ 5)
    back = SimulatedBackEnd(script)
    back.state.withLock { $0.ledger.tell = tell }
    for _ in 0..<script.devices { try addDevice(nil) }
  }

  private func addDevice(_ original: RestDevice?) throws {
    devices.append(
      try RestDevice(
        devices.count, script, back, clock, copyOf: original, random: generator.next()))
  }

  private var ledger: RestLedger { back.state.withLock { $0.ledger } }

  // MARK: Events

  func apply(_ event: RestEvent) async throws {
    ledger.narrate("\(event)")
    let device = devices[event.device % devices.count]
    clock.advance(by: .seconds(1))
    switch event.kind {
    case .create, .share, .edit, .delete, .toggle, .child, .group, .bad, .poison:
      try write(event, on: device)
    case .sync: _ = try await sync(device)
    case .calls: _ = try await sync(device, calls: 1 + event.number % 6)
    case .loseRequest, .loseAnswer, .dieBefore, .dieAfter:
      let isAfter = [.loseAnswer, .dieAfter].contains(event.kind)
      let kills = [.dieBefore, .dieAfter].contains(event.kind)
      back.state.withLock {
        $0.fuse = SimulatedBackEnd.Fuse(left: event.number % 6, isAfter: isAfter, kills: kills)
      }
      _ = try await sync(device)
      back.state.withLock { $0.fuse = nil }
    case .restart: try device.restart(.keepAll, random: generator.next())
    case .powerCut:
      let survival = Survival.random(seed: generator.next())
      try device.restart(survival, random: generator.next())
    case .backUp: device.backUp()
    case .restore:
      back.state.withLock { $0.ledger.hasCopies = true }
      try device.restore(event.number, random: generator.next())
    case .copy:
      back.state.withLock { $0.ledger.hasCopies = true }
      if devices.count < Self.mostDevices { try addDevice(device) }
    case .signOut: try await signOut(device, event.number)
    case .box, .busy, .outage, .expire, .stuck, .webCreate, .webEdit, .webDelete:
      sufferBackEnd(event)
    case .advance: clock.advance(by: .seconds(60 * (event.number * event.number + 1)))
    }
    try checkFault()
  }

  private func checkFault() throws {
    if let fault = ledger.fault { throw BrokenPromise(fault) }
  }

  private func sufferBackEnd(_ event: RestEvent) {
    let text = "web\(generator.next() % 1_000_000)"
    back.state.withLock { state in
      let live = state.records.filter { $0.value.body != nil }.keys.sorted()
      let id = live.isEmpty ? nil : live[event.number % live.count]
      switch event.kind {
      case .box: state.fromBox = 1 + event.number % 5
      case .busy: state.busy = 1 + event.number % 5
      case .outage: state.down = 1 + event.number
      case .expire: state.expire()
      case .stuck: state.stuck = 1_000
      case .webCreate:
        state.nextID += 1
        state.write(text, to: script.traits.contains(.givesIDs) ? "\(state.nextID - 1)" : text, nil)
      case .webEdit: if let id { state.write(text, to: id, nil) }
      default: if let id { state.write(nil, to: id, nil) }
      }
    }
  }

  // MARK: Writes

  private func write(_ event: RestEvent, on device: RestDevice) throws {
    let keys = try device.contents().keys.sorted()
    let old = keys.isEmpty ? nil : keys[event.number % keys.count]
    var kind = RestWrite.Kind.put
    var key: String?
    switch event.kind {
    case .share: key = "s\(event.number % 3)"
    case .edit: key = old
    case .delete: (kind, key) = (.delete, old)
    case .toggle: (kind, key) = (.toggle, old)
    case .group: (kind, key) = (.group, newName())
    case .bad: (kind, key) = (.bad, event.number % 2 == 0 ? old ?? newName() : newName())
    case .poison: (kind, key) = (.poison, event.number % 2 == 0 ? old ?? newName() : newName())
    default: key = newName()
    }
    guard let key else { return }
    let ledger = ledger
    let parent =
      event.kind == .child
      ? device.writes.last { ledger.writes[$0].kind != .delete && ledger.writes[$0].parent == nil }
      : nil
    if event.kind == .child, parent == nil { return }
    var writes = [RestWrite(number: ledger.writes.count, kind: kind, key: key, value: "")]
    if kind == .group {
      writes.append(
        RestWrite(number: ledger.writes.count + 1, kind: kind, key: newName(), value: ""))
    }
    for index in writes.indices { writes[index].value = value(of: writes[index], event) }
    if let parent {
      writes[0].parent = parent
      writes[0].value += " in \(ledger.writes[parent].key)"
    }
    let target = parent.map { ledger.writes[$0].sequence }
    let sequences = try device.commit(writes, after: target)
    for (index, sequence) in sequences.enumerated() {
      (writes[index].sequence, writes[index].user) = (sequence, device.user)
      let write = writes[index]
      ledger.narrate("  \(write.kind) \(write.key) = \(write.value)")
      back.state.withLock { $0.ledger.note(write) }
      device.writes.append(write.number)
    }
  }

  private func value(of write: RestWrite, _ event: RestEvent) -> String {
    switch write.kind {
    case .toggle: event.number % 2 == 0 ? "on" : "off"
    case .delete: ""
    case .put: "v\(write.number)"
    default: "v\(write.number) \(write.kind)"
    }
  }

  private func newName() -> String {
    names += 1
    return "n\(names)"
  }

  private func signOut(_ device: RestDevice, _ number: Int) async throws {
    let isForced = number % 2 == 0
    if !isForced { try await sync(device) }
    let before = device.writes
    users += 1
    guard
      try device.signOut(
        for: users, isForced: isForced, dies: number % 3 == 0, random: generator.next())
    else { return }
    guard try device.contents().isEmpty else {
      throw BrokenPromise("device \(device.index) has something left of who has signed out")
    }
    if !isForced, let lost = ledger.lost(of: before, but: []) {
      throw BrokenPromise("\(lost), whose user has signed out")
    }
  }

  // MARK: Rounds

  /// Makes calls until there is nothing to do, or one fails.
  private func sync(_ device: RestDevice, calls most: Int = .max) async throws {
    let before = back.state.withLock { $0.requests }
    // As a replicator begins a round.
    if most == .max { device.session.disconnect() }
    var calls = 0
    while calls < most, try await device.call() {
      calls += 1
      let requests = back.state.withLock { $0.requests } - before
      guard calls < Self.mostCalls, requests < Self.mostCalls else {
        throw BrokenPromise("no end of calls of device \(device.index)")
      }
    }
    if back.state.withLock({ $0.isDead }) {
      back.state.withLock { ($0.isDead, $0.fuse) = (false, nil) }
      ledger.narrate("  device \(device.index) dies")
      try device.restart(.keepAll, random: generator.next())
    }
  }

  /// In fair weather everybody syncs, and everything comes to all within a bounded number of
  /// rounds, however the one bad record fares.
  func finish() async throws {
    let expires = script.events.contains { $0.kind == .expire }
    back.state.withLock {
      ($0.fromBox, $0.busy, $0.down, $0.stuck) = (0, 0, 0, 0)
      if expires { $0.expire() }
    }
    var fault: String?
    var calm = 0
    for round in 0..<Self.mostRounds {
      ledger.narrate("round \(round)")
      // Only a list of everything tells of deletes that a list does not have, or has no more. A
      // copy may be told that a change was made whose record was deleted since.
      let isBelieved = round == 4 && (expires || ledger.hasCopies)
      if !script.traits.contains(.listsDeletes) || isBelieved {
        back.state.withLock { $0.expire() }
      }
      // An expired token ends a round, as does the one bad record where it goes alone.
      for device in devices { for _ in 0..<4 { try await sync(device) } }
      try checkFault()
      fault = try endFault()
      calm = fault == nil ? calm + 1 : 0
      if calm == 2 { return }
      clock.advance(by: .seconds(60 << min(round, 9)))
    }
    if let fault { throw BrokenPromise(fault) }
  }
}
