internal import Tidemark
internal import TidemarkEngine

/// The order of sending: by `after` (entries that the peer must have first), key and priority.
extension BatchBuilder {
  /// Whether a change must wait for the verdict on another one.
  /// - Parameter last: the last change of each key in its atomic group.
  mutating func isBlocked(
    _ change: LoggedChange, with last: [[UInt8]: UInt64] = [:]
  ) throws(TidemarkError) -> Bool {
    if let from = blockedKeys[change.key], from < change.sequence { return true }
    if change.attributes.atomicGroup == 0, try isPreceded(change) { return true }
    guard !change.attributes.after.isEmpty, !PlantedSyncBug.isOn(.orderIgnored) else {
      return false
    }
    // The batch has an older change of the key, and a peer may apply a batch in any order.
    if change.attributes.atomicGroup == 0, sentKeys.contains(change.key) { return true }
    for target in change.attributes.after where target < change.sequence {
      if try isOutstanding(target, with: last) {
        blockKey(of: change)
        deferred.put(change.sequence, behind: target)
        return true
      }
    }
    return false
  }

  /// Whether the target of an `after:` has no verdict yet: the peer may refuse it, so the dependent
  /// change is not added to its batch, except in one atomic group. Instead of a target that was
  /// coalesced the change in its place counts, and no later one: it may itself depend on what
  /// waits.
  private func isOutstanding(
    _ target: UInt64, with last: [[UInt8]: UInt64]
  ) throws(TidemarkError) -> Bool {
    guard let change = try log.change(at: target), change.isOwn else { return false }
    if sentKeys.contains(change.key) { return true }
    guard position(of: change) == nil else { return false }
    if last[change.key] ?? 0 >= target { return false }
    let newest = try newest(inPlaceOf: change)
    // A change that waits for the user is not sent once the key has a newer one.
    let isReplaced =
      try log.newestChange(ofKey: change.key).map { $0.sequence > target } ?? true
      && outbox.waiting[target].map { !$0.state.goesOn } ?? false
    if !isReplaced, isPending(change) { return true }
    guard let newest, newest.isOwn, newest.sequence > target else { return false }
    return isPending(newest)
  }

  // MARK: Priority

  /// Whether a change is put off: below the budget's minimum, or, without one, of a priority below
  /// 0 and no change waits for it. Those below 0 are noted in `deferred`, and sent last.
  mutating func canWait(_ change: LoggedChange) -> Bool {
    let priority = change.attributes.priority
    let isForEnd = priority < 0 && !deferred.wanted.contains(change.sequence)
    guard least.map({ priority < $0 }) ?? isForEnd else { return false }
    if priority < 0 { deferred.low.insert(change.sequence) }
    return true
  }

  /// Unblocks changes whose `after` targets have their verdicts.
  mutating func release() throws(TidemarkError) {
    for target in deferred.targets(outside: outbox.pending)
    where try !isOutstanding(target, with: [:]) {
      deferred.release(target)
    }
  }

  /// Adds changes of a priority above 0, ahead of earlier ones.
  mutating func addUrgent() throws(TidemarkError) {
    // With a minimum the walk in log order does not move on, so all of the log is searched.
    try deferred.findUrgent(outbox, in: log, most: least == nil ? DeferredChanges.lookAhead : .max)
    for (sequence, priority) in deferred.urgent where priority >= least ?? .min {
      if isFull { return }
      // It stays in the table until its verdict: the batch may be aborted.
      if !isPending(sequence) { deferred.removeUrgent(sequence) }
      guard outbox.isUnsent(sequence), !deferred.blocked.contains(sequence),
        let change = try log.change(at: sequence)
      else { continue }
      let isWhole = change.attributes.atomicGroup != 0
      let together = isWhole ? try log.atomicGroup(of: change) : [change]
      if try isInFlight(together) { continue }
      guard try !isPreceded(together) else {
        // The walk in log order adds it after the older change; with a minimum there is no walk.
        if least == nil { deferred.removeUrgent(sequence) }
        continue
      }
      try take(change)
    }
  }

  private func isInFlight(_ changes: [LoggedChange]) throws(TidemarkError) -> Bool {
    for change in changes where try isInFlight(change.key) { return true }
    return false
  }

  /// Whether an older change of one of the keys has to be sent first.
  mutating func isPreceded(_ changes: [LoggedChange]) throws(TidemarkError) -> Bool {
    for change in changes where try isPreceded(change) { return true }
    return false
  }

  /// Plain changes of a key are coalesced, unless the later one has `after`, and those of an atomic
  /// group are sent together; any other unsent version of the key has to be sent first.
  private mutating func isPreceded(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.previous > 0 else { return false }
    let group = change.attributes.atomicGroup
    let goesAlone = group == 0 && !change.attributes.after.isEmpty
    let last = taken[change.key] ?? 0
    var previous = try log.change(at: change.previous)
    while let version = previous, version.sequence > last {
      if version.kind == .put || version.kind == .delete {
        guard version.isOwn, position(of: version) == nil else { return false }
        // A waiting change does not count here: it is superseded, or keeps its key waiting.
        if goesAlone || version.attributes.atomicGroup != group,
          outbox.waiting[version.sequence] == nil, isPending(version)
        {
          deferred.wanted.insert(version.sequence)
          return true
        }
      }
      previous = try log.change(at: version.previous)
    }
    return false
  }
}

extension SyncSession {
  /// The most entries that are followed along `after`.
  private static let mostTargets = 256

  /// The state of a pending entry: blocked if its chain of `after` leads to one that waits for the
  /// user.
  func stateOfUnsent(_ change: LoggedChange) throws(TidemarkError) -> PendingState {
    var left = change.attributes.after.filter { $0 < change.sequence }
    var seen: Set<UInt64> = []
    while let target = left.popLast(), seen.count < Self.mostTargets {
      guard seen.insert(target).inserted, let found = try log.change(at: target), found.isOwn,
        position(of: found) == nil
      else { continue }
      // Instead of a replaced change its replacement counts.
      let newest = try log.newestChange(ofKey: found.key) ?? found
      guard isPending(found) || isPending(newest) else { continue }
      if let reason = outbox.waiting[newest.sequence], !reason.state.goesOn {
        return .blocked(by: newest.sequence)
      }
      left += newest.attributes.after.filter { $0 < newest.sequence }
    }
    return .pending
  }

  /// Whether a pending entry up to a sequence had to be left out of the last batch, since it waits.
  func isBlocked(through sequence: UInt64) -> Bool {
    deferred.blocked.intersection(outbox.pending).first.map { $0 <= sequence } ?? false
  }
}

/// Atomic groups: changes that apply at the peer together or not at all, always in one batch.
extension BatchBuilder {
  /// Adds all pending changes of a change's atomic group, or none.
  mutating func addGroup(of change: LoggedChange) throws(TidemarkError) {
    var members: [LoggedChange] = []
    for member in try log.atomicGroup(of: change) where member.isOwn {
      if try !log.isEvicted(member) { members.append(member) }
    }
    guard members.contains(where: { $0.sequence == change.sequence }) else { return }
    // The group was added with another of its changes.
    guard !members.contains(where: { taken[$0.key] == $0.sequence }) else { return }
    for member in members where try isInFlight(member.key) {
      return endBatch(before: change)
    }
    let pending = members.filter {
      $0.sequence == change.sequence || isPending($0)
    }
    var sent: [LoggedChange] = []
    var lacksContent = false
    for member in pending where try isWithin(member) {
      sent.append(member)
      if waitsForContent(member) { lacksContent = true }
    }
    let isBroken = try isBroken(members, but: pending)
    let isRefused = pending.contains { outbox.waiting[$0.sequence]?.isParked ?? false }
    if isBroken || isRefused { return try park(pending) }
    for member in pending { supersede(by: member) }
    let mustWait = try mustWait(pending)
    if lacksContent || mustWait {
      for member in pending where outbox.waiting[member.sequence] == nil {
        block(member.sequence)
        blockKey(of: member)
      }
      return
    }
    let size = sent.reduce(0) { $0 + $1.key.count + $1.valueLength + 64 }
    let fits = items.count + sent.count <= most && bytes + size <= session.limits.bytes
    guard items.isEmpty || fits else { return endBatch(before: change) }
    // Members outside of the scope are not sent.
    for member in pending { outbox.decide(member.sequence) }
    for member in sent {
      try add(member)
      // A later change of the key must not reach the peer before the group's verdict.
      blockKey(of: member)
    }
  }

  /// Ends the batch before a group, which then starts the next one.
  private mutating func endBatch(before change: LoggedChange) {
    isClosed = true
    outbox.resend(change.sequence)
  }

  /// Whether a member that is not pending any more was not applied either, so that the group cannot
  /// be complete. Of several changes of a key the last counts.
  private func isBroken(
    _ members: [LoggedChange], but pending: [LoggedChange]
  ) throws(TidemarkError) -> Bool {
    let waiting = Set(pending.map(\.sequence))
    var later: Set<[UInt8]> = []
    for member in members.reversed() where later.insert(member.key).inserted {
      if waiting.contains(member.sequence) || position(of: member) != nil { continue }
      if try isWithin(member) { return true }
    }
    return false
  }

  private mutating func mustWait(_ members: [LoggedChange]) throws(TidemarkError) -> Bool {
    if try isPreceded(members) { return true }
    let last = Dictionary(members.map { ($0.key, $0.sequence) }, uniquingKeysWith: max)
    for member in members {
      if outbox.waiting.entry(ofKey: member.key) != nil { return true }
      if try isBlocked(member, with: last) { return true }
    }
    return false
  }

  /// Parks the pending members of a group of which one member can never apply.
  private mutating func park(_ members: [LoggedChange]) throws(TidemarkError) {
    // Members that wait are parked after the decision on their keys.
    for member in members where outbox.waiting[member.sequence] == nil {
      // A replaced member is not parked: its replacement is sent, and no user could act on it.
      guard try log.newestChange(ofKey: member.key)?.sequence == member.sequence,
        try isWithin(member)
      else {
        outbox.decide(member.sequence)
        continue
      }
      let why = "another change of its atomic write did not apply"
      outbox.wait(member, for: .parked(SyncRejection(code: SyncRejection.ofGroup, message: why)))
    }
  }
}
