public import TidemarkSyncProtocol

/// How far an own entry has come towards a peer.
public enum PendingState: Sendable, Hashable {
  /// It waits to be sent.
  case pending
  /// It is in the batch that is under way; what becomes of it is not known yet.
  case inFlight
  /// The peer has something else at its key, and the resolver will see both.
  case conflict
  /// The peer will not have it, for the reason given; a new put or delete of its key, a retry or
  /// a discard goes on.
  case parked(Rejection)
  /// The resolver leaves it to the user.
  case needsDecision
  /// It comes after an entry that waits for the user, the one with this sequence, or after others
  /// that do.
  case blocked(by: UInt64)

  /// Whether it will go on by itself once the peer is there.
  public var goesOn: Bool {
    switch self {
    case .pending, .inFlight, .conflict: true
    case .parked, .needsDecision, .blocked: false
    }
  }
}

extension PeerProgress.Waiting {
  /// Where the remote state stands that is waited for.
  var position: Position? {
    switch self {
    case .conflict(let position), .lost(let position): position
    case .parked, .needsDecision: nil
    }
  }

  var isLost: Bool {
    if case .lost = self { true } else { false }
  }

  var isParked: Bool {
    if case .parked = self { true } else { false }
  }

  var state: PendingState {
    switch self {
    case .conflict, .lost: .conflict
    case .parked(let rejection): .parked(rejection)
    case .needsDecision: .needsDecision
    }
  }
}
