internal import TidemarkSyncProtocol

/// Counts of what replication has done.
public struct SyncTotals: Sendable, Hashable {
  /// Entries that were sent and on which the peer has decided.
  public var pushed = 0
  /// Taken entries that count.
  public var applied = 0
  /// Taken entries that the peer had already.
  public var duplicates = 0
  /// Sent entries that the peer refused.
  public var parked = 0
  /// Keys on which both sides had written, as pushes and pulls have shown.
  public var conflicts = 0
  /// Conflicts whose keys got a value that was made of both sides.
  public var merged = 0
  /// Fields that both sides had changed, each in its way; see ``FieldClashRule``.
  public var clashes = 0
  /// Values that ``ConflictResolver/mergeFields(clash:fallback:)`` could not merge by their fields,
  /// or was told not to: they went by its fallback as a whole.
  public var fellBack = 0
  /// Entries of others that were taken.
  public var pulled = 0
  /// Batches that were sent.
  public var batches = 0
  /// Bytes of attachments' contents that were sent; what the peer had already does not count.
  public var attachmentBytesSent = 0
  /// Bytes of attachments' contents that were taken without anybody asking; see
  /// ``AttachmentPolicy/Fetching/eager(upTo:)``.
  public var attachmentBytesTaken = 0
  /// How often a key in conflict was decided.
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

  /// Counts what has become of a conflict.
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
