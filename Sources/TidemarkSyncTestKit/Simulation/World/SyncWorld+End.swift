internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

extension SyncWorld {
  private static let mostRounds = 60
  private static let mostCalls = 1500

  /// Lets everybody talk to the server until nobody has anything to say, lets users decide what
  /// waits for them, and looks whether all hold the same.
  func finish() throws {
    server.disk.plan = .none
    for device in devices {
      device.disk.plan = .none
      device.isPartitioned = false
      device.direction = .both
    }
    // Requests that are still under way arrive, their answers do not.
    for message in network.messages {
      if case .request(let call) = message.body {
        _ = try answer(call, of: devices[message.device])
      }
    }
    network.removeAll()
    server.validator = 0
    try reopenServer()
    for device in devices {
      // A resolver that wants to be asked does not come to an end.
      if [5, 6].contains(device.resolver) { device.resolver = 0 }
      try guarding(device) { try device.beginSessionAnew() }
    }
    try settle()
    for device in devices { try oracle.checkReach(of: device, server) }
    // Changes out of reach would wait for ever, and nobody could compare what all hold.
    for device in devices { device.access = .everything }
    try settle()
    for _ in 0..<8 {
      guard try decide() else { break }
      try settle()
    }
    for device in devices { try oracle.checkPending(of: device, server) }
    try oracle.checkEnd(devices, server)
    try oracle.checkContent(devices, server)
    for device in devices {
      try device.engine.compact(CompactionOptions(dropHistory: true))
      try oracle.checkSpace(of: device)
      try device.forgetPin()
      try device.engine.compact(CompactionOptions(dropHistory: true))
      try oracle.checkSpace(of: device, isForgotten: true)
    }
    for device in devices {
      let totals = device.session.totals
      report.count("resyncs", totals.resyncs)
      report.count("comparisons", totals.comparisons)
    }
    for book in oracle.books {
      for seen in book.newest.values { report.trace ^= seen.content.hash }
    }
  }

  private func settle() throws {
    for _ in 0..<Self.mostRounds {
      let durable = try server.feed.feed.look(FeedQuestion()).durable
      var isIdle = true
      for device in devices {
        device.hangUp()
        device.session.disconnect()
        var calls = 0
        while try exchange(device) {
          calls += 1
          guard calls < Self.mostCalls else {
            throw BrokenPromise("no end of calls of d\(device.index)")
          }
          if device.session.progress.resync?.purge == .undecided {
            report.count("purges decided")
            try guarding(device) { try device.session.decidePurge(random() & 1 == 0) }
          }
        }
        guard device.session.isAtRest else {
          throw BrokenPromise("d\(device.index) has nothing to call and is not at rest")
        }
        if calls > 1 { isIdle = false }
      }
      // A hello alone may make durable, and so show to others, what a batch had brought before.
      if isIdle, try server.feed.feed.look(FeedQuestion()).durable == durable { return }
    }
    throw BrokenPromise("the devices do not come to rest")
  }

  /// Users write anew what waits for them.
  private func decide() throws -> Bool {
    var hasDecided = false
    for device in devices {
      for sequence in device.session.outbox.waiting.keys.sorted() {
        hasDecided = true
        report.count("decided by users")
        try guarding(device) {
          guard let entry = try device.engine.reader.entryIfKept(at: sequence) else { return }
          var batch = OperationBatch()
          let value = Array("decided \(random())".utf8)
          try batch.add(
            .put, key: entry.key.rawSpan, value: value.rawSpan,
            labelSet: try batch.addLabelSet([[UInt8(ascii: "a")]]))
          try device.engine.commit(batch)
        }
      }
    }
    return hasDecided
  }
}
