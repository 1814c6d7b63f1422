public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// An entry that the peer has refused. It stays in the store until you retry it, discard it or
/// write its key again.
public struct ParkedEntry: Sendable, Hashable {
  /// The key of the refused entry.
  public var key: Key
  /// The sequence of the refused entry in the store's log: the argument of ``Replicator/retry(_:)``
  /// and ``Replicator/discard(_:)``.
  public var sequence: UInt64
  /// Whether the refused entry is a put or a delete.
  public var kind: ChangeKind
  /// When this store committed the refused entry.
  public var commitTime: Timestamp
  /// Why the peer refused the entry: a code for programs and a message for people.
  public var rejection: SyncRejection
}

extension HostState {
  mutating func parked() throws(TidemarkError) -> [ParkedEntry] {
    try session().waitingForUser().compactMap { change, state in
      guard case .parked(let rejection) = state else { return nil }
      return ParkedEntry(
        key: Key(change.key), sequence: change.sequence,
        kind: change.kind == .put ? .put : .delete,
        commitTime: HybridTime(change.commitTime).timestamp, rejection: rejection)
    }
  }

  mutating func discard(_ sequences: [UInt64]) throws -> (count: Int, dependents: [Key]) {
    let table = try pending()
    let (count, dependents) = try session().discard(sequences, table)
    return (count, dependents.map { Key($0.key) })
  }
}

extension Replicator {
  /// Returns a receipt for one of this store's entries, by its sequence. The receipt tells the
  /// entry's outcome at the peer and can wait for it.
  public func receipt(forSequence sequence: UInt64) -> SyncReceipt {
    SyncReceipt(sequence: sequence, host: host)
  }

  /// Returns a receipt for each entry of a write, so that you can wait until the peer has it.
  public func receipts(for write: WriteReceipt) -> [SyncReceipt] {
    write.sequences.map { SyncReceipt(sequence: $0, host: host) }
  }

  /// Counts the entries that this peer does not have yet, at the moment of the call.
  public var pending: PendingSummary {
    get async throws(TidemarkError) { try await host.performPublic { try $0.pendingSummary() } }
  }

  /// Returns the entries that the peer has refused, in the order of their sequences.
  ///
  /// The replicator sends other entries without them. A new put or delete of the key replaces a
  /// refused entry.
  public func parked() async throws(TidemarkError) -> [ParkedEntry] {
    try await host.performPublic { try $0.parked() }
  }

  /// Sends a refused entry again, as a new entry with the same content.
  /// - Returns: the sequence of the new entry.
  /// - Throws: `invalidArgument` when the entry is not parked any more.
  @discardableResult
  public func retry(_ sequence: UInt64) async throws(TidemarkError) -> UInt64 {
    let again = try await retry(all: [sequence]).first
    guard let again else { throw SyncSession.waitsNoMore(sequence) }
    return again
  }

  /// Sends several refused entries again, as new entries in one commit.
  /// - Returns: the sequences of the new entries. Entries that are no longer parked are skipped.
  @discardableResult
  public func retry(all sequences: [UInt64]) async throws(TidemarkError) -> [UInt64] {
    try await rescheduling { try $0.session().retry(sequences) }
  }

  /// Discards several refused entries in one commit; see ``discard(_:)``.
  /// - Returns: the keys of pending entries written `after` them. Entries that are no longer parked
  ///   are skipped.
  @discardableResult
  public func discard(all sequences: [UInt64]) async throws(TidemarkError) -> [Key] {
    try await rescheduling { try $0.discard(sequences).dependents }
  }

  /// Discards a refused entry: its key gets the peer's version back. If the log does not have that
  /// version, this happens once the peer has sent it.
  /// - Returns: the keys of pending entries written `after` the discarded one.
  /// - Throws: `invalidArgument` when the entry is no longer parked.
  @discardableResult
  public func discard(_ sequence: UInt64) async throws(TidemarkError) -> [Key] {
    let (count, dependents) = try await rescheduling { try $0.discard([sequence]) }
    guard count > 0 else { throw SyncSession.waitsNoMore(sequence) }
    return dependents
  }

  /// Returns the conflicts that the user must decide, with both versions of each key.
  public func conflicts() async throws(TidemarkError) -> [SyncConflict] {
    try await host.performPublic { state in
      let session = try state.session()
      let undecided = try session.waitingForUser().filter { $0.reason == .needsDecision }
      return try undecided.map { try session.conflict($0.change) }
    }
  }

  /// Decides a conflict from ``conflicts()``. A new put or delete of the key also decides it, for
  /// the local side.
  /// - Parameters:
  ///   - key: the key of the conflict.
  ///   - resolution: the version that the key gets.
  /// - Throws: `invalidArgument` when the key has no conflict to decide any more.
  public func decide(
    _ key: some BytesConvertible, _ resolution: ConflictResolution
  ) async throws(TidemarkError) {
    let bytes = key.withBytes { [UInt8](copying: $0) }
    defer {
      host.changed.raise()
      news.raise()
    }
    try await host.performPublic { try $0.session().decide(bytes, resolution) }
  }

  /// Changes the entries to replicate, whether the replicator runs or not: a program that opens one
  /// project after another need not make a replicator for each.
  ///
  /// A comparison finds the entries that are in the new scope and were not in the previous one, and
  /// they are pulled. Those outside of the new scope stay here, and are not synced any more.
  public func setScope(_ scope: SyncScope) async throws(TidemarkError) {
    try await rescheduling { try $0.change(scope) }
  }

  /// Runs `body`, which changes what is pending, and calls `retryNow` of the replicator.
  private func rescheduling<R: Sendable>(
    _ body: @escaping @Sendable (inout HostState) throws -> R
  ) async throws(TidemarkError) -> R {
    defer {
      host.changed.raise()
      retryNow()
    }
    return try await host.performPublic(body)
  }
}

/// The outcome of one of this store's entries at a peer; see ``SyncReceipt``.
@nonexhaustive
public enum SyncOutcome: Sendable, Hashable {
  /// The peer's feed has the entry, or an equal one of another replica, at this position.
  case synced(FeedPosition)
  /// Another entry of the same key, with this sequence, replaced the entry before it was sent, or
  /// won a conflict with it.
  case superseded(by: UInt64)
  /// The peer has refused the entry, for this reason. ``Replicator/parked()`` lists it.
  case parked(SyncRejection)
  /// Both sides have changed the key, and the user must decide; see ``Replicator/conflicts()``.
  case needsDecision
  /// The replicator has nothing to send: the entry is out of the scope, pulled or cached, or
  /// deletes a key that the peer never had, or compaction has dropped it.
  case notSent
}

/// Waits for the outcome of one of this store's entries at a peer. ``Replicator/receipts(for:)``
/// makes receipts for a write.
public struct SyncReceipt: Sendable {
  /// The sequence of the entry in the store's log.
  public let sequence: UInt64
  let host: SyncHost

  /// The outcome of the entry at the peer; nil while it is not known yet.
  public var current: SyncOutcome? {
    get async throws(TidemarkError) {
      let sequence = sequence
      return try await host.performPublic { try $0.outcome(of: sequence) }
    }
  }

  /// Waits until the entry's outcome at the peer is known. Cancelling the task ends the wait only;
  /// the entry is still synced.
  /// - Throws: `cancelled`; the errors of reading the log.
  public func outcome() async throws(TidemarkError) -> SyncOutcome {
    try await TidemarkError.asSyncError { try await host.changed.first { try await current } }
  }
}

extension HostState {
  mutating func outcome(of sequence: UInt64) throws(TidemarkError) -> SyncOutcome? {
    let session = try session()
    if let position = session.acknowledged.position(of: sequence) { return .synced(position) }
    if session.sequencesInFlight.contains(sequence) { return nil }
    guard let change = try log.change(at: sequence) else { return .notSent }
    guard let newest = try log.newestChange(ofKey: change.key), newest.sequence == sequence
    else {
      return .superseded(by: try log.slot(ofKey: change.key)?.sequence ?? sequence)
    }
    switch session.outbox.waiting[sequence] {
    case .parked(let rejection): return .parked(rejection)
    case .needsDecision: return .needsDecision
    case .conflict, .lost: return nil
    case nil: break
    }
    guard session.isPending(change), try session.isWorthSending(change) else { return .notSent }
    return nil
  }
}
