internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The outcome of one own entry at a peer.
public enum SyncOutcome: Sendable, Hashable {
  /// It counts: it, or the same by somebody else, stands in the peer's feed there.
  case synced(Position)
  /// Another entry of its key has taken its place before it was sent, or has won over it.
  case superseded(by: UInt64)
  /// The peer will not have it.
  case parked(Rejection)
  /// Both sides wrote, and the user is to decide.
  case needsDecision
  /// There was nothing to send: it is out of the scope, or not the program's own, or a delete of
  /// what the peer never had; or compaction has dropped it since.
  case notSent
}

/// Waits for what becomes of one own entry at a peer.
public struct SyncReceipt: Sendable {
  /// The entry's place in the log.
  public let sequence: UInt64
  let host: SyncHost

  /// The outcome of the entry; nil as long as nobody knows.
  public var current: SyncOutcome? {
    get async throws(TidemarkError) {
      let sequence = sequence
      return try await host.told { try $0.outcome(of: sequence) }
    }
  }

  /// Waits until it is known what became of the entry. Cancelling ends the waiting only.
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
    switch session.progress.waiting[sequence] {
    case .parked(let rejection): return .parked(rejection)
    case .needsDecision: return .needsDecision
    case .conflict, .lost: return nil
    case nil: break
    }
    guard session.isPending(change), try session.isWorthSending(change) else { return .notSent }
    return nil
  }
}
