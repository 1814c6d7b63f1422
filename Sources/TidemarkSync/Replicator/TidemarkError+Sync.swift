internal import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension TidemarkError.Code {
  /// The peer could not be reached, or refused the call: the error's cause is a ``PeerError``,
  /// which is also its ``TidemarkEngine/TidemarkError/peerError``.
  public static let peerFailed = TidemarkError.Code("peerFailed")
  /// Many keys are deleted at the peer, and the user must decide about them: the error's cause is
  /// ``UndecidedDeletionsError``.
  public static let undecidedDeletions = TidemarkError.Code("undecidedDeletions")
  /// So many entries are parked that sending has stopped: the error's cause is
  /// ``TooManyParkedError``.
  public static let tooManyParked = TidemarkError.Code("tooManyParked")
  /// A sign-out would lose entries that the peer lacks: the error's cause is
  /// ``UnsentChangesError``.
  public static let unsentChanges = TidemarkError.Code("unsentChanges")
}

extension TidemarkError {
  /// The peer's failure, for an error with the code `peerFailed`; else nil.
  public var peerError: PeerError? { cause as? PeerError }

  /// Runs `body` and converts every error to the one that public API throws.
  static func asSyncError<R>(
    _ body: () async throws -> R
  ) async throws(TidemarkError) -> R {
    do { return try await body() } catch { throw TidemarkError(sync: error) }
  }

  /// The public error for any error of a replicator, a session or a peer.
  init(sync error: any Error) {
    switch error {
    case let error as TidemarkError: self = error
    case let error as PeerError:
      self.init(.peerFailed, "the peer: \(error.message)", cause: error)
    case let error as UndecidedDeletionsError:
      self.init(.undecidedDeletions, error.description, cause: error)
    case let error as TooManyParkedError:
      self.init(.tooManyParked, error.description, cause: error)
    case let error as UnsentChangesError:
      self.init(.unsentChanges, error.description, cause: error)
    case is CancellationError: self.init(.cancelled, "the task was cancelled")
    default:
      // A peer that the program implements may throw any error.
      self.init(.peerFailed, "the peer: \(error)", cause: error)
    }
  }
}

/// So many entries were refused by a peer, or wait for the user, that sending has stopped: probably
/// the peer refuses everything, for example since the token does not cover the data.
///
/// Nothing is lost. Once the reason is gone the entries can be sent again with
/// ``Replicator/retry(_:)``, or given up with ``Replicator/discard(_:)``; then, or after a
/// ``Replicator/retryNow()``, the replicator continues. It is the cause of an error with the code
/// `tooManyParked`.
public struct TooManyParkedError: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many entries the peer refused or the user must decide.
  public var entries: Int

  /// A text for people that says how many entries wait, and what to do.
  public var description: String {
    "\(entries) entries were refused by the peer or wait for a decision; nothing more is sent "
      + "until they are retried or discarded"
  }
}

/// A comparison with a peer has found many keys deleted there, more than 100 and more than a
/// twentieth of all: probably a mistake. Nothing is pulled or pushed until
/// ``Replicator/decideDeletions(_:)`` says what to do with them. It is the cause of an error with
/// the code `undecidedDeletions`.
public struct UndecidedDeletionsError: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many keys the comparison found deleted at the peer.
  public var keys: Int

  /// A text for people that says how many keys are deleted at the peer, and what to do.
  public var description: String {
    "\(keys) keys are deleted at the peer; delete them here, too, or restore them there"
  }
}

/// What ``Replicator/decideDeletions(_:)`` does with many keys that were deleted at the peer.
public enum DeletionsDecision: Sendable, Hashable {
  /// The store deletes the keys too, except keys with changes that the peer does not have yet.
  case accept
  /// The replicator sends the keys to the peer again.
  case restore
}

extension Replicator {
  /// Decides about the many keys that a comparison found deleted at the peer, and continues.
  /// - Throws: `invalidArgument` when there is nothing to decide.
  public func decideDeletions(_ decision: DeletionsDecision) async throws(TidemarkError) {
    try await host.performPublic { state in
      let session = try state.session()
      guard session.undecidedDeletions != nil else {
        throw TidemarkError(.invalidArgument, "there are no deletions to decide on")
      }
      try session.decidePurge(decision == .accept)
    }
    retryNow()
  }
}
