internal import TidemarkSyncProtocol

/// Counters of a replicator's work, for status and reports.
public struct SyncTotals: Sendable, Hashable {
  /// Sent entries with a verdict of the peer.
  public var pushed = 0
  /// Sent entries that the peer has applied.
  public var applied = 0
  /// Sent entries whose content the peer had already.
  public var duplicates = 0
  /// Sent entries that the peer refused.
  public var parked = 0
  /// Conflicts: keys that both sides had changed, found by pushes and pulls.
  public var conflicts = 0
  /// Conflicts that ended with a value merged from both sides.
  public var merged = 0
  /// Fields that both sides had changed to different values; see ``FieldClashRule``.
  public var clashes = 0
  /// Values that ``ConflictResolver/mergeFields(clash:fallback:)`` did not merge by fields, so that
  /// its fallback decided on the whole value.
  public var fellBack = 0
  /// Entries of other replicas that were pulled.
  public var pulled = 0
  /// Batches with verdicts.
  public var batches = 0
  /// Bytes of attachments that were uploaded, without those that the peer had already.
  public var attachmentBytesSent = 0
  /// Bytes of attachments that were fetched without a request of the program; see
  /// ``AttachmentPolicy/Fetching/eager(upTo:)``.
  public var attachmentBytesTaken = 0
  /// Conflicts that a resolver has decided.
  package var resolved = 0
  package var comparisons = 0
  package var resyncs = 0

  /// Counts a batch by the peer's verdicts on it.
  mutating func count(_ verdicts: [Verdict]) {
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
