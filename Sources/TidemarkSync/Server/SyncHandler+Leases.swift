public import TidemarkEngine

extension SyncHandler {
  /// How often expired leases are looked for when there is no room.
  private static let millisecondsBetweenLooks: UInt64 = 60_000
  /// Most records that go in one step.
  static let recordsPerStep = 1_000

  /// Takes leases that have run out from the log. Their replicas have to compare everything in any
  /// case, and nothing was kept for them any more.
  /// - Returns: how many there were.
  @discardableResult
  public func removeExpiredLeases() throws(TidemarkError) -> Int {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try removeExpiredLeases(&state)
    }
  }

  private func removeExpiredLeases(_ state: inout State) throws(TidemarkError) -> Int {
    state.lastLookForExpired = feed.now.sinceEpoch
    let expired = state.leases.expired(at: feed.now)
    var rest = expired[...]
    while !rest.isEmpty {
      let step = rest.prefix(Self.recordsPerStep)
      rest = rest.dropFirst(step.count)
      try feed.remove(.feedLease, keys: step.map(\.bytes))
      for replica in step { state.leases.remove(replica) }
    }
    return expired.count
  }

  /// Ends leases that would last longer than leases do now: of a time when they had no end, or
  /// when the clock was far ahead. Nobody may ever come back to renew them.
  func shortenLeases(_ state: inout State) throws(TidemarkError) {
    guard let seconds = options.leaseSeconds, seconds > 0 else { return }
    let latest = feed.now.sinceEpoch + UInt64(seconds) * 1000
    let long = state.leases.ending(after: latest).prefix(Self.recordsPerStep).map {
      (replica, lease) in
      var shorter = lease
      shorter.expires = min(lease.expires, latest)
      shorter.readsUntil = min(lease.readsUntil, latest)
      return (replica: replica, lease: shorter)
    }
    try feed.append(.feedLease, long.map { (key: $0.replica.bytes, value: $0.lease.encoded) })
    for (replica, lease) in long {
      state.leases.record(replica, lease, hasPushed: state.leases.hasPushed(replica))
    }
  }

  /// Writes a lease down, or, where there are too many, remembers it.
  func record(
    _ lease: LeaseRecord, of replica: ReplicaID, hasPushed: Bool, _ state: inout State
  ) throws(TidemarkError) {
    func hasRoom() -> Bool {
      state.leases.mayRecord(replica, lease, hasPushed: hasPushed, most: options.mostLeases)
    }
    if !hasRoom(),
      feed.now.sinceEpoch >= state.lastLookForExpired + Self.millisecondsBetweenLooks
    {
      _ = try removeExpiredLeases(&state)
    }
    guard hasRoom() else {
      return state.leases.remember(replica, lease, hasPushed: hasPushed)
    }
    try feed.append(.feedLease, key: replica.bytes, value: lease.encoded)
    state.leases.record(replica, lease, hasPushed: hasPushed)
  }

  /// Takes note that a replica has pushed for the first time: deletes are kept for it from now on.
  func notePush(of replica: ReplicaID, _ state: inout State) throws(TidemarkError) {
    guard let lease = state.leases[replica], !state.leases.hasPushed(replica),
      try mark(of: replica).number > 0
    else { return }
    if state.leases.isRecorded(replica) {
      state.leases.record(replica, lease, hasPushed: true)
    } else {
      try record(lease, of: replica, hasPushed: true, &state)
    }
    try keepDeletes(state)
  }

  /// Takes note of how far a replica has read: it needs no deletes from before.
  ///
  /// That it has begun to read is written down, so that deletes are kept for it from then on, also
  /// when the handler is opened anew. What is let go because it has read further is computed when a
  /// compaction asks: it takes a look at all leases.
  func notePull(of replica: ReplicaID, to cursor: Position) throws(TidemarkError) {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard let known = state.leases[replica] else { return }
      let isFirst = known.cursor.offset == 0
      guard state.leases.advance(replica, to: cursor),
        isFirst || !state.leases.isRecorded(replica), let lease = state.leases[replica]
      else { return }
      // A replica that only reads is answered on a full disk, too.
      let hasPushed = state.leases.hasPushed(replica)
      try? record(lease, of: replica, hasPushed: hasPushed, &state)
      if state.leases.isRecorded(replica) { try keepDeletes(state) }
    }
  }
}
