internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkTestKit

extension SyncWorld {
  /// Calls, answers, and what the network does with them.
  func travel(_ event: SyncEvent, _ device: SimulatedDevice?) throws {
    switch event.kind {
    case .call:
      if let device { try call(device) }
    case .giveUp:
      guard let device else { return }
      if device.awaited != nil { report.count("answers not waited for") }
      device.hangUp()
      device.session.disconnect()
    case .drop:
      _ = network.take(event, keeps: false) { _ in true }
    case .deliver, .duplicate:
      let message = network.take(event, keeps: event.kind == .duplicate) {
        !devices[$0.device].isPartitioned
      }
      if let message { try deliver(message) }
    case .exchange:
      guard let device, !device.isPartitioned else { return }
      for _ in 0..<event.number(0) {
        guard try exchange(device) else { return }
      }
    case .partition: device?.isPartitioned = true
    default: device?.isPartitioned = false
    }
  }

  /// Lets a device send its next call, unless it waits for an answer.
  private func call(_ device: SimulatedDevice) throws {
    guard device.awaited == nil else { return }
    try guarding(device) {
      guard let call = try device.session.next(device.direction) else { return }
      try oracle.note(call, from: device)
      network.send(call, from: device)
      try prepare(call, device)
    }
  }

  /// As a replicator does while a batch travels.
  private func prepare(_ call: WireMessage, _ device: SimulatedDevice) throws {
    if call.kind == .pushRequest { try device.session.prepareBatch() }
  }

  private func deliver(_ message: SimulatedNetwork.Message) throws {
    let device = devices[message.device]
    switch message.body {
    case .request(let call):
      if device.awaited != message.call { report.count("stale requests") }
      try answer(call, message, of: device)
    case .staged(let staged, let call):
      // A server that has died since has nothing to send.
      guard staged.boot == server.boots else { return report.count("died before an answer") }
      if let answer = try settle(staged, call) { network.add(message.with(.answer(answer))) }
    case .answer(let answer):
      guard message.connection == device.connection, device.awaited == message.call else {
        report.count("stale answers")
        return
      }
      try take(answer, device)
    }
  }

  /// Answers a request that has arrived: at once, or, as often, when the disk is ready.
  private func answer(
    _ call: WireMessage, _ message: SimulatedNetwork.Message, of device: SimulatedDevice
  ) throws {
    guard answersBeforeSync, message.call % 2 == 0 else {
      guard let answer = try answer(call, of: device) else { return }
      return network.add(message.with(.answer(answer)))
    }
    guard let staged = try working({ server.stage(call, device.access) }) else { return }
    switch staged {
    case .success(let staged):
      report.count("answers that wait for the disk")
      network.add(message.with(.staged(staged, for: call)))
    case .failure(let error): network.add(message.with(.answer(.failure(error))))
    }
  }

  private func settle(
    _ staged: SimulatedServer.Staged, _ call: WireMessage
  ) throws -> Result<WireMessage, PeerError>? {
    let result = try working { try server.settle(staged) }
    if case .success(let answer)? = result { oracle.note(answer, to: call) }
    return result
  }

  /// Lets the server work.
  /// - Returns: nil when it died of it.
  private func working<R>(_ body: () throws -> R) throws -> R? {
    var result: R?
    let boots = server.boots
    try guarding(nil) {
      let made = try body()
      guard server.disk.isRunning else { return }
      result = made
    }
    return boots == server.boots ? result : nil
  }

  /// Makes an answer and lets it go out.
  /// - Returns: nil when the server died of it.
  func answer(
    _ call: WireMessage, of device: SimulatedDevice
  ) throws -> Result<WireMessage, PeerError>? {
    let result = try working { () throws -> Result<WireMessage, PeerError> in
      switch server.stage(call, device.access) {
      case .success(let staged): try server.settle(staged)
      case .failure(let error): .failure(error)
      }
    }
    if case .success(let answer)? = result { oracle.note(answer, to: call) }
    return result
  }

  func take(
    _ answer: Result<WireMessage, PeerError>, _ device: SimulatedDevice
  ) throws {
    device.awaited = nil
    try guarding(device) {
      switch answer {
      case .success(let answer):
        oracle.note(answer, at: device)
        try device.session.receive(answer)
      case .failure(let error): throw error
      }
    }
    oracle.narrator?.standing(of: device)
    try oracle.checkPending(of: device, server)
  }

  /// One call and its answer at once.
  /// - Returns: false when the device had nothing to do.
  func exchange(_ device: SimulatedDevice) throws -> Bool {
    if device.awaited != nil {
      device.hangUp()
      device.session.disconnect()
    }
    var next: WireMessage?
    try guarding(device) { next = try device.session.next(device.direction) }
    guard let next else { return false }
    try oracle.note(next, from: device)
    try guarding(device) { try prepare(next, device) }
    guard let answer = try answer(next, of: device) else {
      device.hangUp()
      device.session.disconnect()
      return true
    }
    try take(answer, device)
    return true
  }
}

extension SimulatedNetwork.Message {
  /// Another message of the same call.
  fileprivate func with(_ body: Body) -> SimulatedNetwork.Message {
    SimulatedNetwork.Message(device: device, connection: connection, call: call, body: body)
  }
}
