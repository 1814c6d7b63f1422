internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The fate of changes that are not sent when a user signs out.
public enum SignOutMode: Sendable, Hashable {
  /// They are sent first. If one cannot be until then, since the peer is not there, has refused it
  /// or is at odds with it, nobody is signed out.
  case send(until: ContinuousClock.Instant)
  /// They are given up. Those that are under way may have arrived all the same.
  case discard
}

extension Replicator {
  /// Ends what a user has in this store, before somebody else signs in: the data goes from this
  /// device and stays at the peer, where the next replicator finds what its user may read.
  ///
  /// ```swift
  /// try await replicator.signOut(.send(until: .now + .seconds(30)))
  /// replicator = try store.replicator(named: "home", peer: peerOfTheNextUser)
  /// ```
  /// All entries of class `owned` go that were written up to the call, with what the store knows of
  /// the peer, and this store takes another name. So nothing that was written before is ever sent
  /// by a later replicator, of this name or another one. Entries that another known peer's scope
  /// covers stay, and so do caches. Once it has begun it is carried out to its end, before anything
  /// else is replicated, also after the process was killed.
  ///
  /// This replicator makes no calls any more: those that are under way end, and what they bring is
  /// not taken. What was deleted so stands in the log's history until a compaction drops it:
  /// `store.compact(dropHistory: true)` does so at once.
  /// - Parameters:
  ///   - mode: what becomes of changes that are not sent.
  ///   - kept: entries that stay all the same, being the device's and not the user's. To the next
  ///     replicator they are entries of this store like any others, and go by its token.
  /// - Throws: `unsentChanges` where something cannot be sent, `cancelled`, and whatever else
  ///   ``syncOnce(deadline:)`` throws, with everything as it was; `invalidArgument` where another
  ///   peer's scope is everything, which has to be forgotten first; what the own store throws.
  public func signOut(
    _ mode: SignOutMode, keeping kept: SyncScope? = nil
  ) async throws(TidemarkError) {
    var scopes = kept.map { [$0] } ?? []
    for peer in try await store.peers() where peer.name != name {
      guard !peer.scope.isEverything else {
        throw TidemarkError(
          .invalidArgument,
          "the peer \(peer.name) has all entries, too; let go of its replicator and forget it first"
        )
      }
      scopes.append(peer.scope)
    }
    let (owner, others) = (owner, scopes)
    switch mode {
    case .discard: try await host.told { try $0.signOut(owner, keeping: others, isForced: true) }
    case .send(let deadline):
      do {
        try await host.told { try $0.signOut(owner, keeping: others, isForced: false) }
      } catch {
        guard error.code == .unsentChanges else { throw error }
        _ = try await syncOnce(deadline: deadline)
        try await host.told { try $0.signOut(owner, keeping: others, isForced: false) }
      }
    }
    host.changed.raise()
    poke()
    await stop()
    // The first session that is opened after the record was written carries the sign-out out.
    try await host.told { _ = try $0.session() }
  }
}

extension HostState {
  /// Records durably that the user signs out, and detaches the replicator from the session.
  fileprivate mutating func signOut(
    _ owner: Int, keeping kept: [SyncScope], isForced: Bool
  ) throws {
    try check(owner)
    try session().beginSignOut(keeping: kept, isForced: isForced)
    status = PeerStatus()
    recorded = nil
    (ledger, recordedLedger) = (nil, nil)
    release(owner)
  }
}
