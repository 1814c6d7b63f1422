internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The user's decisions: retry or discard a parked entry, or decide on a conflict.
extension SyncSession {
  /// The entries that wait for the user and are still the newest of their keys, by sequence.
  package func waitingForUser() throws(TidemarkError) -> [(
    change: LoggedChange, reason: PendingState
  )] {
    var result: [(change: LoggedChange, reason: PendingState)] = []
    for (sequence, reason) in outbox.waiting.sorted(by: { $0.key < $1.key }) {
      guard let change = try change(at: sequence, waiting: { !$0.state.goesOn }) else { continue }
      result.append((change, reason.state))
    }
    return result
  }

  static func waitsNoMore(_ sequence: UInt64) -> TidemarkError {
    TidemarkError(
      .invalidArgument, "the entry does not wait for a decision any more",
      sequences: sequence...sequence)
  }

  /// Handles parked changes in parts of one commit each, so that none blocks other writers for
  /// long.
  private func inParts(_ sequences: [UInt64], _ body: ([LoggedChange]) throws -> Void) throws {
    var part: [LoggedChange] = []
    var bytes = 0
    for sequence in sequences {
      guard let change = try change(at: sequence, waiting: \.isParked) else { continue }
      if part.count == Self.mostAtOnce || bytes + change.valueLength > Self.mostBytesAtOnce {
        try body(part)
        (part, bytes) = ([], 0)
      }
      part.append(change)
      bytes += change.valueLength
    }
    if !part.isEmpty { try body(part) }
  }

  private static let mostAtOnce = 256
  private static let mostBytesAtOnce = 8 << 20

  /// Sends parked changes again, as new entries with the same content. Sequences that are not
  /// parked any more are skipped.
  /// - Returns: the sequences of the new entries.
  package func retry(_ sequences: [UInt64]) throws -> [UInt64] {
    var again: [UInt64] = []
    try inParts(sequences) { changes in
      var keys: [[UInt8]] = []
      try commit { tx in
        keys = []
        // After a write since then the change is not parked any more.
        for change in changes where try tx.isParked(change.sequence) {
          tx.outbox.decide(change.sequence)
          var attributes = EntryAttributes()
          attributes.time = change.attributes.time
          attributes.priority = change.attributes.priority
          try tx.operations.add(
            change.kind == .delete ? nil : log.content(of: change), ofKey: change.key, attributes,
            upon: log.slot(ofKey: change.key))
          keys.append(change.key)
        }
      }
      for key in keys { again.append(try log.slot(ofKey: key)?.sequence ?? 0) }
    }
    return again
  }

  /// Gives parked changes up: each key gets the peer's version back. If the log does not have that,
  /// the key keeps its value until the peer has sent it. Sequences not parked any more are skipped.
  /// - Returns: how many were given up, and the pending entries that name them in `after`.
  func discard(
    _ sequences: [UInt64], _ table: PendingTable
  ) throws -> (count: Int, dependents: [LoggedChange]) {
    var given: Set<UInt64> = []
    try inParts(sequences) { changes in
      var part: [UInt64] = []
      try commit { tx in
        part = []
        for change in changes where try tx.isParked(change.sequence) {
          part.append(change.sequence)
          guard let known = try tx.remoteState(before: change) else {
            // As after a verdict `lost`: the values request brings the peer's version.
            tx.outbox.wait(change, for: .lost(.beginning))
            continue
          }
          tx.outbox.decide(change.sequence)
          try tx.acceptRemote(known, ofKey: change.key, upon: log.slot(ofKey: change.key))
        }
      }
      given.formUnion(part)
    }
    guard let first = given.min() else { return (0, []) }
    var dependents: [LoggedChange] = []
    for row in table.liveRows where row.sequence > first && !given.contains(row.sequence) {
      if let change = try log.change(at: row.sequence),
        change.attributes.after.contains(where: { given.contains($0) })
      {
        dependents.append(change)
      }
    }
    return (given.count, dependents)
  }

  /// The three states of a key that the user is to decide.
  func conflict(_ change: LoggedChange) throws(TidemarkError) -> SyncConflict {
    conflict(
      change, try baseContent(of: change),
      change.kind == .put ? try log.content(of: change) : nil,
      try records.remote(ofKey: change.key)?.state)
  }

  /// Carries out the user's decision on a key.
  func decide(_ key: [UInt8], _ resolution: ConflictResolution) throws {
    guard let sequence = try log.newestChange(ofKey: key)?.sequence else {
      throw TidemarkError(.invalidArgument, "there is nothing to decide on the key")
    }
    guard let change = try change(at: sequence, waiting: { $0 == .needsDecision }) else {
      throw Self.waitsNoMore(sequence)
    }
    guard var remote = try records.remote(ofKey: key)?.state, resolution != .ask else {
      throw TidemarkError(.invalidArgument, "give a decision other than to ask")
    }
    // The user's decision restarts the count of the resolver's rounds.
    remote.rounds = 0
    let local = change.kind == .put ? try log.content(of: change) : nil
    try commit { tx in
      guard try tx.change(at: sequence, waiting: { $0 == .needsDecision }) != nil else {
        throw Self.waitsNoMore(sequence)
      }
      let slot = try log.slot(ofKey: key)
      try tx.apply(resolution, change, local, remote, slot, isForUser: true)
    }
  }
}

extension PeerView {
  /// The peer's version of the key of a change that it refused; nil if this log does not have it.
  fileprivate func remoteState(before change: LoggedChange) throws(TidemarkError) -> RemoteState? {
    if let conflicting = try records.remote(ofKey: change.key) { return conflicting.state }
    var previous = change.previous
    while previous > 0 {
      guard let version = try log.change(at: previous) else { return nil }
      let settledAt =
        version.attributes.origin == nil ? acknowledged.position(of: version.sequence) : nil
      if let position = version.position ?? settledAt {
        return try remoteState(of: version, at: position)
      }
      previous = version.previous
    }
    return RemoteState(
      FeedEntry(
        position: .beginning, kind: .delete,
        operation: OperationID(replica: replica, sequence: change.sequence), key: change.key))
  }

  /// An entry that waits for such a reason and is still its key's newest; else nil.
  fileprivate func change(
    at sequence: UInt64, waiting isWanted: (WaitReason) -> Bool
  ) throws(TidemarkError) -> LoggedChange? {
    guard let reason = outbox.waiting[sequence], isWanted(reason),
      let change = try log.change(at: sequence),
      try log.newestChange(ofKey: change.key)?.sequence == sequence
    else { return nil }
    return change
  }

  fileprivate func isParked(_ sequence: UInt64) throws(TidemarkError) -> Bool {
    try change(at: sequence, waiting: \.isParked) != nil
  }
}
