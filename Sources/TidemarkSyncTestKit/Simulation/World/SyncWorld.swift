internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// The devices, the server, the network between them, and what must be true of them.
final class SyncWorld {
  private static let mostDevices = 6
  static let mostCopies = 12

  private(set) var devices: [SimulatedDevice] = []
  let server: SimulatedServer
  var network = SimulatedNetwork()
  let oracle = SyncOracle()
  var report = SyncSimulationReport()
  private var generator: SeededGenerator
  /// Whether half of the answers are made before the server has synced.
  let answersBeforeSync: Bool

  init(_ script: SyncScript) throws(TidemarkError) {
    var generator = SeededGenerator(seed: script.seed &* 31 &+ 7)
    server = try SimulatedServer(
      script.server & 4 == 4 ? .sql : script.server & 1 == 1 ? .memory : .store,
      clock: ManualClock(),
      disk: SimulatedFileSystem(seed: script.seed),
      limits: SyncLimits(changes: script.batch, bytes: script.batchBytes),
      random: generator.next())
    self.generator = generator
    answersBeforeSync = script.server & 2 == 2
    for _ in 0..<script.devices { try addDevice(on: nil) }
  }

  deinit {
    for device in devices { device.disk.kill() }
  }

  func random() -> UInt64 { generator.next() }

  private func addDevice(on copy: DiskSnapshot?) throws(TidemarkError) {
    let seed = generator.next()
    devices.append(
      try SimulatedDevice(
        devices.count, clock: ManualClock(server.clock.now()),
        disk: copy.map { SimulatedFileSystem(killedAt: $0, seed: seed) }
          ?? SimulatedFileSystem(seed: seed),
        random: generator.next()))
    oracle.books.append(DeviceLedger(oracle.books.count))
    oracle.cacheBooks.append(CacheBook())
  }

  /// The device that an event is about; nil for the server.
  func device(of event: SyncEvent) -> SimulatedDevice? {
    event.device.map { devices[$0 % devices.count] }
  }

  // MARK: Events

  func apply(_ event: SyncEvent) throws {
    report.count(event.kind.rawValue)
    let device = device(of: event)
    switch event.kind {
    case .call, .deliver, .drop, .duplicate, .giveUp, .exchange, .partition, .heal:
      try travel(event, device)
    case .write, .durableWrite, .fill, .compact, .dropHistory, .run:
      try guarding(device) { try work(event, device) }
    case .cachePut, .cacheRead, .cacheTouch, .cacheStale, .cacheRemove, .cacheExpire:
      if let device { try guarding(device) { try useCache(event, device) } }
    case .kill, .powerCut, .fuse, .reopen, .backUp, .restore, .anew:
      if let device { try suffer(event, device) } else { try sufferServer(event) }
    case .clone:
      guard let device, devices.count < Self.mostDevices else { return }
      let copy = device.disk.snapshot()
      try addDevice(on: copy)
      devices[devices.count - 1].access = device.access
      oracle.hasCopies = true
      // The entries that it was told and had not synced may have gone with the power before.
      oracle.books[device.index].forgetCounting()
      oracle.books[devices.count - 1].everKnown = oracle.books[device.index].everKnown
      oracle.cacheBooks[devices.count - 1] = oracle.cacheBooks[device.index]
      try oracle.beginAnew(devices[devices.count - 1])
    case .advance:
      for clock in devices.map(\.clock) + [server.clock] {
        clock.advance(by: .seconds(event.number(0)))
      }
    case .jump:
      let number = event.number(0)
      let seconds = number >= 1_000_000 ? 1_000_000 - number : number
      (device?.clock ?? server.clock).jump(by: .seconds(seconds))
    case .policy:
      let policies: [ConflictPolicy?] = [.detect, .lastWriterWins, nil]
      let prefix = ["", "l", "h", "h1"][event.number(0) % 4]
      try guarding(nil) {
        try server.handler.setPolicy(
          policies[event.number(1) % 3], forKeysWithPrefix: prefix)
      }
    case .validator:
      server.validator = event.number(0) % 3
      try reopenServer()
    case .scope, .reach, .resolver, .direction:
      if let device { try adjust(device, event) }
    }
    report.note(server.feed.head)
    for device in devices { report.note(device.engine.reader.lastSequence) }
  }

  /// Changes what a device replicates, may reach, or does with what it gets.
  private func adjust(_ device: SimulatedDevice, _ event: SyncEvent) throws {
    switch event.kind {
    case .scope:
      let scope = SimulatedDevice.scopes[event.number(0) % SimulatedDevice.scopes.count]
      oracle.scopeChanges(of: device, to: scope)
      device.scope = scope
      try guarding(device) { try device.beginSessionAnew() }
    case .reach:
      let reaches = SimulatedDevice.reaches
      device.access = SyncAccess(to: reaches[event.number(0) % reaches.count])
      oracle.reachChanges(of: device)
    case .resolver:
      device.resolver = event.number(0) % SimulatedDevice.resolvers.count
      try guarding(device) { try device.beginSessionAnew() }
    default:
      // As a replicator does that is made anew.
      device.direction = [.both, .push, .pull, .both][event.number(0) % 4]
      device.hangUp()
      device.session.disconnect()
    }
  }

  /// Lets a device or the server work; if the power goes off meanwhile it starts again.
  func guarding(_ device: SimulatedDevice?, _ body: () throws -> Void) throws {
    let disk = device?.disk ?? server.disk
    do {
      try body()
    } catch  where !disk.isRunning {
      report.count("died at work")
    } catch let error as BrokenPromise {
      throw error
    } catch let error as PeerError where device != nil {
      report.count("refused: \(error.kind.rawValue)")
      device?.hangUp()
      try guarding(device) { try device?.session.failed(error) }
      return
    } catch {
      throw BrokenPromise(
        "unexpected error of \(device.map { "d\($0.index)" } ?? "the server"): \(error)")
    }
    if !disk.isRunning {
      try comeBack(device)
    } else if let device {
      // One that was closed is looked at when it is open again.
      if !device.engine.reader.isClosed { try oracle.observe(device) }
    } else if !server.feed.isClosed {
      try oracle.observe(server)
    }
  }

  /// Starts a device or the server again whose disk has stopped.
  func comeBack(_ device: SimulatedDevice?) throws {
    let disk = device?.disk ?? server.disk
    let isPowerCut = disk.plan != .none || (device?.survival ?? server.survival) != .keepAll
    device?.abandon()
    disk.plan = .none
    disk.restart(keeping: device?.survival ?? server.survival)
    if let device {
      let lostVerdicts = device.session.hasUnwritten
      try device.open(random: random())
      try oracle.comesBack(device, lostPower: isPowerCut, lostVerdicts: lostVerdicts)
    } else {
      let feed = server.survival == .keepAll ? server.feed : try server.feed.afterPowerCut(random())
      try server.open(after: feed, random: random())
      try oracle.comesBack(server)
    }
  }

  func reopenServer() throws {
    try guarding(nil) { try server.handler.close() }
    guard server.feed.isClosed else { return }
    guard try survives(server.disk, { try server.open(random: random()) }) else {
      return try comeBack(nil)
    }
    try oracle.observe(server)
  }

  // MARK: Work

  private func work(_ event: SyncEvent, _ device: SimulatedDevice?) throws {
    switch event.kind {
    case .compact, .dropHistory:
      let drops = event.kind == .dropHistory
      if drops, let device {
        // For a server that was silent for so long merges have no base any more.
        guard device.isPinned else { return }
        oracle.hasDroppedHistory = true
      } else if drops {
        oracle.hasServerDropped = true
      }
      let dropped: (entries: Int, tombstones: Int)
      if let device {
        let result = try device.engine.compact(CompactionOptions(dropHistory: drops))
        dropped = (result.droppedEntries, result.droppedTombstones)
      } else {
        dropped = try server.feed.compact(dropHistory: drops)
      }
      report.count("dropped entries", dropped.entries)
      report.count("dropped tombstones", dropped.tombstones)
      if drops, let device { try oracle.checkSpace(of: device) }
    case .run:
      if let device {
        try device.engine.checkpointer.writeRun()
      } else if case .store(let engine, _) = server.feed {
        try engine.checkpointer.writeRun()
      }
    case .fill:
      let first = event.number(0)
      for number in 0..<min(event.number(1), 300) {
        let write = SyncWrite(
          .put, "f\(number)", number: UInt64(first + number), size: 20, labels: "a")
        if let device { try commit([write], on: device, durably: false) }
      }
    default:
      if let device {
        try commit(event.writes, on: device, durably: event.kind == .durableWrite)
      }
    }
  }

  private func commit(
    _ writes: [SyncWrite], on device: SimulatedDevice, durably: Bool
  ) throws {
    var batch = OperationBatch()
    var values: [String: [UInt8]] = [:]
    var holds: [AttachmentHold] = []
    defer { withExtendedLifetime(holds) {} }
    for write in writes {
      let key = Array(write.key.utf8)
      oracle.noteWrite(key)
      switch write.kind {
      case .delete:
        try batch.add(.delete, key: key.rawSpan)
        values[write.key] = []
      case .touch:
        oracle.noteTouch(of: key, on: device.index)
        try batch.add(.touch, key: key.rawSpan)
      default:
        let visible = try values[write.key] ?? device.engine.value(ofKey: key) ?? []
        let value = write.value(over: visible)
        values[write.key] = value
        let labels = write.labels == "-" ? [] : write.labels.utf8.map { [$0] }
        var attributes = EntryAttributes()
        if let content = write.attachedContent {
          let writer = try device.engine.newAttachment()
          try writer.write(content.rawSpan)
          let hold = try writer.finish()
          holds.append(hold)
          attributes.attachment = hold.id
          report.count("attachments")
        }
        try batch.add(
          .put, key: key.rawSpan, value: value.rawSpan, labelSet: try batch.addLabelSet(labels),
          attributes: attributes)
        if write.kind == .same { oracle.common.insert(Content(value, labels)) }
      }
    }
    try device.commit(batch, durably ? .durable : .buffered)
    if durably { oracle.books[device.index].durableThrough = device.engine.reader.lastSequence }
  }
}

extension Engine {
  /// A key's value; nil when it has none.
  func value(ofKey key: [UInt8]) throws(TidemarkError) -> [UInt8]? {
    try reader.withValue(forKey: key.rawSpan) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
  }
}

extension SyncWrite {
  /// The content of the attachment that it gives a key; nil for none. Some take several parts.
  var attachedContent: [UInt8]? {
    guard kind == .attach else { return nil }
    var generator = SeededGenerator(seed: number)
    return generator.bytes(Int(number % 3) * (AttachRequest.partBytes + 1) + size)
  }

  /// The value that it gives a key.
  /// - Parameter visible: what the key has.
  func value(over visible: [UInt8]) -> [UInt8] {
    switch kind {
    case .same: return Array(["", "same", "{}"][Int(number % 3)].utf8)
    case .edit:
      var fields = Self.fields(visible)
      fields["f\(number % 4)"] = "\(number)"
      let texts = fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
      return Array("{\(texts.joined(separator: ","))}".utf8)
    default:
      let text = Array(((kind == .bad ? "bad" : "v") + "\(number)").utf8)
      return text + Array(repeating: UInt8(ascii: "."), count: max(0, size - text.count))
    }
  }

  private static func fields(_ value: [UInt8]) -> [String: String] {
    guard value.first == UInt8(ascii: "{"), value.count > 2 else { return [:] }
    var fields: [String: String] = [:]
    for field in String(decoding: value.dropFirst().dropLast(), as: UTF8.self).split(
      separator: ",")
    {
      let parts = field.split(separator: ":")
      if parts.count == 2 { fields[String(parts[0].dropFirst().dropLast())] = String(parts[1]) }
    }
    return fields
  }
}
