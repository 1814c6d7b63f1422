internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// Decides what ``Replicator/signOut(_:keeping:)`` does with changes that the peer does not have
/// yet.
public enum SignOutMode: Sendable, Hashable {
  /// The replicator sends unsent changes first. The sign-out fails if a change cannot be sent by
  /// the deadline: the peer is unreachable, refuses the change or has a conflict with it.
  case send(until: ContinuousClock.Instant)
  /// The store drops unsent changes. Changes in flight may have reached the peer all the same.
  case discard
}

extension Replicator {
  /// Removes a user's data from this store, before another user signs in. It stays at the peer,
  /// from where the next replicator pulls what its user may read.
  ///
  /// ```swift
  /// try await replicator.signOut(.send(until: .now + .seconds(30)))
  /// replicator = try store.replicator(named: "home", peer: peerOfTheNextUser)
  /// ```
  /// Evicts all entries of class `owned` written up to the call, removes the peer's records, and
  /// takes another replica id, so that no later replicator ever sends these entries, under this
  /// name or another. Entries in the scope of another known peer stay, and so do cached ones, which
  /// never replicate and expire by their own rules. Once begun it is completed before anything else
  /// is replicated, also after the process was killed.
  ///
  /// This replicator makes no calls afterwards; the answers to calls in flight are dropped. The
  /// log's history has the evicted entries until a compaction: `store.compact(dropHistory: true)`
  /// drops them at once.
  /// - Parameters:
  ///   - mode: what happens to unsent changes.
  ///   - kept: entries that stay, since they are the device's and not the user's. The next
  ///     replicator sends them like other entries of this store, with its authorization.
  /// - Throws: `unsentChanges` if a change cannot be sent, `cancelled`, and other errors of
  ///   ``syncOnce(deadline:)``, with nothing changed; `invalidArgument` if another peer's scope is
  ///   everything: forget that peer first; errors of this store.
  public func signOut(
    _ mode: SignOutMode, keeping kept: SyncScope? = nil
  ) async throws(TidemarkError) {
    var scopes = kept.map { [$0] } ?? []
    for peer in try await store.peers() where peer.name != name {
      guard !peer.scope.isEverything else {
        throw TidemarkError(
          .invalidArgument,
          "the peer \(peer.name) has every entry; release its replicator and forget it first"
        )
      }
      scopes.append(peer.scope)
    }
    let (owner, others) = (owner, scopes)
    switch mode {
    case .discard:
      try await host.performPublic { try $0.signOut(owner, keeping: others, isForced: true) }
    case .send(let deadline):
      do {
        try await host.performPublic { try $0.signOut(owner, keeping: others, isForced: false) }
      } catch {
        guard error.code == .unsentChanges else { throw error }
        _ = try await syncOnce(deadline: deadline)
        try await host.performPublic { try $0.signOut(owner, keeping: others, isForced: false) }
      }
    }
    host.changed.raise()
    retryNow()
    await stop()
    // The session was released: opening another one carries out the sign-out that was recorded.
    try await host.performPublic { _ = try $0.session() }
  }
}

extension HostState {
  /// Records the sign-out durably, and detaches the replicator from the session.
  fileprivate mutating func signOut(
    _ owner: Int, keeping kept: [SyncScope], isForced: Bool
  ) throws {
    try check(owner)
    try session().beginSignOut(keeping: kept, isForced: isForced)
    forgetStatus()
    release(owner)
  }
}
