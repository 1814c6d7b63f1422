internal import Tidemark
internal import TidemarkEngine

/// What the user does about entries that wait for somebody.
extension SyncSession {
  /// The entries that wait for the user and are still their keys' newest, in the order of their
  /// sequences.
  func waitingForUser() throws(TidemarkError) -> [(change: LoggedChange, reason: PendingState)] {
    var result: [(change: LoggedChange, reason: PendingState)] = []
    for (sequence, reason) in progress.waiting.sorted(by: { $0.key < $1.key })
    where !reason.state.goesOn {
      guard let change = try engine.change(at: sequence),
        try engine.newestChange(ofKey: change.key)?.sequence == sequence
      else { continue }
      result.append((change, reason.state))
    }
    return result
  }

  private func waitingChange(
    _ sequence: UInt64, _ isWanted: (PendingState) -> Bool
  ) throws(TidemarkError) -> LoggedChange {
    guard let reason = progress.waiting[sequence]?.state, isWanted(reason),
      let change = try engine.change(at: sequence),
      try engine.newestChange(ofKey: change.key)?.sequence == sequence
    else {
      throw TidemarkError(
        .invalidArgument, "the entry does not wait for anybody any more",
        sequences: sequence...sequence)
    }
    return change
  }

  private static func isParked(_ state: PendingState) -> Bool {
    if case .parked = state { true } else { false }
  }

  /// Sends what was refused once more, as a new entry with the same content.
  /// - Returns: the sequence of the new entry.
  func retry(_ sequence: UInt64) throws -> UInt64 {
    let change = try waitingChange(sequence, Self.isParked)
    let content = try engine.content(of: change)
    try commit { operations, next, _ in
      // Somebody may have written in between.
      _ = try waitingChange(sequence, Self.isParked)
      let slot = try engine.slot(ofKey: change.key.rawSpan)
      next.waiting.remove(sequence)
      var attributes = EntryAttributes()
      attributes.hash = content.hash
      attributes.maxAge = content.maxAgeSeconds
      attributes.time = change.attributes.time
      attributes.priority = change.attributes.priority
      let condition = operations.addCondition(.entry(slot?.sequence ?? 0))
      if change.kind == .delete {
        try operations.add(
          .delete, key: change.key.rawSpan, attributes: attributes, condition: condition,
          isForced: true)
      } else {
        try operations.add(
          .put, key: change.key.rawSpan, value: content.value.rawSpan,
          labelSet: try operations.addLabelSet(content.labels.map(\.bytes)),
          attributes: attributes, condition: condition)
      }
    }
    return try engine.slot(ofKey: change.key.rawSpan)?.sequence ?? sequence
  }

  /// Gives a change up: the key gets back what the peer has. Where the log does not say what that
  /// is, the key keeps its value until the peer has been asked.
  /// - Returns: the pending entries that were to come after it.
  func discard(_ sequence: UInt64, _ table: PendingTable) throws -> [LoggedChange] {
    let change = try waitingChange(sequence, Self.isParked)
    let known = try remoteState(before: change)
    try commit { operations, next, _ in
      _ = try waitingChange(sequence, Self.isParked)
      let slot = try engine.slot(ofKey: change.key.rawSpan)
      guard let known else {
        // As if a policy had decided for whatever the peer has.
        next.wait(change, for: .lost(.beginning))
        return
      }
      next.waiting.remove(sequence)
      try add(known, ofKey: change.key, upon: slot, into: &operations)
    }
    return try dependents(of: sequence, table)
  }

  private func dependents(
    of sequence: UInt64, _ table: PendingTable
  ) throws(TidemarkError) -> [LoggedChange] {
    var result: [LoggedChange] = []
    for row in table.liveRows where row.sequence > sequence {
      if let change = try engine.change(at: row.sequence),
        change.attributes.after.contains(sequence)
      {
        result.append(change)
      }
    }
    return result
  }

  /// What the peer has at the key of a change that it does not have; nil when only the peer can
  /// say.
  private func remoteState(before change: LoggedChange) throws(TidemarkError) -> RemoteState? {
    if case .parked(Self.tooLarge)? = progress.waiting[change.sequence] { return nil }
    if let beside = try records.remote(ofKey: change.key) { return beside.state }
    var previous = change.previous
    while previous > 0 {
      guard let version = try engine.change(at: previous) else { return nil }
      let settledAt =
        version.attributes.origin == nil ? settled.position(of: version.sequence) : nil
      if let position = version.position ?? settledAt {
        return RemoteState(
          same: version, try engine.content(of: version), at: position,
          version.attributes.origin.flatMap { ReplicaID($0.replica) } ?? replica)
      }
      previous = version.previous
    }
    return RemoteState(
      FeedEntry(
        position: .beginning, kind: .delete,
        operation: OperationID(replica: replica, sequence: change.sequence), key: change.key))
  }

  /// What both sides and their base are, of an entry that the user is to decide.
  func conflict(_ change: LoggedChange) throws(TidemarkError) -> Conflict {
    let remote = try records.remote(ofKey: change.key)?.state
    return Conflict(
      key: change.key, base: try baseContent(of: change),
      local: change.kind == .put ? try engine.content(of: change) : nil,
      remote: remote.flatMap { $0.isDeleted ? nil : $0.content },
      localTime: HybridTime(change.commitTime), remoteTime: HybridTime(remote?.commitTime ?? 0))
  }

  /// Carries out what the user has decided on a key.
  func decide(_ key: [UInt8], _ resolution: Resolution) throws {
    guard let sequence = try engine.newestChange(ofKey: key)?.sequence else {
      throw TidemarkError(.invalidArgument, "there is nothing to decide on the key")
    }
    let change = try waitingChange(sequence) { $0 == .needsDecision }
    guard var remote = try records.remote(ofKey: key)?.state, resolution != .ask else {
      throw TidemarkError(.invalidArgument, "give a decision other than to ask")
    }
    // The resolver may run again from here.
    remote.rounds = -1
    let state = remote
    let local = change.kind == .put ? try engine.content(of: change) : nil
    try commit { operations, next, _ in
      _ = try waitingChange(sequence) { $0 == .needsDecision }
      let slot = try engine.slot(ofKey: key.rawSpan)
      try carryOut(
        resolution, change, local, state, slot, isForUser: true, into: &operations, &next)
    }
  }
}
