/// Which segments are rewritten together, oldest first.
struct CompactionPlan {
  /// Input segments of one step of MANIFEST.
  struct Group: Sendable {
    var segments: [Segment]
    /// Their rows in MANIFEST.
    var rows: [Manifest.Segment]

    /// Raw bytes of keys and values in it.
    var rawBytes: Int { rows.reduce(0) { $0 + $1.rawBytes } }

    /// Its segments, each by itself.
    var singles: [Group] { zip(segments, rows).map { Group(segments: [$0], rows: [$1]) } }

    /// The group without the segments at its beginning that are done and far longer than all that
    /// come behind, which are groups by themselves.
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

    /// The sequences that its segments are for.
    var range: ClosedRange<UInt64> {
      let first = segments.first?.firstSequence ?? 0
      return first...max(first, segments.last?.lastSequence ?? 0)
    }
  }

  private(set) var groups: [Group] = []

  /// - Parameters:
  ///   - segments: all segments by first sequence.
  ///   - rows: what MANIFEST says of them.
  ///   - includesActive: whether the one that is written to takes part; a compaction seals it
  ///     beforehand, a forecast of one cannot.
  ///   - mostBytes: of more, there are several groups.
  ///   - isDone: whether a segment is as a compaction leaves it, and nothing of it can go, as far
  ///     as is known. One that is far longer than those behind it is not merged with them.
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

  /// How many bytes the entries of a segment take at most in a new one, however little they
  /// compress: places in a segment have 32 bits.
  static func boundedBytes(_ row: Manifest.Segment) -> Int {
    row.rawBytes + row.entryCount * Limits.headBytes
  }

  /// Whether sequences from `first` to `last` fit into one segment: its locator has 32 bits for
  /// them.
  static func fits(_ first: UInt64, _ last: UInt64?) -> Bool {
    guard let last, last > first else { return true }
    return last - first < UInt64(UInt32.max)
  }
}

extension CompactionPlan {
  /// The groups of segments that a purge rewrites, each in a step of its own. From `first` on these
  /// are groups in which the share of evicted bytes is at least half the average. Besides, short
  /// segments, which purges leave behind, are merged wherever many stand side by side.
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
    return groups.enumerated().filter { (place, group) in
      group.segments.count > shortSegments
        || place >= start && share(group.rows) > 0 && 2 * share(group.rows) >= usual
    }.map(\.element)
  }

  private static let shortSegments = 4
}
