internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncProtocol

extension RestWorld {
  /// The first promise that is not kept yet; nil when all are.
  func endFault() throws -> String? {
    let state = back.state.withLock { $0 }
    let live = state.records.compactMapValues(\.body)
    for device in devices {
      let contents = try device.contents()
      let waiting = try keysThatMayWait(device, state)
      var there: [String: String] = [:]
      let aliases = try device.session.knownAliases()
      for (id, body) in live {
        guard state.traits.contains(.givesIDs) else {
          there[id] = body
          continue
        }
        guard let key = aliases.key(ofAlias: KeyAlias(id))?.text else {
          return "device \(device.index) lacks \(id), \(body)"
        }
        there[key] = body
      }
      for key in Set(contents.keys).union(there.keys).subtracting(waiting).sorted()
      where contents[key] != there[key] {
        return "device \(device.index) has \(contents[key] ?? "-") at \(key), "
          + "the back end \(there[key] ?? "-")"
      }
      if let lost = state.ledger.lost(of: device.writes, but: waiting) {
        return "\(lost) on device \(device.index)"
      }
    }
    return nil
  }

  /// The keys whose changes may wait for ever: that of what the back end refuses or fails on, and
  /// those after them.
  private func keysThatMayWait(
    _ device: RestDevice, _ state: SimulatedBackEnd.State
  ) throws -> Set<String> {
    let log = ReplicationLog(device.engine)
    var keys: Set<String> = []
    var refused: Set<UInt64> = []
    // A copy has read its own create as somebody else's, and the user has edited it under that key.
    let codes = ["invalid", "atomic"] + (state.ledger.hasCopies ? ["alias"] : [])
    for (change, reason) in try device.session.waitingForUser() {
      guard case .parked(let rejection) = reason, codes.contains(rejection.code) else { continue }
      refused.insert(change.sequence)
    }
    for number in device.writes {
      let write = state.ledger.writes[number]
      guard !keys.contains(write.key),
        let change = try log.newestChange(ofKey: Array(write.key.utf8)), change.isOwn,
        device.session.isPending(change.sequence)
      else { continue }
      let isRefused = refused.contains(change.sequence)
      let value = String(decoding: try log.content(of: change).value, as: UTF8.self)
      let isBad = ["bad", "poison", "group"].contains { value.hasSuffix($0) }
      let isAfter = write.parent.map { keys.contains(state.ledger.writes[$0].key) } ?? false
      if isRefused || isBad || isAfter { keys.insert(write.key) }
    }
    return keys
  }
}
