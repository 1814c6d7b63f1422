/// The worth of a compaction.
public struct LogSpace: Sendable, Hashable {
  /// Bytes of the log.
  public var log: Int
  /// Bytes of segments as writers appended them: no compaction has rewritten them, or left them
  /// since they would get no smaller. ``reclaimable`` leaves out outdated replication records in
  /// them.
  public var appended: Int
  /// About as many of them would go; 0 when fewer are superseded than was asked about.
  public var reclaimable: Int

  /// An estimate.
  public init(log: Int, appended: Int = 0, reclaimable: Int = 0) {
    self.log = log
    self.appended = appended
    self.reclaimable = reclaimable
  }
}

extension Compactor {
  /// Estimates what a compaction would free, by what the retention and open views let go.
  ///
  /// An estimate: sizes are known by classes, what records take of the log is not counted, and in
  /// a segment that is partly kept, what is superseded is taken to be spread evenly.
  /// - Parameter minimum: when fewer bytes are superseded, nobody asks how many of them may go,
  ///   which takes a look at the older part of the log.
  package func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
    try countMissingUsage()
    let log = reader.snapshot
    var space = LogSpace(log: log.usedBytes)
    var superseded = 0.0
    for segment in log.segments {
      if segment.kind == .appended, !log.leftAlone.contains(segment.id) {
        space.appended += segment.usedLength()
      }
      superseded += supersededBytes(segment, log)
    }
    guard superseded >= Double(max(minimum, 1)) else { return space }
    let options = CompactionOptions(dryRun: true)
    let floor = try compactionFloor(options, pinsToHonour(options))
    guard floor.drops else { return space }
    for segment in log.segments {
      let last = min(segment.lastSequence, log.visible)
      guard segment.firstSequence <= min(floor.limit, last) else { continue }
      let part =
        Double(min(floor.limit, last) - segment.firstSequence + 1)
        / Double(last - segment.firstSequence + 1)
      space.reclaimable += Int(supersededBytes(segment, log) * part)
    }
    return space
  }

  /// About how many bytes of a segment on the disk something newer has replaced.
  private func supersededBytes(_ segment: Segment, _ log: LogSnapshot) -> Double {
    let active = writer.active.flatMap { $0.id == segment.id ? $0.rawBytes : nil }
    return Double(segment.usedLength()) * log.supersededShare(of: segment, activeRawBytes: active)
  }

  /// Counts what is superseded in segments of which nothing is known: compaction made them
  /// after the run of the index was written.
  func countMissingUsage() throws(TidemarkError) {
    let log = reader.snapshot
    for segment in log.segments where log.usage(of: segment) == nil {
      let row: SpaceUsage.Row
      do throws(TidemarkError) { row = try usage(of: segment) } catch {
        // A compaction has replaced it meanwhile, and counted what it wrote instead.
        guard reader.isCurrent(segment) else { continue }
        throw error
      }
      reader.note(row, of: segment)
    }
  }

  private func usage(of segment: Segment) throws(TidemarkError) -> SpaceUsage.Row {
    var usage = SpaceUsage.Row()
    for record in try segment.frames() {
      let front = try segment.front(record, caches: store.caches)
      for head in front.entries where head.kind != .record {
        let slot = try reader.slot(ofKey: front.key(of: head))
        guard slot?.sequence != head.sequence, head.kind == .put else { continue }
        let bytes = head.keyLength + head.valueLength + Limits.entryOverheadBytes
        usage.superseded += bytes
        if front.isCached(head) { usage.cached += bytes }
      }
    }
    return usage
  }
}

extension LogSnapshot {
  /// How much of a segment something newer has replaced, from 0 to 1.
  /// - Parameter activeRawBytes: of the segment that is appended to; nil where another process
  ///   writes it, so that it is known by its length alone.
  func supersededShare(of segment: Segment, activeRawBytes: Int?) -> Double {
    let superseded = usage(of: segment)?.superseded ?? 0
    let sealed = manifest.segments.first { $0.id == segment.id && $0.state == .sealed }
    let raw = sealed?.rawBytes ?? activeRawBytes ?? segment.usedLength()
    return Double(superseded) / Double(max(raw, superseded, 1))
  }

  /// Whether a segment is as a compaction leaves it, and nothing of it has been superseded since.
  func isDone(
    _ segment: Segment, _ options: CompactionOptions, _ floor: CompactionFloor
  ) -> Bool {
    guard segment.kind == .compacted, !options.dense, options.newKey == nil,
      options.isSuperseded == nil,
      let row = manifest.segments.first(where: { $0.id == segment.id }),
      row.keyID == manifest.keyID
    else { return false }
    let counted = usage(of: segment)
    return (floor.drops ? counted?.superseded : counted?.cached ?? 0) == 0
  }
}
