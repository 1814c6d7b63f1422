/// Which segments are rewritten together, oldest first.
struct CompactionPlan {
  /// Input segments of one step of MANIFEST.
  struct Group: Sendable {
    var segments: [Segment]
    /// Raw bytes of keys and values in it, as MANIFEST knows them.
    var rawBytes: Int

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
  init(_ segments: [Segment], rows: [Manifest.Segment], includesActive: Bool = false) {
    var open = Group(segments: [], rawBytes: 0)
    for segment in segments {
      guard let row = rows.first(where: { $0.id == segment.id }),
        includesActive || row.state == .sealed
      else { continue }
      if let first = open.segments.first,
        open.rawBytes + row.rawBytes > Limits.compactionUnitBytes
          || !Self.fits(first.firstSequence, row.lastSequence)
      {
        groups.append(open)
        open = Group(segments: [], rawBytes: 0)
      }
      open.segments.append(segment)
      open.rawBytes += row.rawBytes
    }
    if !open.segments.isEmpty { groups.append(open) }
  }

  /// Whether sequences from `first` to `last` fit into one segment: its locator has 32 bits for
  /// them.
  static func fits(_ first: UInt64, _ last: UInt64?) -> Bool {
    guard let last, last > first else { return true }
    return last - first < UInt64(UInt32.max)
  }
}

/// New segments that are ready to take the place of old ones.
struct CompactionSwap: Sendable {
  var inputs: [Segment]
  var rows: [Manifest.Segment]
  /// Superseded bytes of every row.
  var superseded: [Int]
  /// The highest tombstone that was dropped.
  var droppedThrough: UInt64
}
