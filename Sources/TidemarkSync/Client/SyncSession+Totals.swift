extension SyncSession {
  /// What has been done so far.
  package struct Totals: Sendable, Hashable {
    package var pushed = 0
    package var applied = 0
    package var duplicates = 0
    /// Keys on which both sides had written, whether a push or a pull has shown it.
    package var conflicts = 0
    /// How often a key in conflict was decided.
    package var resolved = 0
    /// Of these, keys that got a value made of both sides.
    package var merged = 0
    /// Fields that both sides had changed, each in its way.
    package var clashes = 0
    /// Values that could not be merged by their fields.
    package var fellBack = 0
    package var parked = 0
    package var pulled = 0
    package var batches = 0
    package var comparisons = 0
    package var resyncs = 0

    /// Counts what has become of a conflict.
    mutating func count(_ decision: ConflictResolver.Decision) {
      resolved += 1
      if case .merged = decision.resolution { merged += 1 }
      clashes += decision.clashes
      if decision.hasFallenBack { fellBack += 1 }
    }
  }
}

extension SyncSession.Totals {
  static func + (a: Self, b: Self) -> Self {
    var sum = a
    sum.pushed += b.pushed
    sum.applied += b.applied
    sum.duplicates += b.duplicates
    sum.conflicts += b.conflicts
    sum.resolved += b.resolved
    sum.merged += b.merged
    sum.clashes += b.clashes
    sum.fellBack += b.fellBack
    sum.parked += b.parked
    sum.pulled += b.pulled
    sum.batches += b.batches
    sum.comparisons += b.comparisons
    sum.resyncs += b.resyncs
    return sum
  }

  static func - (a: Self, b: Self) -> Self {
    var rest = a
    rest.pushed -= b.pushed
    rest.applied -= b.applied
    rest.duplicates -= b.duplicates
    rest.conflicts -= b.conflicts
    rest.resolved -= b.resolved
    rest.merged -= b.merged
    rest.clashes -= b.clashes
    rest.fellBack -= b.fellBack
    rest.parked -= b.parked
    rest.pulled -= b.pulled
    rest.batches -= b.batches
    rest.comparisons -= b.comparisons
    rest.resyncs -= b.resyncs
    return rest
  }
}
