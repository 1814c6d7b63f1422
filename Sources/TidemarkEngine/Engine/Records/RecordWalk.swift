/// Walks a log backwards, stretch by stretch, and gathers the newest record of every name. It ends
/// at a checkpoint, the record that lists the newest records up to its `through`. Records are the
/// engine's own entries; a ``RecordTable`` makes this walk once, when it is created.
struct RecordWalk {
  /// So many sequences are read forward at a time; fewer at first: a checkpoint is mostly near.
  private static let firstStretch: UInt64 = 4_096
  private static let longestStretch: UInt64 = 65_536

  private let reader: Reader
  /// The last sequence of the log when the walk began.
  let head: UInt64
  /// The newest record of every name above the checkpoint's `through`.
  private(set) var found: [RecordName: (sequence: UInt64, isRemoval: Bool)] = [:]
  private(set) var checkpoint: RecordCheckpoint?
  /// Checkpoints that could not be decoded.
  private(set) var unreadable = 0

  init(_ reader: Reader) {
    self.reader = reader
    head = reader.lastSequence
  }

  mutating func run() throws(TidemarkError) {
    var end = head
    var stretch = Self.firstStretch
    while end > checkpoint?.through ?? 0 {
      if let first = try readSegment(upTo: end, isNear: stretch < Self.longestStretch) {
        end = first - 1
        continue
      }
      let start = end - min(end, stretch) + 1
      let count = try readStretch(from: start, through: end)
      end = start - 1
      // Few entries mean a gap between sequences. Damaged files may claim one of any length, so
      // the stretch grows without a limit in it, or the walk would not end.
      stretch =
        count < Self.firstStretch
        ? stretch.multipliedReportingOverflow(by: 4).overflow ? end : stretch * 4
        : min(stretch * 4, Self.longestStretch)
    }
    // Up to `through` the checkpoint's own rows say which records are the newest.
    let listed = checkpoint?.through ?? 0
    found = found.filter { $0.value.sequence > listed }
  }

  /// Reads the records of a stretch.
  /// - Returns: how many entries the stretch holds.
  private mutating func readStretch(
    from start: UInt64, through end: UInt64
  ) throws(TidemarkError) -> UInt64 {
    var cursor = LogCursor(reader, from: start, through: end, includesRecords: true)
    var checkpoints: [UInt64] = []
    var count: UInt64 = 0
    while let entry = try cursor.next() {
      count += 1
      if entry.head.kind == .record { try note(entry, &checkpoints) }
    }
    try decode(checkpoints)
    return count
  }

  /// Reads the records of a whole sealed segment in one walk over its entry headers, if `end` lies
  /// in one that is compacted, so that its entries are not in order of sequence, or that is far
  /// from the log's end. A segment whose footer says that it has no records is passed over.
  /// - Returns: the first sequence of the segment; nil where `end` is to be read as a stretch.
  private mutating func readSegment(
    upTo end: UInt64, isNear: Bool
  ) throws(TidemarkError) -> UInt64? {
    while true {
      // The last segment that begins at or below `end` may end before it: then `end` is in a gap.
      guard let segment = reader.segments.covering(end),
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
            // What lies above `end` was read before.
            guard head.sequence <= end else { continue }
            try note(LogEntry(segment: segment, front: front, head: head), &checkpoints)
          }
        }
        try decode(checkpoints)
        return segment.firstSequence
      } catch {
        // If a compaction has replaced the segment and removed its file, its successor is read.
        guard !reader.isCurrent(segment) else { throw error }
      }
    }
  }

  /// Keeps a record if it is the newest of its name so far, and gathers checkpoints for `decode`.
  private mutating func note(_ entry: LogEntry, _ checkpoints: inout [UInt64]) throws(TidemarkError)
  {
    let type = RecordType(rawValue: try entry.attributes().recordType)
    if type == .checkpoint {
      checkpoints.append(entry.sequence)
    } else if type.isListed {
      let name = RecordName(type, key: entry.key)
      if let known = found[name], known.sequence > entry.sequence { return }
      found[name] = (entry.sequence, entry.head.valueLength == 0)
    }
  }

  /// Takes the newest checkpoint that can be decoded; an error of reading the log is thrown.
  /// One that is malformed, or that a later version wrote, is passed over: the walk goes on and
  /// finds in the log itself what the checkpoint would have listed.
  private mutating func decode(_ checkpoints: [UInt64]) throws(TidemarkError) {
    for sequence in checkpoints.sorted(by: >) where checkpoint == nil {
      checkpoint = try reader.withValue(of: sequence) { (value, _) throws(TidemarkError) in
        try? RecordCheckpoint(decoding: value, at: sequence)
      }
      if checkpoint == nil { unreadable += 1 }
    }
  }
}
