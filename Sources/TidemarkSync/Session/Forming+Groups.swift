internal import Tidemark
internal import TidemarkEngine

/// Writes that apply at the peer together or not at all.
extension Forming {
  /// Takes all of an atomic group that is pending, into one batch.
  mutating func takeGroup(of change: LoggedChange) throws(TidemarkError) {
    let members = try session.log.atomicGroup(of: change).filter(\.isOwn)
    // It is in this batch already.
    guard !members.contains(where: { taken[$0.key] == $0.sequence }) else { return }
    for member in members where try session.isInFlight(member.key) {
      return endBatch(before: change)
    }
    let pending = members.filter {
      $0.sequence == change.sequence || session.isPending($0, in: progress)
    }
    var sent: [LoggedChange] = []
    var lacksContent = false
    for member in pending where try session.isWithin(member) {
      sent.append(member)
      if waitsForContent(member) { lacksContent = true }
    }
    let isBroken = try isBroken(members, but: pending)
    let isRefused = pending.contains { progress.waiting[$0.sequence]?.isParked ?? false }
    if isBroken || isRefused { return try park(pending) }
    for member in pending { supersede(by: member) }
    let mustWait = try mustWait(pending)
    if lacksContent || mustWait {
      for member in pending where progress.waiting[member.sequence] == nil {
        hold(member.sequence)
        holdKey(of: member)
      }
      return
    }
    let size = sent.reduce(0) { $0 + $1.key.count + $1.valueLength + 64 }
    let fits = items.count + sent.count <= most && bytes + size <= session.limits.bytes
    guard items.isEmpty || fits else { return endBatch(before: change) }
    // Members out of scope are done with.
    for member in pending { progress.decide(member.sequence) }
    for member in sent {
      try add(member)
      // A change made after it must not be judged before it is.
      holdKey(of: member)
    }
  }

  /// Leaves a group for the next batch, and all that follows it.
  private mutating func endBatch(before change: LoggedChange) {
    isClosed = true
    progress.again.insert(change.sequence)
  }

  /// Whether one of the members that are not pending any more has come to nothing. Of several
  /// changes of a key the last counts.
  private func isBroken(
    _ members: [LoggedChange], but pending: [LoggedChange]
  ) throws(TidemarkError) -> Bool {
    let waiting = Set(pending.map(\.sequence))
    var later: Set<[UInt8]> = []
    for member in members.reversed() where later.insert(member.key).inserted {
      if waiting.contains(member.sequence) || session.position(of: member) != nil { continue }
      if try session.isWithin(member) { return true }
    }
    return false
  }

  private mutating func mustWait(_ members: [LoggedChange]) throws(TidemarkError) -> Bool {
    if try isPreceded(members) { return true }
    let last = Dictionary(members.map { ($0.key, $0.sequence) }, uniquingKeysWith: max)
    for member in members {
      if progress.waiting.entry(ofKey: member.key) != nil { return true }
      if try isHeld(member, with: last) { return true }
    }
    return false
  }

  /// One of the group will never apply, so that none does.
  private mutating func park(_ members: [LoggedChange]) throws(TidemarkError) {
    // Members on whose keys a decision is to be made come here after it.
    for member in members where progress.waiting[member.sequence] == nil {
      // The change that took its place goes by itself, and nobody could do anything about this one.
      guard try session.log.newestChange(ofKey: member.key)?.sequence == member.sequence,
        try session.isWithin(member)
      else {
        progress.decide(member.sequence)
        continue
      }
      let why = "it was to apply together with others, of which one did not"
      progress.wait(member, for: .parked(Rejection(code: "aborted", message: why)))
    }
  }
}
