/// Decides for a repair which source (a segment of the damaged store) gives which sequences, where
/// several cover the same ones.
///
/// An interrupted compaction leaves its inputs beside its output. The output decides for the range
/// that it covers, since what it dropped must stay dropped; inputs only fill in what it has lost.
struct RepairPlan {
  /// A stretch of the log that one source gives.
  struct Run {
    var source: Int
    var range: ClosedRange<UInt64>
  }

  /// In the order of sequences; ranges do not overlap.
  private(set) var runs: [Run] = []
  /// The sequences taken from each source.
  private(set) var taken: [SequenceSet]
  /// The union of `taken`.
  private(set) var present = SequenceSet()
  /// Sequences that no source can give and that were there.
  private(set) var lost = SequenceSet()
  /// Sequences that some source decides for, or that lie before the end of what MANIFEST lists.
  private(set) var covered = SequenceSet()
  /// Sequences that a compacted segment covers and neither holds nor has lost: they were dropped.
  private(set) var dropped = SequenceSet()

  /// - Parameter hasManifest: whether MANIFEST is readable: then listed sources come before others.
  init(_ sources: [RepairSource], hasManifest: Bool) {
    taken = Array(repeating: SequenceSet(), count: sources.count)
    // Who decides first: listed sources, sealed ones, then the highest id, since outputs are newer.
    let order = sources.indices.sorted { a, b in
      let x = sources[a]
      let y = sources[b]
      if x.isListed != y.isListed { return x.isListed }
      if x.isComplete != y.isComplete { return x.isComplete }
      return x.origin.id > y.origin.id
    }
    var listedEnd: UInt64 = 0
    for index in order {
      let source = sources[index]
      // Within what MANIFEST lists, unlisted files are leftovers; they may only rescue, see below.
      if hasManifest, !source.isListed, listedEnd > 0 { covered.insert(1...listedEnd) }
      // The source decides for what it holds, has lost or, if it was sealed, covers.
      var decided = source.present
      decided.formUnion(source.lost)
      if source.isComplete, let coverage = source.coverage { decided.insert(coverage) }
      decided = decided.subtracting(covered)
      taken[index] = source.present.intersection(decided)
      lost.formUnion(source.lost.intersection(decided))
      if source.kind == .compacted, source.isComplete {
        dropped.formUnion(decided.subtracting(source.present).subtracting(source.lost))
      }
      covered.formUnion(decided)
      if source.isListed { listedEnd = max(listedEnd, covered.last ?? 0) }
    }
    // An entry that is unreadable in one place may be whole in another that was passed over.
    for index in order where !lost.isEmpty {
      let rescued = sources[index].present.intersection(lost)
      taken[index].formUnion(rescued)
      lost = lost.subtracting(rescued)
    }
    arrange()
  }

  /// Makes `runs` of what was taken; a run may also span gaps that no other source fills.
  private mutating func arrange() {
    let pieces = taken.enumerated().flatMap { (source, set) in
      set.ranges.map { Run(source: source, range: $0) }
    }.sorted { $0.range.lowerBound < $1.range.lowerBound }
    for piece in pieces {
      present.insert(piece.range)
      if let last = runs.last, last.source == piece.source {
        runs[runs.count - 1].range = last.range.lowerBound...piece.range.upperBound
      } else {
        runs.append(piece)
      }
    }
  }
}
