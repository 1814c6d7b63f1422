public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// An entry that the peer has refused.
public struct ParkedEntry: Sendable, Hashable {
  /// The key.
  public var key: Key
  /// The entry's place in the log: the argument of ``Replicator/retry(_:)`` and
  /// ``Replicator/discard(_:)``.
  public var sequence: UInt64
  /// Whether it is a put or a delete.
  public var kind: ChangeKind
  /// When it was committed.
  public var commitTime: Timestamp
  /// The peer's code and message.
  public var rejection: Rejection
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
  /// A receipt for an own entry, which gives its outcome at the peer.
  public func receipt(forSequence sequence: UInt64) -> SyncReceipt {
    SyncReceipt(sequence: sequence, host: host)
  }

  /// Receipts for all entries of a write.
  public func receipts(for write: Receipt) -> [SyncReceipt] {
    write.sequences.map { SyncReceipt(sequence: $0, host: host) }
  }

  /// Counts of the entries that are not synced with this peer.
  public var pending: PendingSummary {
    get async throws(TidemarkError) { try await host.told { try $0.pendingSummary() } }
  }

  /// The entries that the peer has refused, in the order of their sequences.
  ///
  /// Other entries are sent without them. A new put or delete of the key replaces a refused entry.
  public func parked() async throws(TidemarkError) -> [ParkedEntry] {
    try await host.told { try $0.parked() }
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

  /// Sends refused entries again, many in one commit.
  /// - Returns: the sequences of the new entries. Entries not parked any more are skipped.
  @discardableResult
  public func retry(all sequences: [UInt64]) async throws(TidemarkError) -> [UInt64] {
    try await rescheduling { try $0.session().retry(sequences) }
  }

  /// Gives refused entries up, many in one commit; see ``discard(_:)``.
  /// - Returns: the keys of pending entries written `after` them. Entries not parked any more are
  ///   skipped.
  @discardableResult
  public func discard(all sequences: [UInt64]) async throws(TidemarkError) -> [Key] {
    try await rescheduling { try $0.discard(sequences).dependents }
  }

  /// Gives a refused entry up: its key gets the peer's version back. If the log does not have that,
  /// this happens once the peer has sent it.
  /// - Returns: the keys of pending entries written `after` it.
  /// - Throws: `invalidArgument` when the entry is not parked any more.
  @discardableResult
  public func discard(_ sequence: UInt64) async throws(TidemarkError) -> [Key] {
    let (count, dependents) = try await rescheduling { try $0.discard([sequence]) }
    guard count > 0 else { throw SyncSession.waitsNoMore(sequence) }
    return dependents
  }

  /// The conflicts that the resolver leaves to the user, with both versions.
  public func conflicts() async throws(TidemarkError) -> [Conflict] {
    try await host.told { state in
      let session = try state.session()
      let undecided = try session.waitingForUser().filter { $0.reason == .needsDecision }
      return try undecided.map { try session.conflict($0.change) }
    }
  }

  /// Decides a conflict of ``conflicts()``. A new put or delete of the key decides it as well, for
  /// the local side.
  /// - Throws: `invalidArgument` when there is nothing to decide any more.
  public func decide(
    _ key: some BytesConvertible, _ resolution: Resolution
  ) async throws(TidemarkError) {
    let bytes = key.withBytes { [UInt8](copying: $0) }
    defer {
      host.changed.raise()
      news.raise()
    }
    try await host.told { try $0.session().decide(bytes, resolution) }
  }

  /// Changes the entries to replicate, whether the replicator runs or not: a program that opens one
  /// project after another need not make a replicator for each.
  ///
  /// A comparison finds the entries that are in the new scope and were not in the previous one, and
  /// they are pulled. Those outside of the new scope stay here, and are not synced any more.
  public func setScope(_ scope: SyncScope) async throws(TidemarkError) {
    try await rescheduling { try $0.change(scope) }
  }

  /// Runs `body`, which changes what is pending, and pokes the replicator.
  private func rescheduling<R: Sendable>(
    _ body: @escaping @Sendable (inout HostState) throws -> R
  ) async throws(TidemarkError) -> R {
    defer {
      host.changed.raise()
      poke()
    }
    return try await host.told(body)
  }
}

/// The outcome of one own entry at a peer.
public enum SyncOutcome: Sendable, Hashable {
  /// The entry, or an equal one by another replica, is in the peer's feed at this position.
  case synced(Position)
  /// Another entry of its key replaced it before it was sent, or won a conflict with it.
  case superseded(by: UInt64)
  /// The peer has refused it.
  case parked(Rejection)
  /// Both sides have changed the key, and the user must decide.
  case needsDecision
  /// There is nothing to send: it is out of the scope, pulled or cached, or a delete of a key that
  /// the peer never had; or compaction has dropped it.
  case notSent
}

/// The way to wait for the outcome of one own entry at a peer.
public struct SyncReceipt: Sendable {
  /// The entry's place in the log.
  public let sequence: UInt64
  let host: SyncHost

  /// The outcome of the entry; nil while it is not known.
  public var current: SyncOutcome? {
    get async throws(TidemarkError) {
      let sequence = sequence
      return try await host.told { try $0.outcome(of: sequence) }
    }
  }

  /// Waits until the outcome is known. Cancelling ends the wait only, and not the sync.
  /// - Throws: `cancelled`; what reading the log throws.
  public func outcome() async throws(TidemarkError) -> SyncOutcome {
    try await TidemarkError.asSyncError { try await host.changed.first { try await current } }
  }
}

extension HostState {
  mutating func outcome(of sequence: UInt64) throws(TidemarkError) -> SyncOutcome? {
    let session = try session()
    if let position = session.settled.position(of: sequence) { return .synced(position) }
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
