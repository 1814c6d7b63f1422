/// Goes through a log from its end until a checkpoint tells what stood before, and gathers the
/// newest record of every name on the way.
struct RecordWalk {
  /// So many sequences are read forward at a time; at first fewer, since the last checkpoint is
  /// mostly near.
  private static let firstStretch: UInt64 = 4_096
  private static let longestStretch: UInt64 = 65_536

  private let reader: Reader
  /// The last sequence that was looked at.
  let head: UInt64
  /// The newest record of every name behind the checkpoint.
  private(set) var found: [RecordName: (sequence: UInt64, isRemoval: Bool)] = [:]
  private(set) var checkpoint: RecordCheckpoint?
  /// Checkpoints that are of no use.
  private(set) var unreadable = 0

  init(_ reader: Reader) {
    self.reader = reader
    head = reader.lastSequence
  }

  mutating func run() throws(TidemarkError) {
    var end = head
    var stretch = Self.firstStretch
    while end > checkpoint?.through ?? 0 {
      if let first = try readWhole(upTo: end, isNear: stretch < Self.longestStretch) {
        end = first - 1
        continue
      }
      let start = end - min(end, stretch) + 1
      let count = try read(from: start, through: end)
      end = start - 1
      // Where entries are sparse, in a gap that the store's files may claim to be of any length,
      // only growing stretches come to an end.
      stretch =
        count < Self.firstStretch
        ? stretch.multipliedReportingOverflow(by: 4).overflow ? end : stretch * 4
        : min(stretch * 4, Self.longestStretch)
    }
    let listed = checkpoint?.through ?? 0
    found = found.filter { $0.value.sequence > listed }
  }

  /// Takes what a stretch holds.
  ///
  /// - Returns: how many entries it holds.
  private mutating func read(
    from start: UInt64, through end: UInt64
  ) throws(TidemarkError) -> UInt64 {
    var cursor = LogCursor(reader, from: start, through: end, includesRecords: true)
    var checkpoints: [UInt64] = []
    var count: UInt64 = 0
    while let entry = try cursor.next() {
      count += 1
      if entry.head.kind == .record { try take(entry, &checkpoints) }
    }
    try take(checkpoints)
    return count
  }

  /// Takes what a sealed segment holds, if a sequence lies in one, in one walk over its heads: of
  /// a compacted one, whose entries are not in order of sequence, and of any that is far from the
  /// end. One without records is passed over.
  ///
  /// - Returns: the first sequence that the segment covers.
  private mutating func readWhole(
    upTo end: UInt64, isNear: Bool
  ) throws(TidemarkError) -> UInt64? {
    while true {
      guard let segment = reader.segment(covering: end),
        segment.isSealed, segment.lastSequence >= end
      else { return nil }
      do throws(TidemarkError) {
        if try segment.isRecordless() { return segment.firstSequence }
        guard segment.kind == .compacted || !isNear else { return nil }
        var checkpoints: [UInt64] = []
        let frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
        for record in try segment.frames() {
          let front = try frames.front(record)
          for head in front.entries where head.kind == .record {
            guard head.sequence <= end else { continue }
            try take(LogEntry(segment: segment, front: front, head: head), &checkpoints)
          }
        }
        try take(checkpoints)
        return segment.firstSequence
      } catch {
        // A compaction may have replaced it meanwhile.
        guard !reader.isCurrent(segment) else { throw error }
      }
    }
  }

  private mutating func take(
    _ entry: LogEntry, _ checkpoints: inout [UInt64]
  ) throws(TidemarkError) {
    let type = RecordType(rawValue: try entry.attributes().recordType)
    if type == .checkpoint {
      checkpoints.append(entry.sequence)
    } else if type.isListed {
      let name = RecordName(type, key: entry.key)
      if let known = found[name], known.sequence > entry.sequence { return }
      found[name] = (entry.sequence, entry.head.valueLength == 0)
    }
  }

  /// A checkpoint that cannot be read, or that a later version wrote, is passed over: the log
  /// itself tells everything that it would have told.
  private mutating func take(_ checkpoints: [UInt64]) throws(TidemarkError) {
    for sequence in checkpoints.sorted(by: >) where checkpoint == nil {
      checkpoint = try reader.withValue(of: sequence) { (value, _) throws(TidemarkError) in
        try? RecordCheckpoint(decoding: value, at: sequence)
      }
      if checkpoint == nil { unreadable += 1 }
    }
  }
}
