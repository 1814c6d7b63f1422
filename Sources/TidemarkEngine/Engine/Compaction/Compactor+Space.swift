/// An estimate of the log's bytes and of the bytes that a compaction would free.
public struct LogSpace: Sendable, Hashable {
  /// The bytes of the log on the disk.
  public var log: Int
  /// Bytes of segments as writers appended them, which no compaction has rewritten, or tried to and
  /// found no smaller. Outdated replication records in them come on top of ``reclaimable``.
  public var appended: Int
  /// The approximate bytes of the log that a compaction would free; 0 when fewer are superseded
  /// than was asked about.
  public var reclaimable: Int

  /// Creates an estimate from its numbers of bytes.
  /// - Parameters:
  ///   - log: the bytes of the log on the disk.
  ///   - appended: the bytes of segments that no compaction has rewritten.
  ///   - reclaimable: the bytes that a compaction would free.
  public init(log: Int, appended: Int = 0, reclaimable: Int = 0) {
    self.log = log
    self.appended = appended
    self.reclaimable = reclaimable
  }
}

extension Compactor {
  /// Estimates what a compaction would free, by what the retention and open views let go.
  ///
  /// Superseded sizes are known by classes, the engine's own records are not counted, and in a
  /// segment that reaches above the floor (up to which entries may go) they are spread evenly.
  /// - Parameter minimum: with fewer superseded bytes `reclaimable` is not worked out, and stays 0.
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
      // Also passes over an empty active segment, whose range has no sequence.
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
    Double(segment.usedLength()) * log.supersededShare(of: segment, active: writer.active)
  }

  /// Counts superseded bytes in segments without a count: an opening reads counts from the newest
  /// run of the index, and a compaction may have written segments after it.
  func countMissingUsage() throws(TidemarkError) {
    let log = reader.snapshot
    for segment in log.segments where log.usage.rows[segment.id] == nil {
      let row: SpaceUsage.Row
      do throws(TidemarkError) { row = try usage(of: segment) } catch {
        // A compaction has replaced the segment meanwhile; the new one has a count from it.
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
  /// - Parameter active: the segment that this process appends to. An active segment of another
  ///   process is measured by its length on the disk.
  func supersededShare(of segment: Segment, active: (id: UInt64, rawBytes: Int)?) -> Double {
    let superseded = usage.rows[segment.id]?.superseded ?? 0
    let sealed = manifest.segments.first { $0.id == segment.id && $0.state == .sealed }
    let activeBytes = active?.id == segment.id ? active?.rawBytes : nil
    let raw = sealed?.rawBytes ?? activeBytes ?? segment.usedLength()
    return Double(superseded) / Double(max(raw, superseded, 1))
  }

  /// Whether a segment is as a compaction leaves it, and nothing of it has been superseded since.
  /// That only spares it a merge with far shorter ones; what may go from it is looked for anyhow.
  func isDone(_ segment: Segment, _ options: CompactionOptions, _ floor: CompactionFloor) -> Bool {
    guard segment.kind == .compacted, !options.dense, options.newKey == nil,
      options.isSuperseded == nil,
      let row = manifest.segments.first(where: { $0.id == segment.id }),
      row.keyID == manifest.keyID
    else { return false }
    let counted = usage.rows[segment.id]
    return (floor.drops ? counted?.superseded : counted?.cached ?? 0) == 0
  }
}
