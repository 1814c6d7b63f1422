internal import TidemarkSyncProtocol

/// Counts what a replicator has transferred and resolved since it was made, or during one
/// `syncOnce` call.
public struct SyncTotals: Sendable, Hashable {
  /// How many sent entries the peer has answered with a verdict.
  public var pushed = 0
  /// How many sent entries the peer has applied to its feed.
  public var applied = 0
  /// How many sent entries had content that the peer already had.
  public var duplicates = 0
  /// How many sent entries the peer has refused.
  public var parked = 0
  /// How many conflicts pushes and pulls have found: keys that both sides had changed.
  public var conflicts = 0
  /// How many conflicts ended with a value merged from both sides.
  public var merged = 0
  /// How many JSON fields both sides had changed to different values; see ``FieldClashRule``.
  public var clashes = 0
  /// How many values ``ConflictResolver/mergeFields(clash:fallback:)`` could not merge by fields,
  /// so that its fallback decided on the whole value.
  public var fellBack = 0
  /// How many entries of other replicas were pulled.
  public var pulled = 0
  /// How many sent batches the peer has answered with verdicts.
  public var batches = 0
  /// How many bytes of attachments were uploaded, without bytes that the peer already had.
  public var attachmentBytesSent = 0
  /// How many bytes of attachments were fetched without a call of the program; see
  /// ``AttachmentPolicy/Fetching/eager(upTo:)``.
  public var attachmentBytesTaken = 0
  /// Conflicts that a resolver has decided.
  package var resolved = 0
  package var comparisons = 0
  package var resyncs = 0

  /// Counts a batch by the peer's verdicts on it.
  mutating func count(_ verdicts: [PushVerdict]) {
    batches += 1
    pushed += verdicts.count
    for verdict in verdicts {
      switch verdict {
      case .applied: applied += 1
      case .duplicate: duplicates += 1
      case .conflict, .lost: conflicts += 1
      case .rejected: parked += 1
      case .aborted: break
      }
    }
  }

  /// Counts a resolver's decision.
  mutating func count(_ decision: ConflictResolver.Decision) {
    resolved += 1
    if case .merged = decision.resolution { merged += 1 }
    clashes += decision.clashes
    if decision.hasFallenBack { fellBack += 1 }
  }
}

extension SyncTotals {
  static let counts: [any WritableKeyPath<Self, Int> & Sendable] = [
    \.pushed, \.applied, \.duplicates, \.conflicts, \.resolved, \.merged, \.clashes, \.fellBack,
    \.parked, \.pulled, \.batches, \.comparisons, \.resyncs, \.attachmentBytesSent,
    \.attachmentBytesTaken,
  ]

  static func + (a: Self, b: Self) -> Self {
    counts.reduce(into: a) { $0[keyPath: $1] += b[keyPath: $1] }
  }

  static func - (a: Self, b: Self) -> Self {
    counts.reduce(into: a) { $0[keyPath: $1] -= b[keyPath: $1] }
  }
}
