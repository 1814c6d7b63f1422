internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The resolver's answer to a change that was written to apply together with others.
///
/// A group is sent as it was written, or not at all. A merged value, or a local one that gets
/// another key, goes in a new group, with the other members as they are here now.
extension PeerView {
  /// The pending changes of a key that belong to atomic groups.
  func pendingMembers(upTo newest: LoggedChange) throws(TidemarkError) -> [LoggedChange] {
    try unsent(upTo: newest).filter { $0.attributes.atomicGroup != 0 && isPending($0) }
  }

  /// The own changes of a key that the feed does not have, the newest first.
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

  /// The changes of other keys that belong to the groups of a key's changes.
  /// - Returns: nil when one of them was given up, so that none may apply.
  fileprivate func companions(of members: [LoggedChange]) throws(TidemarkError) -> [LoggedChange]? {
    var found: [LoggedChange] = []
    for member in members {
      var seen: Set<[UInt8]> = [member.key]
      // The last of several changes of a key counts.
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
  /// Ends the pending changes of a key, as far as something else takes their place: with those
  /// that belong to groups, and what was written before these.
  /// - Parameter isForUser: whether the user has decided so, of this key alone if need be.
  /// - Returns: what is to be written together with the result; nil when the resolver's may not go,
  ///   since another of the group was given up: then the user is to decide.
  mutating func endPending(
    upTo newest: LoggedChange, for resolution: Resolution, isForUser: Bool
  ) throws(TidemarkError) -> [LoggedChange]? {
    guard resolution.writes || resolution == .remote else { return [] }
    let pending = try unsent(upTo: newest).filter { isPending($0) }
    let members = pending.filter { $0.attributes.atomicGroup != 0 }
    let found = resolution.writes ? try companions(of: members) : []
    if found == nil, newest.attributes.atomicGroup != 0, !isForUser { return nil }
    for change in pending { outbox.decide(change.sequence) }
    let companions = found ?? []
    // The companions are decided as they were, since they are written once more.
    for companion in companions {
      // A question that is open on it, to the peer or to the user, is put again when the new one
      // meets the peer.
      if outbox.waiting.entry(ofKey: companion.key) != nil {
        // That of yet another group goes with that.
        outbox.supersede(companion.key, by: .max)
        try forgetRemote(ofKey: companion.key)
      }
      guard let newest = try log.newestChange(ofKey: companion.key) else { continue }
      for change in try unsent(upTo: newest) where change.sequence >= companion.sequence {
        let group = change.attributes.atomicGroup
        // A change that belongs to yet another group goes with that, before.
        if group == 0 || group == companion.attributes.atomicGroup {
          outbox.decide(change.sequence)
        }
      }
    }
    return companions
  }

  /// Writes the companions of a result once more, behind it and with its group: with the values
  /// that their keys have now.
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

extension Resolution {
  /// Whether it makes a new change.
  var writes: Bool {
    switch self {
    case .merged, .both: true
    case .local, .remote, .ask: false
    }
  }
}
