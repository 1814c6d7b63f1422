/// Which segments a compaction rewrites together, oldest first.
struct CompactionPlan {
  /// Adjacent segments that are replaced by one, in one update of MANIFEST.
  struct Group: Sendable {
    var segments: [Segment]
    /// Their rows in MANIFEST.
    var rows: [Manifest.Segment]

    /// Raw bytes of keys and values in it.
    var rawBytes: Int { rows.reduce(0) { $0 + $1.rawBytes } }

    /// A group of each of its segments.
    var singles: [Group] { zip(segments, rows).map { Group(segments: [$0], rows: [$1]) } }

    /// Makes groups of their own of segments at the beginning that are done and far longer than all
    /// behind them: to rewrite such a segment gains little. The last segments stay together.
    fileprivate func split(_ isDone: (Segment) -> Bool) -> [Group] {
      var rest = rawBytes
      var count = 0
      while count < segments.count - 1, isDone(segments[count]) {
        rest -= rows[count].rawBytes
        guard rows[count].rawBytes > Group.farLonger * rest else { break }
        count += 1
      }
      let last = Group(segments: Array(segments[count...]), rows: Array(rows[count...]))
      return singles.prefix(count) + [last]
    }

    private static let farLonger = 8

    /// The sequences of its entries, also of dropped ones.
    var range: ClosedRange<UInt64> {
      let first = segments.first?.firstSequence ?? 0
      return first...max(first, segments.last?.lastSequence ?? 0)
    }
  }

  private(set) var groups: [Group] = []

  /// - Parameters:
  ///   - includesActive: whether the active segment takes part; a compaction seals it beforehand, a
  ///     dry run cannot.
  ///   - mostBytes: a group has no more, unless it is a single segment.
  ///   - isDone: whether a segment is as a compaction leaves it, and nothing of it can go, as far
  ///     as is known.
  init(
    _ segments: [Segment], rows: [Manifest.Segment], includesActive: Bool = false,
    mostBytes: Int = Limits.compactedSegmentBytes, isDone: (Segment) -> Bool = { _ in false }
  ) {
    let known = Dictionary(rows.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    var open = Group(segments: [], rows: [])
    var bytes = 0
    for segment in segments {
      guard let row = known[segment.id], includesActive || row.state == .sealed else { continue }
      let more = Self.boundedBytes(row)
      if let first = open.segments.first,
        bytes + more > mostBytes || !Self.fits(first.firstSequence, row.lastSequence)
      {
        groups.append(open)
        open = Group(segments: [], rows: [])
        bytes = 0
      }
      open.segments.append(segment)
      open.rows.append(row)
      bytes += more
    }
    if !open.segments.isEmpty { groups.append(open) }
    if let last = groups.popLast() { groups += last.split(isDone) }
  }

  /// How many bytes the entries of a segment take at most in a new one, which must not get longer
  /// than its offsets of 32 bits can say, however little they compress.
  static func boundedBytes(_ row: Manifest.Segment) -> Int {
    row.rawBytes + row.entryCount * Limits.headBytes
  }

  /// Whether sequences from `first` to `last` fit into one segment: its locator, the table from
  /// sequences to frames, has 32 bits for them. True for nil.
  static func fits(_ first: UInt64, _ last: UInt64?) -> Bool {
    guard let last, last > first else { return true }
    return last - first < UInt64(UInt32.max)
  }

  /// The groups that a *purge*, a compaction that drops cached data only, rewrites, each in a step
  /// of its own. From the segment `first` on, those with at least half the average share of cached
  /// bytes that can go. And anywhere, groups of many short segments, which purges leave behind.
  static func purge(_ log: LogSnapshot, from first: UInt64, stepBytes: Int) -> [Group] {
    func share(_ rows: [Manifest.Segment]) -> Double {
      let cached = rows.reduce(0) { $0 + (log.usage.rows[$1.id]?.cached ?? 0) }
      return Double(cached) / Double(max(1, rows.reduce(0) { $0 + $1.rawBytes }))
    }
    let groups = CompactionPlan(
      log.segments, rows: log.manifest.segments, mostBytes: stepBytes
    ).groups
    let start = groups.firstIndex { $0.segments.contains { $0.id == first } } ?? 0
    let usual = share(groups[start...].flatMap(\.rows))
    return groups.enumerated().filter { (index, group) in
      group.segments.count > shortSegments
        || index >= start && share(group.rows) > 0 && 2 * share(group.rows) >= usual
    }.map(\.element)
  }

  private static let shortSegments = 4
}
