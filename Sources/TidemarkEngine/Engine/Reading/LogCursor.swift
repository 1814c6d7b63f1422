/// Walks the entries of the log in order of sequence. Holds no lock between calls.
/// An appended segment has its frames in that order. A compacted one is sorted by key, so a window
/// of sequences is gathered from it and sorted: each walk over its frames fills a bounded window.
package struct LogCursor {
  private let reader: Reader
  /// The first sequence that is not loaded yet.
  private var upcoming: UInt64
  private let through: UInt64
  /// Of an appended segment: the frame at hand, and its entry headers ("heads").
  private var heads: [EntryHead] = []
  private var frame: (segment: Segment, front: DecodedFront)?
  /// Of a compacted segment: the entries of the window at hand.
  private var pending: [LogEntry] = []
  /// The index of the next entry in `heads` or `pending`, of which one at most has any.
  private var position = 0
  private let includesRecords: Bool
  /// How many entries of a frame are prefetched from the index together.
  private static let prefetched = 32
  private let prefetches: Bool
  /// The index of the first entry of the frame that was not prefetched.
  private var prefetchedThrough = 0

  /// - Parameters:
  ///   - includesRecords: also the engine's own entries: records, and derived rows of indexes.
  ///   - prefetches: whether the caller will ask for each entry ``Reader/isNewest(_:ofKey:)``.
  package init(
    _ reader: Reader, from first: UInt64, through: UInt64, includesRecords: Bool = false,
    prefetches: Bool = false
  ) {
    self.prefetches = prefetches
    self.reader = reader
    upcoming = max(first, 1)
    self.through = through
    self.includesRecords = includesRecords
  }

  /// The next entry; nil at the end.
  package mutating func next() throws(TidemarkError) -> LogEntry? {
    while let entry = try nextOfLog() {
      // A touch (which renews the validity of an older put's value) says nothing without that put,
      // and compaction may drop a cached put before the touch.
      guard entry.head.kind == .touch, try reader.hasEvicted(entry.head.valueSequence) else {
        return entry
      }
    }
    return nil
  }

  private mutating func nextOfLog() throws(TidemarkError) -> LogEntry? {
    while true {
      if let entry = nextOfFrame() { return entry }
      if position < pending.count {
        position += 1
        return pending[position - 1]
      }
      guard upcoming <= through, try fill() else { return nil }
    }
  }

  private mutating func nextOfFrame() -> LogEntry? {
    while position < heads.count {
      if prefetches, position >= prefetchedThrough { prefetch() }
      let head = heads[position]
      guard head.sequence <= through else { break }
      position += 1
      if let frame, includesRecords || Self.isShown(head, frame.front) {
        return LogEntry(segment: frame.segment, front: frame.front, head: head)
      }
    }
    if frame != nil { (frame, heads, position) = (nil, [], 0) }
    return nil
  }

  /// Whether an entry is one of the user's: neither a record nor derived.
  static func isShown(_ head: EntryHead, _ front: DecodedFront) -> Bool {
    head.kind != .record && !DerivedKeys.contains(front.key(of: head))
  }

  private mutating func prefetch() {
    guard let front = frame?.front else { return }
    let end = min(position + Self.prefetched, heads.count)
    reader.prefetchSlots(
      heads[position..<end].map { KeyHash.hash(front.key(of: $0), seed: reader.hashSeed) })
    prefetchedThrough = end
  }

  /// Loads the next frame or window, or passes over a gap in the sequences.
  /// - Returns: false at the end of the log.
  private mutating func fill() throws(TidemarkError) -> Bool {
    pending.removeAll(keepingCapacity: true)
    position = 0
    try reader.writeStagedForReading()
    try reader.checkReadable()
    guard let segment = reader.segments.first(where: { $0.lastSequence >= upcoming }) else {
      return false
    }
    let first = max(upcoming, segment.firstSequence)
    guard first <= through else { return false }
    do throws(TidemarkError) { try fill(from: segment, first) } catch {
      // If a compaction has replaced the segment, its file may be gone. `upcoming` has not moved:
      // the next call loads the same sequences from the new segment.
      guard !reader.isCurrent(segment) else { throw error }
      pending.removeAll(keepingCapacity: true)
    }
    return true
  }

  private mutating func fill(from segment: Segment, _ first: UInt64) throws(TidemarkError) {
    if segment.kind == .compacted {
      try fillWindow(segment, from: first)
    } else {
      guard let (record, _) = try segment.frame(holding: first) else {
        // No entry of the segment comes at or after `first`.
        upcoming = max(segment.lastSequence, first) + 1
        return
      }
      let front = try segment.front(record, caches: reader.caches)
      guard front.header.firstSequence <= first, first < front.header.nextSequence else {
        throw segment.damage(
          .format(FormatError("locator points at another frame")), offset: Int(record.offset),
          sequences: first...first)
      }
      // In appended segments the sequences of a frame are dense.
      position = Int(first - front.header.firstSequence)
      prefetchedThrough = position
      frame = (segment, front)
      heads = front.entries
      upcoming = front.header.nextSequence
    }
  }

  /// Loads the next window of a compacted segment.
  private mutating func fillWindow(_ segment: Segment, from first: UInt64) throws(TidemarkError) {
    let last = min(through, segment.lastSequence)
    if try SequenceWindow.isBestFoundSingly(first...last, in: segment) {
      try fillSingly(segment, first...last)
      return
    }
    var window = try SequenceWindow(segment, first...last, includesRecords: includesRecords)
    try window.gather()
    pending = window.entries()
    upcoming = window.last + 1
  }

  /// Loads a window by looking for each of its entries: for ranges that hold few.
  private mutating func fillSingly(
    _ segment: Segment, _ range: ClosedRange<UInt64>
  ) throws(TidemarkError) {
    var sequences: [UInt64] = []
    var first = range.lowerBound
    while first <= range.upperBound,
      let next = try segment.sequence(atOrAfter: first), next <= range.upperBound
    {
      sequences.append(next)
      first = next + 1
    }
    // All together, so that each frame's heads are decoded once.
    var found: [LogEntry] = []
    try reader.entries.forEach(at: sequences) { (_, entry) throws(TidemarkError) in
      if includesRecords || Self.isShown(entry.head, entry.front) { found.append(entry) }
    }
    pending = found.sorted { $0.sequence < $1.sequence }
    upcoming = range.upperBound + 1
  }
}
