internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// The entries that a device may hold, and those that it has to.
extension SyncOracle {
  /// A device with nothing to say holds those entries of the feed that its authorization reaches,
  /// and no others. Its own writes that the feed does not have stay with it.
  func checkReach(of device: SimulatedDevice, _ server: SimulatedServer) throws {
    let (scope, access) = (device.session.scope, device.access)
    let feed = try server.feed.state().filter { key, seen in
      scope.contains(key: key, labels: seen.labels)
        && access.reaches(key: key, labels: seen.labels)
    }
    let state = try Seen.state(device.engine)
    let keys = Set(feed.keys).union(state.keys).sorted { $0.lexicographicallyPrecedes($1) }
    for key in keys where feed[key]?.content != state[key]?.content {
      if let here = state[key], !scope.contains(key: key, labels: here.labels) { continue }
      if let newest = books[device.index].newest[key], newest.isOwn,
        device.session.isPending(newest.sequence)
          || device.session.outbox.waiting[newest.sequence] != nil
          || !wasThere(newest, key)
      {
        continue
      }
      throw BrokenPromise(
        "d\(device.index) \(state[key] == nil ? "lacks" : feed[key] == nil ? "has" : "differs in") "
          + "\(name(key)), as far as its authorization reaches")
    }
  }
}
