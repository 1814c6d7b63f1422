internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Promises that must hold once nobody has anything to say.
extension SyncOracle {
  /// All devices and the server hold the same, and nothing waits.
  func checkEnd(_ devices: [SimulatedDevice], _ server: SimulatedServer) throws {
    let feed = try server.feed.state()
    for (key, seen) in feed where line.state[key] != seen.content {
      throw BrokenPromise("the feed holds \(name(key)) otherwise than its log")
    }
    for (key, content) in line.state where content != .deleted && feed[key] == nil {
      throw BrokenPromise("the feed lacks \(name(key))")
    }
    for device in devices {
      let state = try Seen.state(device.engine)
      try checkCache(of: device)
      let scope = device.session.scope
      for key in Set(feed.keys).union(state.keys).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
        let there = feed[key].flatMap { scope.contains(key: key, labels: $0.labels) ? $0 : nil }
        let here = state[key].flatMap { scope.contains(key: key, labels: $0.labels) ? $0 : nil }
        guard there?.content != here?.content else { continue }
        throw BrokenPromise(
          "d\(device.index) \(here == nil ? "lacks" : there == nil ? "has" : "differs in") "
            + "\(name(key)) at the end")
      }
      guard device.session.outbox.waiting.isEmpty || !scope.isEverything else {
        throw BrokenPromise("d\(device.index): something waits at the end")
      }
    }
    try checkNothingOutdated()
  }
}
