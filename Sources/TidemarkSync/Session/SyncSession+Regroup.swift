internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The resolver's decision on a member of an atomic group, whose changes apply together or not at
/// all.
///
/// A group is sent as it was written, or not at all. If the decision writes a value (merged, or
/// local under another key), a new group has this and the other members with their present values.
extension PeerView {
  /// The pending changes of a key that belong to atomic groups.
  func pendingMembers(upTo newest: LoggedChange) throws(TidemarkError) -> [LoggedChange] {
    try unsent(upTo: newest).filter { $0.attributes.atomicGroup != 0 && isPending($0) }
  }

  /// The own changes of a key since its last version in the feed, the newest first.
  fileprivate func unsent(upTo newest: LoggedChange) throws(TidemarkError) -> [LoggedChange] {
    var found: [LoggedChange] = []
    var version: LoggedChange? = newest
    while let change = version {
      if change.kind != .touch {
        guard change.isOwn, position(of: change) == nil else { break }
        found.append(change)
      }
      version = try log.change(at: change.previous)
    }
    return found
  }

  /// The companions: the changes of other keys in the groups of a key's changes.
  /// - Returns: nil if one of them was given up, so that the group cannot apply.
  fileprivate func companions(of members: [LoggedChange]) throws(TidemarkError) -> [LoggedChange]? {
    var found: [LoggedChange] = []
    for member in members {
      var seen: Set<[UInt8]> = [member.key]
      // Of several changes of a key the last counts.
      for other in try log.atomicGroup(of: member).reversed()
      where other.isOwn && seen.insert(other.key).inserted {
        if isPending(other) {
          guard try log.newestChange(ofKey: other.key)?.isOwn == true else { return nil }
          found.append(other)
        } else if position(of: other) == nil, try isWithin(other) {
          return nil
        }
      }
    }
    return found.reversed()
  }
}

extension SyncTransaction {
  /// Marks the pending changes of a key as decided if the decision replaces them, with their
  /// companions and the later pending changes of the companions' keys: ``rewrite(_:group:)`` writes
  /// the present values of those.
  /// - Parameter isForUser: whether the user has decided: then a broken group does not stop it.
  /// - Returns: the companions, to be written again with the result; nil if the resolver's result
  ///   cannot be sent, since another member was given up: then the user is to decide.
  mutating func endPending(
    upTo newest: LoggedChange, for resolution: ConflictResolution, isForUser: Bool
  ) throws(TidemarkError) -> [LoggedChange]? {
    guard resolution.writes || resolution == .remote else { return [] }
    let pending = try unsent(upTo: newest).filter { isPending($0) }
    let members = pending.filter { $0.attributes.atomicGroup != 0 }
    let found = resolution.writes ? try companions(of: members) : []
    // A newest change outside of groups stands on its own, whatever became of an older one's group.
    if found == nil, newest.attributes.atomicGroup != 0, !isForUser { return nil }
    for change in pending { outbox.decide(change.sequence) }
    let companions = found ?? []
    // The companions' old changes are decided, since `rewrite` writes them again.
    for companion in companions {
      // Its open conflict or question to the user arises again at the verdict on the new change.
      if outbox.waiting.entry(ofKey: companion.key) != nil {
        // A change of yet another group is resent with that group.
        // No change takes its place (`.max`); it only waits no more.
        outbox.supersede(companion.key, by: .max)
        try forgetRemote(ofKey: companion.key)
      }
      guard let newest = try log.newestChange(ofKey: companion.key) else { continue }
      for change in try unsent(upTo: newest) where change.sequence >= companion.sequence {
        let group = change.attributes.atomicGroup
        // A change of yet another group is sent earlier, with that group.
        if group == 0 || group == companion.attributes.atomicGroup {
          outbox.decide(change.sequence)
        }
      }
    }
    return companions
  }

  /// Writes the companions again, in the result's group, with the present values of their keys.
  mutating func rewrite(_ companions: [LoggedChange], group: UInt64) throws(TidemarkError) {
    var written: Set<[UInt8]> = []
    for companion in companions where written.insert(companion.key).inserted {
      guard let newest = try log.newestChange(ofKey: companion.key),
        let slot = try log.slot(ofKey: companion.key)
      else { continue }
      var attributes = newest.attributes
      attributes.base = nil
      attributes.atomicGroup = group
      let content = newest.kind == .delete ? nil : try log.content(of: newest)
      try operations.add(content, ofKey: newest.key, attributes, upon: slot)
    }
  }
}

extension ConflictResolution {
  /// Whether it writes a new own change.
  var writes: Bool {
    switch self {
    case .merged, .both: true
    case .local, .remote, .ask: false
    }
  }
}
