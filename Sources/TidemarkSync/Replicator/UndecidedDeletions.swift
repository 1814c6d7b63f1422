internal import Tidemark
public import TidemarkEngine

/// After everything was compared with a peer it shows that many keys are gone there, more than 100
/// and more than a twentieth of all: a mistake, as likely as not. Nothing is taken or sent until
/// somebody has said what becomes of them; see ``Replicator/decideDeletions(_:)``. It is the cause
/// of an error with the code `undecidedDeletions`.
public struct UndecidedDeletions: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many keys.
  public var keys: Int

  /// The reason, for people.
  public var description: String {
    "\(keys) keys are gone at the peer; say whether they are to go here, too, or to come back there"
  }
}

/// The decision about keys that are gone at the peer.
public enum DeletionsDecision: Sendable, Hashable {
  /// They go here, too, but for those with changes that are not synced.
  case accept
  /// They are sent to the peer again.
  case restore
}

extension Replicator {
  /// Says what becomes of keys that were found to be gone at the peer in great number, and goes on.
  /// - Throws: `invalidArgument` when there is nothing to decide.
  public func decideDeletions(_ decision: DeletionsDecision) async throws(TidemarkError) {
    try await host.told { state in
      let session = try state.session()
      guard session.undecidedDeletions != nil else {
        throw TidemarkError(.invalidArgument, "there are no deletions to decide on")
      }
      try session.decidePurge(decision == .accept)
    }
    poke()
  }
}
