internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension TidemarkError.Code {
  /// The peer could not be reached, or refused the call: the error's cause is a ``PeerError``,
  /// which is also its ``TidemarkEngine/TidemarkError/peerError``.
  public static let peerFailed = TidemarkError.Code("peerFailed")
  /// Many keys are gone at the peer, and somebody has to say what becomes of them: the error's
  /// cause is ``UndecidedDeletions``.
  public static let undecidedDeletions = TidemarkError.Code("undecidedDeletions")
  /// So many entries are parked that nothing more is sent: the error's cause is ``TooManyParked``.
  public static let tooManyParked = TidemarkError.Code("tooManyParked")
  /// Somebody signs out whose entries are not all at the peer: the error's cause is
  /// ``UnsentChanges``.
  public static let unsentChanges = TidemarkError.Code("unsentChanges")
}

extension TidemarkError {
  /// How the peer failed, of an error with the code `peerFailed`; else nil.
  public var peerError: PeerError? { cause as? PeerError }

  /// Runs something that may fail in any way of the sync's, and throws what programs are told.
  static func asSyncError<R>(
    _ body: () async throws -> R
  ) async throws(TidemarkError) -> R {
    do { return try await body() } catch { throw TidemarkError(sync: error) }
  }

  /// The error that a program gets for a failure within the sync.
  init(sync error: any Error) {
    switch error {
    case let error as TidemarkError: self = error
    case let error as PeerError:
      self.init(.peerFailed, "the peer: \(error.message)", cause: error)
    case let error as UndecidedDeletions:
      self.init(.undecidedDeletions, error.description, cause: error)
    case let error as TooManyParked:
      self.init(.tooManyParked, error.description, cause: error)
    case let error as UnsentChanges:
      self.init(.unsentChanges, error.description, cause: error)
    case is CancellationError: self.init(.cancelled, "the task was cancelled")
    default:
      // A peer of the program's own may throw anything.
      self.init(.peerFailed, "the peer: \(error)", cause: error)
    }
  }
}

/// So many entries were refused by a peer, or wait for the user, that nothing more is sent to it:
/// as likely as not it refuses everything, such as to a token that does not reach the data.
///
/// Nothing is lost. Once the reason is gone the entries can be sent again with
/// ``Replicator/retry(_:)``, or given up with ``Replicator/discard(_:)``; then, or with
/// ``Replicator/poke()``, the replicator goes on. It is the cause of an error with the code
/// `tooManyParked`.
public struct TooManyParked: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many entries.
  public var entries: Int

  /// The reason, for people.
  public var description: String {
    "\(entries) entries were refused by the peer or wait for a decision; nothing more is sent "
      + "until they are retried or discarded"
  }
}

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
