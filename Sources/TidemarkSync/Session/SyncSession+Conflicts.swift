internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// How often the resolver runs on one key before the user is asked.
  static let mostRounds = 5

  /// Keys in conflict whose remote state must be requested: no pull sends what is before the
  /// cursor.
  func keysToFetch() throws(TidemarkError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    for entry in outbox.waiting.conflicts {
      if let position = entry.reason.position, let found = try conflicting(ofKey: entry.key),
        found.state.position.offset >= position.offset
      {
        continue
      }
      // If the budget allows only urgent calls, keys of lower priority wait.
      if gate.isNarrow, let least = gate.leastPriority,
        let change = try log.change(at: entry.sequence),
        change.attributes.priority < Int64(least)
      {
        continue
      }
      keys.append(entry.key)
      // After a failure keys are requested singly, to find the one on which the peer fails.
      if keys.count == limits.changes || valuesFailures > 0 { break }
    }
    return keys
  }

  /// Handles the answer with remote states of keys in conflict.
  func handle(_ answer: ValuesAnswer) throws {
    guard answer.answered > 0 else { throw PeerError(.malformed, "no key was answered") }
    let found = Dictionary(answer.entries.map { ($0.key, $0) }) { $1 }
    // Only requested keys: a key in conflict since then was not answered, and does not count as
    // absent.
    let asked = requestedKeys.prefix(answer.answered)
    requestedKeys = []
    valuesFailures = 0
    let named = try aliasChanges(of: answer, absent: asked.filter { found[$0]?.kind != .put })
    try commit(aliases: named) { tx in
      for key in asked {
        let state = try tx.remoteState(found[key] ?? .nothing(key, at: answer.range.headPosition))
        if let waiting = tx.outbox.waiting.entry(ofKey: key),
          let wanted = waiting.reason.position, let change = try log.change(at: waiting.sequence)
        {
          // The authorization may no longer cover the conflicting version; to take it for deleted
          // could lose the local change.
          if found[key] == nil, tx.progress.reach != 0, wanted != .beginning {
            let why = "the authorization does not cover the peer's version of the key"
            tx.outbox.wait(change, for: .parked(.outOfScope(why)))
            continue
          }
          // The feed's version may be older than the conflict's position, after a restore or if the
          // verdict found the key absent; the resolver then decides on this version.
          if state.position.offset < wanted.offset {
            tx.outbox.wait(change, for: waiting.reason.at(state.position))
          }
        }
        try tx.writeRemote(state, ofKey: key)
      }
    }
    try resolveWaiting()
  }
}

extension PeerView {
  /// The state that an entry gives its key, with the number of the resolver's rounds on the key so
  /// far.
  func remoteState(_ entry: FeedEntry) throws(TidemarkError) -> RemoteState {
    let newest = try log.newestChange(ofKey: entry.key)
    guard case .conflicting(let state) = try knownRemote(ofKey: entry.key, from: newest) else {
      return RemoteState(entry)
    }
    return RemoteState(entry, rounds: state.rounds)
  }

  /// Decides a key with an undecided local change. The second part is the resolver's decision; nil
  /// if it was not called, since only one side has changed.
  fileprivate func resolution(
    on newest: LoggedChange, _ local: SyncContent?, _ remote: RemoteState, isLost: Bool
  ) throws -> (ConflictResolution, ConflictResolver.Decision?) {
    let there = remote.isDeleted ? nil : remote.content
    var resolution = ConflictResolution.remote
    var decision: ConflictResolver.Decision?
    if !isLost, local != there {
      let base = try baseContent(of: newest)
      let isBase = try isMade(newest, upon: remote) || isDecidedUpon(remote, ofKey: newest.key)
      if isBase || there != nil && there == base {
        // The remote version is the one that the local change was made upon.
        resolution = .local
      } else if newest.isBroughtBack {
        // An adopted entry must not win over later versions: others have edited the key since the
        // restore, or adopted a later version. A commit time in the future counts as older than one
        // that is not.
        let now = log.now
        let isAhead = [newest.commitTime, remote.commitTime].map { HybridTime($0).timestamp > now }
        let isOlder =
          local == base || remote.commitTime >= newest.commitTime || isAhead == [true, false]
        resolution = isOlder ? .remote : .local
      } else if remote.rounds >= SyncSession.mostRounds {
        decision = ConflictResolver.Decision(resolution: .ask)
      } else {
        decision = session.resolver.decide(conflict(newest, base, local, remote))
      }
      resolution = decision?.resolution ?? resolution
    }
    if case .merged(let content) = resolution {
      // A value above the limits would fail to commit in every round.
      if !content.fitsEntry { resolution = .ask }
      if content == there, try pendingMembers(upTo: newest).isEmpty { resolution = .remote }
      if content == local { resolution = .local }
    }
    // A member of an atomic group is sent even if the feed has the same content: its verdict is
    // `duplicate`, and the other members, or an earlier group, can only be sent with it.
    if !isLost, local == there, outbox.waiting[newest.sequence]?.isParked != true,
      try !pendingMembers(upTo: newest).isEmpty
    {
      resolution = .local
    }
    decision?.resolution = resolution
    return (resolution, decision)
  }

  /// The resolver's input. Where this store's or the writer's clock is ahead, times are corrected
  /// by the peer's: no change is later than now, or than the peer received it.
  func conflict(
    _ newest: LoggedChange, _ base: SyncContent?, _ local: SyncContent?, _ remote: RemoteState?
  ) -> SyncConflict {
    let now = min(log.now.sinceEpoch, (1 << 48) - 1) << 16 | 0xffff
    let localTime = min(newest.commitTime, now)
    return SyncConflict(
      key: newest.key, base: base, local: local,
      remote: remote.flatMap { $0.isDeleted ? nil : $0.content },
      localTime: HybridTime(localTime - min(localTime, session.clockLead << 16)).orderedTimestamp,
      remoteTime: remote?.orderedTime,
      policy: session.policies.policy(for: newest.key))
  }

  /// Whether a change of the key is in flight. Until its verdict the key is not decided, and no
  /// later change of it joins the prepared batch.
  func isInFlight(_ key: [UInt8]) throws(TidemarkError) -> Bool {
    try inFlight?.has(key, log) ?? false
  }
}

extension SyncTransaction {
  /// Merges a remote state into its key: writes it, or calls the resolver if a change is pending.
  /// - Parameter isAlone: whether the commit merges no other key.
  mutating func merge(
    _ key: [UInt8], _ remote: RemoteState, isLost: Bool = false, isAlone: Bool = false
  ) throws {
    let slot = try log.slot(ofKey: key)
    let newest = try log.newestChange(ofKey: key)
    guard let newest, try isPending(newest) || wouldBeOverwritten(newest, remote) else {
      // An older version, of a page pulled again, must not replace a newer one.
      if let newest, newest.kind != .evict, let known = position(of: newest),
        known.offset > remote.position.offset
      {
        return
      }
      return try add(remote, ofKey: key, upon: slot)
    }
    if !PlantedSyncBug.isOn(.resolvedInFlight), try isInFlight(key) {
      return try writeRemote(remote, ofKey: key)
    }
    let local = newest.kind == .put ? try log.content(of: newest) : nil
    let (resolution, decision) = try self.resolution(on: newest, local, remote, isLost: isLost)
    // A waiting conflict was counted at its verdict or page.
    if decision != nil, !isAlone { totals.conflicts += 1 }
    let isLater =
      try operations.arena.count > session.bytesTogether || !pendingMembers(upTo: newest).isEmpty
    if !isAlone, resolution.writes, isLater {
      // The decision writes other keys too, or the commit is full: the resolver runs again, later.
      try writeRemote(remote, ofKey: key)
      return outbox.wait(newest, for: .conflict(remote.position))
    }
    if let decision { totals.count(decision) }
    var remote = remote
    // A round is a conflict of a change that was sent; several versions in the feed are one.
    if isAlone || outbox.waiting[newest.sequence]?.position != nil { remote.rounds += 1 }
    try apply(resolution, newest, local, remote, slot)
  }

  mutating func apply(
    _ resolution: ConflictResolution, _ newest: LoggedChange, _ local: SyncContent?,
    _ remote: RemoteState, _ slot: Slot?, isForUser: Bool = false
  ) throws {
    let key = newest.key
    let sequence = newest.sequence
    // The newest change stands for the key: an older one stops waiting.
    outbox.supersede(key, by: sequence)
    var resolution = resolution
    var free: [UInt8]?
    if case .both(let other) = resolution, local != nil {
      free = try freeKey(other.bytes, beside: key)
      if free == nil { resolution = .ask }
    }
    let found = try endPending(upTo: newest, for: resolution, isForUser: isForUser)
    if found == nil { resolution = .ask }
    let companions = found ?? []
    let group =
      companions.isEmpty ? 0 : OperationBatch.unnumberedGroup | log.random() & (1 << 28 - 1)
    switch resolution {
    case .local:
      try writeRemote(remote, ofKey: key)
      outbox.resend(sequence)
    case .remote:
      outbox.decide(sequence)
      if try local == nil && remote.isAbsent && baseContent(of: newest) == nil {
        // The own delete stays the newest entry: a copy of this store may send its base later.
        try forgetRemote(ofKey: key)
      } else {
        try acceptRemote(remote, ofKey: key, upon: slot)
      }
    case .merged(let content):
      outbox.decide(sequence)
      try writeRemote(remote, ofKey: key)
      try put(content, of: newest, key: key, upon: slot, group: group)
    case .both:
      outbox.decide(sequence)
      try acceptRemote(remote, ofKey: key, upon: slot)
      if let local, let free {
        arriving.insert(free)
        let taken = try log.slot(ofKey: free)
        try put(local, of: newest, key: free, upon: taken, group: group)
      }
    case .ask:
      try writeRemote(remote, ofKey: key)
      outbox.wait(newest, for: .needsDecision)
    }
    try rewrite(companions, group: group)
  }

  /// The key for the local state of `both`: no existing key, nor one that the same commit writes,
  /// may be overwritten.
  /// - Returns: nil if no free key is short enough.
  private func freeKey(_ wanted: [UInt8], beside key: [UInt8]) throws(TidemarkError) -> [UInt8]? {
    let suffix =
      wanted.starts(with: key) && wanted.count > key.count
      ? Array(wanted.dropFirst(key.count)) : [UInt8(ascii: "'")]
    var free = wanted
    while free.count <= Limits.keyBytes {
      let isTaken = try log.slot(ofKey: free).map { !$0.isDeleted } ?? false
      if !isTaken, !arriving.contains(free) { return free }
      free += suffix
    }
    return nil
  }

  /// Writes the remote state as the key's value and removes the record that held it.
  mutating func acceptRemote(
    _ remote: RemoteState, ofKey key: [UInt8], upon slot: Slot?
  ) throws(TidemarkError) {
    try add(remote, ofKey: key, upon: slot)
    try forgetRemote(ofKey: key)
  }

  /// Writes a remote state as an entry from the feed: with its position, so that it is not pending.
  mutating func add(
    _ remote: RemoteState, ofKey key: [UInt8], upon slot: Slot?
  ) throws(TidemarkError) {
    var attributes = EntryAttributes()
    attributes.origin = EntryAttributes.Origin(
      replica: remote.operation.replica.bytes, sequence: remote.operation.sequence)
    attributes.base = .position(epoch: remote.position.epoch, offset: remote.position.offset)
    attributes.time = remote.time
    attributes.writerTime = remote.commitTime
    if !remote.isDeleted { session.fetchLater(remote.content.attachment?.engineID, ofKey: key) }
    try operations.add(remote.isDeleted ? nil : remote.content, ofKey: key, attributes, upon: slot)
  }

  /// Writes a resolver's result as an own change, with the priority of the change that it replaces.
  fileprivate mutating func put(
    _ content: SyncContent, of change: LoggedChange, key: [UInt8], upon slot: Slot?,
    group: UInt64
  ) throws(TidemarkError) {
    var attributes = EntryAttributes()
    attributes.priority = change.attributes.priority
    attributes.atomicGroup = group
    try operations.add(content, ofKey: key, attributes, upon: slot)
  }
}

extension SyncSession {
  /// The most keys decided in one commit, which other writers of the store wait for.
  private static let decidedPerCommit = 256

  /// An entry that waits for its key's remote state, and that state.
  private typealias Decidable = (entry: WaitingEntries.Entry, state: RemoteState)

  /// Runs the resolver on waiting keys whose remote state is known.
  func resolveWaiting() throws {
    var together: [Decidable] = []
    var alone: [Decidable] = []
    var bytes = 0
    for entry in outbox.waiting.conflicts {
      guard outbox.waiting[entry.sequence] == entry.reason, let position = entry.reason.position,
        let found = try conflicting(ofKey: entry.key),
        found.state.position.offset >= position.offset
      else { continue }
      together.append((entry, found.state))
      bytes += found.state.content.value.count
      bytes += try log.newestChange(ofKey: entry.key)?.valueLength ?? 0
      if together.count == Self.decidedPerCommit || bytes >= bytesTogether {
        alone += try resolve(together)
        (together, bytes) = ([], 0)
      }
    }
    alone += try resolve(together)
    for met in alone { _ = try resolve([met]) }
  }

  /// Runs the resolver on keys in one commit.
  /// - Returns: those that need a commit each, since their atomic groups concern other keys.
  private func resolve(_ keys: [Decidable]) throws -> [Decidable] {
    guard !keys.isEmpty else { return [] }
    var left: [Decidable] = []
    try commit(arriving: Set(keys.map(\.entry.key))) { tx in
      left = []
      for (entry, state) in keys {
        let (key, sequence, reason) = (entry.key, entry.sequence, entry.reason)
        guard tx.outbox.waiting[sequence] == reason else { continue }
        let newest = try log.newestChange(ofKey: key)
        if keys.count > 1, let newest, try !tx.pendingMembers(upTo: newest).isEmpty {
          left.append((entry, state))
          continue
        }
        if PlantedSyncBug.isOn(.conflictForgotten) { tx.outbox.decide(sequence) }
        // The change is pending until the resolver has decided. A policy's loss is that of one
        // change: a later one gets its own verdict.
        if !reason.isLost || newest?.sequence == sequence
          || PlantedSyncBug.isOn(.lossDropsLaterEdit)
        {
          try tx.merge(key, state, isLost: reason.isLost, isAlone: true)
        }
        if tx.outbox.waiting[sequence]?.position != nil { tx.outbox.decide(sequence) }
      }
    }
    return left
  }
}
