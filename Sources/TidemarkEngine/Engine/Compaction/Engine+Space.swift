/// The worth of a compaction.
public struct LogSpace: Sendable, Hashable {
  /// Bytes of the log.
  public var log: Int
  /// The part of them in files that no compaction has rewritten, or looked at in vain, yet. Records
  /// of replication in them, of which only the newest counts, are not among what is known to be
  /// reclaimable.
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

extension Engine {
  /// Estimates what a compaction would free, by what the retention and open views let go.
  ///
  /// An estimate: sizes are known by classes, what records take of the log is not counted, and in
  /// a segment that is partly kept, what is superseded is taken to be spread evenly.
  /// - Parameter minimum: when fewer bytes are superseded, nobody asks how many of them may go,
  ///   which takes a look at the older part of the log.
  package func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
    let status = try status()
    var space = LogSpace(log: status.bytes.log)
    var superseded = 0.0
    let leftAlone = reading.withLock { $0.notes.leftAlone }
    for segment in status.segments {
      if !segment.isCompacted, !leftAlone.contains(segment.id) { space.appended += segment.length }
      superseded += Double(segment.length) * segment.supersededShare
    }
    guard superseded >= Double(max(minimum, 1)) else { return space }
    let options = CompactionOptions(dryRun: true)
    let floor = try compactionFloor(options, pinsToHonour(options))
    guard floor.drops else { return space }
    for segment in status.segments {
      let last = min(segment.lastSequence, status.sequence)
      guard segment.firstSequence <= min(floor.limit, last) else { continue }
      let part =
        Double(min(floor.limit, last) - segment.firstSequence + 1)
        / Double(last - segment.firstSequence + 1)
      space.reclaimable += Int(Double(segment.length) * segment.supersededShare * part)
    }
    return space
  }

  /// Keeps deletes above a sequence from compactions, without what they or others superseded: for
  /// those who read the log and have come so far.
  /// - Parameter sequence: nil keeps none. What has gone already stays gone.
  package func keepDeletes(above sequence: UInt64?) {
    reading.withLock { $0.deletesKeptAbove = sequence ?? .max }
  }
}
