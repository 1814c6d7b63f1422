internal import Tidemark
internal import TidemarkEngine

/// Writes that apply at the peer together or not at all.
extension Forming {
  /// Takes all of an atomic group that is pending, into one batch.
  mutating func takeGroup(
    of change: LoggedChange, _ wasLost: Bool
  ) throws(TidemarkError) {
    guard !items.contains(where: { $0.sequence == change.sequence }) else { return }
    let members = try session.engine.atomicGroup(of: change).filter(\.isOwn)
    for member in members where try dependsOnVerdict(member) {
      isClosed = true
      progress.again.insert(change.sequence)
      if wasLost { progress.lost.insert(change.sequence) }
      return
    }
    let pending = members.filter {
      $0.sequence == change.sequence || session.isPending($0, in: progress)
    }
    let decided = members.filter { member in
      !pending.contains { $0.sequence == member.sequence }
    }
    let isBroken = try isBroken(decided)
    if isBroken || pending.contains(where: isParked) { return try park(pending) }
    for member in pending { _ = supersede(by: member) }
    if try mustWait(pending) {
      for member in pending where progress.waiting[member.sequence] == nil {
        hold(member.sequence, wasLost && member.sequence == change.sequence)
        heldKeys.insert(member.key)
      }
      return
    }
    var sent: [LoggedChange] = []
    for member in pending where try session.isWithin(member) { sent.append(member) }
    guard items.isEmpty || fits(sent) else {
      isClosed = true
      progress.again.insert(change.sequence)
      if wasLost { progress.lost.insert(change.sequence) }
      return
    }
    for member in sent {
      progress.again.remove(member.sequence)
      progress.lost.remove(member.sequence)
      try add(member)
      // What was made after it must not be judged before it is.
      heldKeys.insert(member.key)
    }
  }

  /// Whether one of the members that are decided has come to nothing.
  private func isBroken(_ decided: [LoggedChange]) throws(TidemarkError) -> Bool {
    for member in decided where session.position(of: member) == nil {
      if try session.isWithin(member) { return true }
    }
    return false
  }

  private mutating func mustWait(_ members: [LoggedChange]) throws(TidemarkError) -> Bool {
    let last = Dictionary(members.map { ($0.key, $0.sequence) }, uniquingKeysWith: max)
    for member in members {
      if progress.waiting.entry(ofKey: member.key) != nil { return true }
      if try isHeld(member, with: last) { return true }
    }
    return false
  }

  private func isParked(_ change: LoggedChange) -> Bool {
    switch progress.waiting[change.sequence] {
    case .parked: true
    default: false
    }
  }

  private func fits(_ members: [LoggedChange]) -> Bool {
    let size = members.reduce(0) { $0 + $1.key.count + $1.valueLength + 64 }
    return items.count + members.count <= most && bytes + size <= session.limits.bytes
  }

  /// One of the group will never apply, so that none does.
  private mutating func park(_ members: [LoggedChange]) throws(TidemarkError) {
    for member in members where !isParked(member) {
      // Whatever has taken its place goes by itself, and nobody could do anything about this one.
      guard try session.engine.newestChange(ofKey: member.key)?.sequence == member.sequence else {
        progress.decide(member.sequence)
        continue
      }
      progress.wait(
        member,
        for: .parked(
          Rejection(
            code: "aborted",
            message: "it was to apply together with others, of which one did not")))
    }
  }
}

extension Engine {
  /// Most entries of a group: more do not fit into a batch.
  private static let mostOfGroup = 4_096

  /// The entries that were written with one, to apply at a peer together: they stand one behind
  /// the other.
  func atomicGroup(of change: LoggedChange) throws(TidemarkError) -> [LoggedChange] {
    let group = change.attributes.atomicGroup
    var members = [change]
    func member(at sequence: UInt64) throws(TidemarkError) -> LoggedChange? {
      guard let found = try self.change(at: sequence), found.attributes.atomicGroup == group,
        members.count < Self.mostOfGroup
      else { return nil }
      return found
    }
    while let former = try member(at: members[0].sequence - 1) { members.insert(former, at: 0) }
    while let next = try member(at: members[members.count - 1].sequence + 1) {
      members.append(next)
    }
    return members
  }
}
