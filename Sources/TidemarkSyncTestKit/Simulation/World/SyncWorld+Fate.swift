internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkTestKit

extension SyncWorld {
  /// The accidents that may befall a device.
  func suffer(_ event: SyncEvent, _ device: SimulatedDevice) throws {
    switch event.kind {
    case .kill:
      device.survival = .keepAll
      device.disk.kill()
      try comeBack(device)
    case .powerCut:
      device.survival = .random(seed: UInt64(event.number(0)))
      device.disk.powerCut()
      try comeBack(device)
    case .fuse:
      device.survival = .random(seed: UInt64(event.number(1)))
      device.disk.plan = .powerCut(atCall: max(1, event.number(0)))
    case .reopen: try reopen(device)
    case .backUp:
      // A copy of the files of a running program, or of one that was closed before.
      if device.copies.count < Self.mostCopies { device.copies.append(device.disk.snapshot()) }
    case .restore:
      guard !device.copies.isEmpty else { return }
      report.count("restored devices")
      device.disk.kill()
      device.abandon()
      device.disk = SimulatedFileSystem(
        killedAt: device.copies[event.index(below: device.copies.count)], seed: random())
      try device.open(random: random())
      try oracle.beginAnew(device)
    default: break
    }
  }

  private func reopen(_ device: SimulatedDevice) throws {
    try guarding(device) {
      try device.session.writeDown()
      try device.close()
    }
    guard device.engine.reader.isClosed else { return }
    guard try survives(device.disk, { try device.open(random: random()) }) else {
      return try comeBack(device)
    }
    try oracle.comesBack(device, lostPower: false, lostVerdicts: false)
  }

  /// - Returns: false when the disk has stopped meanwhile.
  func survives(_ disk: SimulatedFileSystem, _ body: () throws -> Void) throws -> Bool {
    var failure: (any Error)?
    do { try body() } catch { failure = error }
    guard let failure else { return true }
    guard !disk.isRunning else { throw failure }
    report.count("died at work")
    return false
  }

  /// The accidents that may befall the server.
  func sufferServer(_ event: SyncEvent) throws {
    switch event.kind {
    case .kill:
      server.survival = .keepAll
      server.disk.kill()
      try comeBack(nil)
    case .powerCut:
      server.survival = .random(seed: UInt64(event.number(0)))
      server.disk.powerCut()
      try comeBack(nil)
    case .fuse:
      server.survival = .random(seed: UInt64(event.number(1)))
      server.disk.plan = .powerCut(atCall: max(1, event.number(0)))
    case .reopen: try reopenServer()
    case .backUp:
      if server.copies.count < Self.mostCopies {
        server.copies.append((server.disk.snapshot(), try server.feed.copy(), oracle.line))
      }
    case .restore:
      guard !server.copies.isEmpty else { return }
      report.count("restored servers")
      let copy = server.copies[event.index(below: server.copies.count)]
      let seed = random()
      // The servers of a database go on as if nothing had happened.
      if try !server.feed.restore(copy.feed) {
        server.disk = SimulatedFileSystem(killedAt: copy.disk, seed: seed)
        try server.open(after: copy.feed, random: random())
      }
      oracle.serverReplaced(by: copy.line, devices)
    case .anew:
      report.count("servers made anew")
      server.disk = SimulatedFileSystem(seed: random())
      try server.open(after: nil, random: random())
      oracle.serverReplaced(by: FeedLine(), devices)
    default: break
    }
  }
}
