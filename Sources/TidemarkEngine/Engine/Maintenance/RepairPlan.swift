/// Which source gives which sequences, where several cover the same ones.
///
/// A compaction that was interrupted leaves its inputs beside its output. The output decides
/// alone for the range that it covers, since what it dropped must stay dropped; inputs only
/// fill in for what has become unreadable in it.
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
  /// Sequences that some source is responsible for, or that MANIFEST says were given out.
  private(set) var covered = SequenceSet()
  /// Sequences of sorted segments that they neither hold nor have lost: compaction dropped them.
  private(set) var dropped = SequenceSet()

  /// - Parameters:
  ///   - sources: everything that was found, stock taken.
  ///   - hasManifest: whether MANIFEST says which of them count.
  init(_ sources: [RepairSource], hasManifest: Bool) {
    taken = Array(repeating: SequenceSet(), count: sources.count)
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
      if hasManifest, !source.isListed, listedEnd > 0 { covered.insert(1...listedEnd) }
      // It answers for what it covers, holds or has lost.
      var own = source.present
      own.formUnion(source.lost)
      if source.isComplete, let coverage = source.coverage { own.insert(coverage) }
      own = own.subtracting(covered)
      taken[index] = source.present.intersection(own)
      lost.formUnion(source.lost.intersection(own))
      if source.kind == .compacted, source.isComplete {
        dropped.formUnion(own.subtracting(source.present).subtracting(source.lost))
      }
      covered.formUnion(own)
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
