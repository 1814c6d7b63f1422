internal import Tidemark
internal import TidemarkEngine

/// The order of sending: dependencies and priorities.
extension BatchBuilder {
  /// Whether a change has to wait for another one, before which it must not be sent.
  /// - Parameter last: the last changes by key of the group that it goes with.
  mutating func isBlocked(
    _ change: LoggedChange, with last: [[UInt8]: UInt64] = [:]
  ) throws(TidemarkError) -> Bool {
    if let from = blockedKeys[change.key], from < change.sequence { return true }
    if change.attributes.atomicGroup == 0, try isPreceded(change) { return true }
    guard !change.attributes.after.isEmpty, !PlantedSyncBug.isOn(.orderIgnored) else {
      return false
    }
    // An older change of the key is in this batch, and a peer may apply a batch in any order.
    if change.attributes.atomicGroup == 0, taken.sends(change.key) { return true }
    for target in change.attributes.after where target < change.sequence {
      if try isOutstanding(target, with: last) {
        blockKey(of: change)
        deferred.put(change.sequence, behind: target)
        return true
      }
    }
    return false
  }

  /// Whether the target of an `after:` has no verdict yet: the peer may refuse it, so what comes
  /// after it cannot go in the same batch, except with its atomic group. A target that was replaced
  /// before it was sent counts as the change in its place, and as no later one: that may itself
  /// come after what waits here.
  private func isOutstanding(
    _ target: UInt64, with last: [[UInt8]: UInt64]
  ) throws(TidemarkError) -> Bool {
    guard let change = try log.change(at: target), change.isOwn else { return false }
    if taken.sends(change.key) { return true }
    guard position(of: change) == nil else { return false }
    if last[change.key] ?? 0 >= target { return false }
    let newest = try newest(inPlaceOf: change)
    // A change that waits for the user is never sent once there is a newer one.
    let isReplaced =
      try log.newestChange(ofKey: change.key).map { $0.sequence > target } ?? true
      && outbox.waiting[target].map { !$0.state.goesOn } ?? false
    if !isReplaced, isPending(change) { return true }
    guard let newest, newest.isOwn, newest.sequence > target else { return false }
    return isPending(newest)
  }

  // MARK: Priority

  /// Whether an entry goes only when nothing else does, or when everything may again; then it is
  /// kept until then. What others wait for cannot wait for the end.
  mutating func canWait(_ change: LoggedChange) -> Bool {
    let priority = change.attributes.priority
    let isForEnd = priority < 0 && !deferred.wanted.contains(change.sequence)
    guard least.map({ priority < $0 }) ?? isForEnd else { return false }
    if priority < 0 { deferred.low.insert(change.sequence) }
    return true
  }

  /// Frees changes that come after others on which there is a verdict now.
  mutating func release() throws(TidemarkError) {
    for target in deferred.targets(outside: outbox.pending).sequences
    where try !isOutstanding(target, with: [:]) {
      deferred.release(target)
    }
  }

  /// Adds changes of a high priority, before those that were written earlier.
  mutating func addUrgent() throws(TidemarkError) {
    // In a narrow gate nothing else is sent that would bring the walk nearer to them.
    try deferred.findUrgent(outbox, in: log, most: least == nil ? DeferredChanges.lookAhead : .max)
    for (sequence, priority) in deferred.urgent where priority >= least ?? .min {
      if isFull { return }
      // It stays known until its verdict: the batch may be aborted.
      if !isPending(sequence) { deferred.removeUrgent(sequence) }
      guard outbox.isUnsent(sequence), !deferred.blocked.contains(sequence),
        let change = try log.change(at: sequence)
      else { continue }
      let isWhole = change.attributes.atomicGroup != 0
      let together = isWhole ? try log.atomicGroup(of: change) : [change]
      if try isInFlight(together) { continue }
      guard try !isPreceded(together) else {
        // It follows the older change in the usual walk, which a narrow gate does not make.
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

  /// Whether an older change of one of the keys has to be sent before.
  mutating func isPreceded(_ changes: [LoggedChange]) throws(TidemarkError) -> Bool {
    for change in changes where try isPreceded(change) { return true }
    return false
  }

  /// Only what was put off can be overtaken, and that is to be sent again. Plain changes of a key
  /// go as one, unless the later one comes after others; several of a group go together.
  private mutating func isPreceded(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.previous > 0 else { return false }
    let group = change.attributes.atomicGroup
    let goesAlone = group == 0 && !change.attributes.after.isEmpty
    let last = taken[change.key] ?? 0
    var former = try log.change(at: change.previous)
    while let version = former, version.sequence > last {
      if version.kind == .put || version.kind == .delete {
        guard version.isOwn, position(of: version) == nil else { return false }
        // A waiting change does not count here: it is superseded, or blocks its key.
        if goesAlone || version.attributes.atomicGroup != group,
          outbox.waiting[version.sequence] == nil, isPending(version)
        {
          deferred.wanted.insert(version.sequence)
          return true
        }
      }
      former = try log.change(at: version.previous)
    }
    return false
  }
}

extension SyncSession {
  /// So many entries are looked at for what one of them waits for.
  private static let mostTargets = 256

  /// The state of a pending entry: blocked if it comes, over others, after one that waits for the
  /// user.
  func stateOfUnsent(_ change: LoggedChange) throws(TidemarkError) -> PendingState {
    var left = change.attributes.after.filter { $0 < change.sequence }
    var seen: Set<UInt64> = []
    while let target = left.popLast(), seen.count < Self.mostTargets {
      guard seen.insert(target).inserted, let found = try log.change(at: target), found.isOwn,
        position(of: found) == nil
      else { continue }
      // A replaced change counts as what replaced it.
      let newest = try log.newestChange(ofKey: found.key) ?? found
      guard isPending(found) || isPending(newest) else { continue }
      if let reason = outbox.waiting[newest.sequence], !reason.state.goesOn {
        return .blocked(by: newest.sequence)
      }
      left += newest.attributes.after.filter { $0 < newest.sequence }
    }
    return .pending
  }

  /// Whether an entry up to a sequence comes after others that wait for the user, as of the last
  /// batch.
  func isBlocked(through sequence: UInt64) -> Bool {
    deferred.blocked.intersection(outbox.pending).first.map { $0 <= sequence } ?? false
  }
}

/// Writes that apply at the peer together or not at all.
extension BatchBuilder {
  /// Adds all pending changes of an atomic group, to one batch.
  mutating func addGroup(of change: LoggedChange) throws(TidemarkError) {
    var members: [LoggedChange] = []
    for member in try log.atomicGroup(of: change) where member.isOwn {
      if try !log.isEvicted(member) { members.append(member) }
    }
    guard members.contains(where: { $0.sequence == change.sequence }) else { return }
    // The batch has the group already.
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
    // Members outside of the scope need not be sent.
    for member in pending { outbox.decide(member.sequence) }
    for member in sent {
      try add(member)
      // A later change of the key must not reach the peer before the group's verdict.
      blockKey(of: member)
    }
  }

  /// Ends the batch before a group, which begins the next one.
  private mutating func endBatch(before change: LoggedChange) {
    isClosed = true
    outbox.resend(change.sequence)
  }

  /// Whether one of the members that are not pending any more has come to nothing. Of several
  /// changes of a key the last counts.
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

  /// Parks a group of which one member can never apply.
  private mutating func park(_ members: [LoggedChange]) throws(TidemarkError) {
    // Members on whose keys a decision is to be made come here after it.
    for member in members where outbox.waiting[member.sequence] == nil {
      // The change that took its place goes by itself, and nobody could do anything about this one.
      guard try log.newestChange(ofKey: member.key)?.sequence == member.sequence,
        try isWithin(member)
      else {
        outbox.decide(member.sequence)
        continue
      }
      let why = "it was to apply together with others, of which one did not"
      outbox.wait(member, for: .parked(Rejection(code: Rejection.ofGroup, message: why)))
    }
  }
}
