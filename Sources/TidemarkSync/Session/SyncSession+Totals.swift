extension SyncSession {
  /// Counts of the work done so far.
  package struct Totals: Sendable, Hashable {
    package var pushed = 0
    package var applied = 0
    package var duplicates = 0
    /// Keys on which both sides had written, whether a push or a pull has shown it.
    package var conflicts = 0
    /// How often a key in conflict was decided.
    package var resolved = 0
    /// Decided keys that got a value made of both sides.
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
    /// Bytes of attachments' contents.
    package var attachmentBytesSent = 0
    package var attachmentBytesTaken = 0

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
  static let counts: [any WritableKeyPath<Self, Int> & Sendable] = [
    \.pushed, \.applied, \.duplicates, \.conflicts, \.resolved, \.merged, \.clashes, \.fellBack,
    \.parked, \.pulled, \.batches, \.comparisons, \.resyncs, \.attachmentBytesSent,
    \.attachmentBytesTaken,
  ]

  private static func each(_ a: Self, _ b: Self, _ body: (Int, Int) -> Int) -> Self {
    var result = Self()
    for count in counts { result[keyPath: count] = body(a[keyPath: count], b[keyPath: count]) }
    return result
  }

  static func + (a: Self, b: Self) -> Self { each(a, b, +) }

  static func - (a: Self, b: Self) -> Self { each(a, b, -) }
}
