/// The owner of compaction: it rewrites the log, one compaction at a time.
///
/// Superseded entries may go up to a floor (``CompactionFloor``), but for those that replication
/// with a peer still needs, its pin (``RetentionPin``). A group is neighbouring segments that one
/// step of MANIFEST replaces by one. A purge drops only cached data, in short steps (`stepBytes`).
package final class Compactor: StateOwner {
  package let store: StoreContext
  let reader: Reader
  let writer: LogWriter
  let checkpointer: Checkpointer
  let attachments: AttachmentFiles
  /// Says whether a compaction runs; held for moments only, never while the log is rewritten.
  let compacting: Monitor<CompactorState>

  init(
    _ reader: Reader, _ writer: LogWriter, _ checkpointer: Checkpointer,
    _ attachments: AttachmentFiles, isAutomatic: Bool
  ) {
    store = reader.store
    self.reader = reader
    self.writer = writer
    self.checkpointer = checkpointer
    self.attachments = attachments
    compacting = Monitor(CompactorState(isAutomatic: isAutomatic))
  }

  /// Rewrites the log: drops what the retention does not keep, merges small segments, sorts
  /// and recompresses.
  ///
  /// The order is such that a crash at any point leaves a store that is right: MANIFEST says from
  /// where history is kept; a sorted run of the index without the tombstones to be dropped is
  /// written, since an older run would still show their keys as live; then groups are replaced,
  /// oldest first, each in one step of MANIFEST, and files are removed only after that step.
  /// - Parameter finish: is called at the end, before another compaction may begin.
  @discardableResult
  func compact(
    _ options: CompactionOptions,
    _ finish: (inout CompactionReport) throws(TidemarkError) -> Void = { _ in }
  ) throws(TidemarkError) -> CompactionReport {
    let isAutomatic = options.automatic != nil
    while try !begin(writes: !options.dryRun, isAutomatic: isAutomatic) {
      // A running automatic compaction gives way, except to an automatic one that does not wait.
      let isEnding = (!isAutomatic || options.waits) && compacting.withLock { $0.makeRoom() }
      compacting.broadcast()
      guard options.waits || isEnding else {
        throw TidemarkError(.busy, "a compaction is running already; wait for it to end")
      }
      wait()
      try options.checkStop()
    }
    defer { end() }
    var report = CompactionReport()
    let start = store.eventStart()
    do throws(TidemarkError) {
      if options.dryRun || isAutomatic {
        try rewriteLog(options, &report)
      } else {
        defer { writer.provideBallast(mayShrink: true) }
        try writer.ballast.give { () throws(TidemarkError) in
          do throws(TidemarkError) { try rewriteLog(options, &report) } catch {
            // Segment by segment takes less room; if that fails, too, `give` frees the ballast.
            guard error.code == .noSpace else { throw error }
            let before = report.segmentsRewritten
            try rewriteLog(options, singly: true, &report)
            if report.segmentsRewritten == before { throw error }
          }
        }
      }
    } catch {
      // Closing takes files away from a running compaction, which then fails as if suspended.
      guard error.code == .suspended, reader.isClosed else { throw error }
      throw TidemarkError(.closed, "the store was closed while it was compacted", cause: error)
    }
    // An attachment that only dropped entries named is removed by a later sweep.
    if isAutomatic, report.droppedEntries > 0 { attachments.noteDrops() }
    try finish(&report)
    if !options.dryRun, report.segmentsRewritten > 0 {
      store.tell(
        .compacted, from: start, entries: report.droppedEntries, bytes: report.bytesFreed)
    }
    return report
  }

  /// One attempt at a compaction; another one, after a failure, adds to the same report.
  /// - Parameter singly: whether segments are rewritten one by one, and only those that lose
  ///   something: on a disk that is nearly full each of them gives back room for the next.
  private func rewriteLog(
    _ options: CompactionOptions, singly: Bool = false, _ report: inout CompactionReport
  ) throws(TidemarkError) {
    if !options.dryRun {
      try markUnclean()
      if let newKey = options.newKey {
        try checkpointer.betweenRuns { () throws(TidemarkError) in try writer.adopt(newKey) }
      }
      if options.automatic == nil {
        // All entries take part then, and none stays only for an opening after a power cut.
        try writer.sealSegments()
        try writer.flush()
      }
      try changeKeyBesideLog(isAsked: options.automatic == nil)
    }
    let isInSteps = options.automatic?.stepBytes != nil
    let pins = try pinsToHonour(options)
    var floor = try compactionFloor(options, pins)
    var groups = compactionGroups(options, &floor)
    if singly { groups = groups.flatMap(\.singles) }
    // Before the first entry goes: views that need it are refused from here on, or lower the floor.
    if floor.drops, !options.dryRun { floor = try raiseHistoryFrom(floor) }
    if report.segmentsBefore == 0 {
      let log = reader.snapshot
      report.segmentsBefore = log.segments.count
      report.bytesBefore = log.usedBytes
    }
    let pinned = try PinnedVersions(reader, floor, pins, groups: groups.map(\.range))
    // No run may know a tombstone that is dropped; those kept for peers (`deletes`) it must know.
    if floor.drops, !options.dryRun, !reader.hasForgottenDeletes(through: floor.limit) {
      try checkpointer.writeRun(forgetting: floor.limit, but: pinned.deletes)
    }
    report.held = pinned.held
    var decisions = CompactionDecisions(
      reader, floor, pinned, isRecordSuperseded: options.isSuperseded)
    var spaceError: TidemarkError?
    while !groups.isEmpty {
      // Out of the list, since a segment in memory keeps its removed file open on the disk.
      let group = groups.removeFirst()
      try options.checkStop()
      let unit = CompactionUnit(
        compactor: self, group: group, floor: floor, pinned: pinned, options: options,
        onlyDrops: singly || isInSteps && group.segments.count == 1)
      let before = decisions
      do throws(TidemarkError) { try replace(by: unit, &decisions, options, &report) } catch {
        guard singly || isInSteps, error.code == .noSpace else { throw error }
        spaceError = error
        // The failed attempt may have asked about a part of the group.
        decisions = before
        try unit.passOver(&decisions)
      }
    }
    if let spaceError, !isInSteps || report.segmentsRewritten == 0 { throw spaceError }
    if !options.dryRun, options.automatic == nil { try finishIndex() }
    let log = reader.snapshot
    report.segmentsAfter = log.segments.count
    report.bytesAfter = log.usedBytes
    report.historyFrom = log.manifest.historyFrom
  }

  private func replace(
    by unit: CompactionUnit, _ decisions: inout CompactionDecisions, _ options: CompactionOptions,
    _ report: inout CompactionReport
  ) throws(TidemarkError) {
    let outcome = try unit.run(&decisions)
    if let swap = outcome.swap, !options.dryRun {
      let before = swap.inputs.reduce(0) { $0 + $1.usedLength() }
      try replace(swap)
      report.bytesFreed += before - (swap.row?.length ?? 0)
      report.segmentsRewritten += swap.inputs.count
    }
    report.droppedEntries += outcome.tally.droppedEntries
    report.droppedTombstones += outcome.tally.droppedTombstones
    report.droppedBytes += outcome.tally.droppedBytes
  }

  /// Chooses the segments that are rewritten together.
  /// - Parameter floor: lowered to 0, but for cached data, where older segments do not take part:
  ///   a tombstone may still hide a version in one of them.
  private func compactionGroups(
    _ options: CompactionOptions, _ floor: inout CompactionFloor
  ) -> [CompactionPlan.Group] {
    let log = reader.snapshot
    let rows = log.manifest.segments
    guard let automatic = options.automatic else {
      return CompactionPlan(log.segments, rows: rows, includesActive: options.dryRun) {
        log.isDone($0, options, floor)
      }.groups
    }
    let limit = floor
    floor = CompactionFloor(sequence: 0, cached: limit.cached)
    guard let first = automatic.first ?? log.firstWithCached else { return [] }
    // A purge sees all segments, since it merges the short ones that earlier purges left.
    if let step = automatic.stepBytes {
      return CompactionPlan.purge(log, from: first, stepBytes: step)
    }
    let segments = log.segments.drop { $0.id != first }
    if segments.count == log.segments.count { floor = limit }
    return CompactionPlan(Array(segments), rows: rows).groups
  }

  /// Merges the small segments at the end of the log, which many short sessions leave behind.
  func mergeSmallSegments() throws(TidemarkError) {
    guard try begin() else { return }
    defer { end() }
    let log = reader.snapshot
    var group = CompactionPlan.Group(segments: [], rows: [])
    for segment in log.segments.reversed() {
      guard let row = log.manifest.segments.first(where: { $0.id == segment.id }),
        row.state == .sealed
      else { continue }
      guard row.rawBytes < Limits.smallSegmentBytes,
        CompactionPlan.fits(row.firstSequence, group.segments.last?.lastSequence)
      else { break }
      group.segments.insert(segment, at: 0)
      group.rows.insert(row, at: 0)
    }
    guard group.segments.count >= Limits.smallSegments else { return }
    try changeKeyBesideLog(isAsked: false)
    let floor = CompactionFloor(sequence: 0)
    let unit = CompactionUnit(
      compactor: self, group: group, floor: floor, options: CompactionOptions())
    var decisions = CompactionDecisions(reader, floor, nil, isRecordSuperseded: nil)
    if let swap = try unit.run(&decisions).swap { try replace(swap) }
  }

  /// Encrypts attachments with the key for new files, and removes quarantined pieces. This comes
  /// first: MANIFEST forgets a former key once no file of the log has it.
  /// - Parameter isAsked: whether a user compacts; others look only while the log has former keys.
  private func changeKeyBesideLog(isAsked: Bool) throws(TidemarkError) {
    guard try keys.current() != nil, isAsked || reader.manifest.filesToRewrite > 0 else { return }
    // A quarantined piece does not say which key it has, and the segment that did may be gone.
    try Quarantine(fileSystem, storePath: path).removeAll()
    _ = try attachments.rewriteWithCurrentKey()
  }

  /// Ends a compaction that a user asked for: the runs of the index become one where a second one
  /// takes space that counts, since both have the keys that were overwritten, or one has another
  /// key of the user's. Hint files with another key, and replaced files that still exist, go.
  private func finishIndex() throws(TidemarkError) {
    let key = try keys.current()
    let runs = reader.manifest.runs
    let newer = runs.dropFirst().reduce(0) { $0 + $1.length }
    let hasOldKey = runs.contains { $0.keyID != key }
    if hasOldKey || newer * Self.newerRunsShare > runs.first?.length ?? 0 {
      do throws(TidemarkError) { try checkpointer.writeWholeRun() } catch {
        // Where there is no room for one run beside those that are there, they stay.
        guard !hasOldKey, error.code == .noSpace else { throw error }
      }
    }
    try removeReplaced(and: HintFile.files(in: store, withoutKey: key).map(\.path))
  }

  private static let newerRunsShare = 16

  /// Calls `body` while no compaction runs; one that nobody asked for makes room.
  func whileIdle(_ body: () throws(TidemarkError) -> Void) throws(TidemarkError) {
    while try !begin() {
      _ = compacting.withLock { $0.makeRoom() }
      compacting.broadcast()
      wait()
    }
    defer { end() }
    try body()
  }

  /// Removes files of log and index that MANIFEST does not list, while nobody writes MANIFEST or a
  /// run of the index. No compaction may be writing a segment, which would be removed.
  func removeReplaced(and others: [String] = []) throws(TidemarkError) {
    try checkpointer.betweenRuns { () throws(TidemarkError) in
      try writer.changeManifest { (manifest) throws(TidemarkError) in
        do throws(FileSystemError) {
          for path in others { try fileSystem.remove(path) }
          let listed = manifest.fileNames
          for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
            for name in try fileSystem.list(path + "/" + folder) where !listed.contains(name) {
              try fileSystem.remove(path + "/" + folder + "/" + name)
            }
          }
        } catch { throw TidemarkError(error, while: "removing what a compaction has replaced") }
        return false  // MANIFEST stays as it is.
      }
    }
  }

  /// Marks MANIFEST as not cleanly closed, before files are written that it does not list yet: a
  /// crash leaves them behind, and the next opening for writing removes them.
  func markUnclean() throws(TidemarkError) {
    try writer.changeManifest { manifest in
      defer { manifest.isClosedCleanly = false }
      return manifest.isClosedCleanly
    }
  }

  /// Whether small segments may be there to be merged, as after resuming; only one call says so.
  func takeMerge() -> Bool {
    compacting.withLock { state in
      defer { state.mergeIsDue = false }
      return state.mergeIsDue
    }
  }

  /// Forgets what was decided about segments, since the log was read anew from the disk.
  func startOver() {
    compacting.withLock { $0 = CompactorState(goingOnFrom: $0) }
    compareWithCacheBound()
  }

  var status: EngineStatus.Compaction {
    compacting.withLock { state in
      EngineStatus.Compaction(
        isAutomatic: state.isAutomatic, isRunning: state.isRunning, runs: state.runs,
        bytesFreed: state.bytesFreed, neededBytes: state.neededBytes)
    }
  }

  /// Claims the right to rewrite the log, which one caller at a time has until `end`.
  /// - Returns: false when somebody else has it.
  private func begin(writes: Bool = true, isAutomatic: Bool = false) throws(TidemarkError) -> Bool {
    guard compacting.withLock({ $0.begin(byItself: isAutomatic) }) else { return false }
    do throws(TidemarkError) { if writes { try writer.checkWritable() } } catch {
      end()
      throw error
    }
    return true
  }

  private func end() {
    compacting.withLock { $0.end() }
    compacting.broadcast()
  }

  /// Waits until no compaction runs.
  func wait() { compacting.wait { !$0.isRunning } }

  /// The pins of all peers; none where the retention keeps every version anyhow.
  func pinsToHonour(_ options: CompactionOptions) throws(TidemarkError) -> [RetentionPin.Named] {
    let keepsAll = reader.manifest.retention == .everything
    return keepsAll && !options.dropHistory ? [] : try RetentionPin.all(in: reader)
  }

  /// The floor that the retention, or the options, set.
  func compactionFloor(
    _ options: CompactionOptions, _ pins: [RetentionPin.Named]
  ) throws(TidemarkError) -> CompactionFloor {
    let log = reader.snapshot
    let retention = log.manifest.retention
    // A forecast takes everything as durable, since a compaction flushes first.
    var needed = options.dryRun ? min(log.pins.first ?? .max, log.visible) : log.neededFloor
    let cached = needed
    // A pin that cannot be read keeps everything but cached data, which peers never need.
    if pins.contains(where: { $0.pin == nil }) { needed = 0 }
    if let floor = try ProjectionPin.floor(in: reader) { needed = min(needed, floor) }
    var floor = CompactionFloor(
      sequence: needed, needed: needed, deletes: log.deletesKeptAbove, cached: cached)
    if options.dropHistory { return floor }
    floor.versionsPerKey = retention.versionsPerKey
    floor.sequence = try retention.ageSeconds.map(lastSequence(olderThan:)) ?? 0
    if let bytes = retention.bytes {
      floor.sequence = max(floor.sequence, try lastSequence(toKeep: bytes))
    }
    floor.sequence = min(floor.sequence, needed)
    return floor
  }

  /// The last sequence committed more than `age` seconds ago.
  private func lastSequence(olderThan age: UInt64) throws(TidemarkError) -> UInt64 {
    let now = environment.clock.now()
    let limit = Timestamp(seconds: now.seconds - Int64(clamping: age))
    guard let time = HybridTime.last(at: limit) else { return 0 }
    let history = reader.history
    let next = try history.firstSequence(committedAfter: time) ?? reader.lastSequence + 1
    return try history.lastEntry(atOrBefore: next - 1)?.sequence ?? 0
  }

  /// The last sequence whose segment must lose superseded entries for the log to fit into `bytes`.
  private func lastSequence(toKeep bytes: UInt64) throws(TidemarkError) -> UInt64 {
    try countMissingUsage()
    let log = reader.snapshot
    var excess = log.usedBytes - Int(clamping: bytes)
    var reached: UInt64 = 0
    for segment in log.segments where excess > 0 {
      excess -= log.usage.rows[segment.id]?.superseded ?? 0
      reached = segment.lastSequence
    }
    return reached
  }

  /// Says in MANIFEST from where history is kept, so that views of older states are refused.
  /// - Returns: the floor, lowered to what views need that were opened meanwhile.
  private func raiseHistoryFrom(_ floor: CompactionFloor) throws(TidemarkError) -> CompactionFloor {
    var floor = floor
    while true {
      let time = try reader.history.latestTime(through: floor.limit)
      // False: a new view has lowered the floor, to which another time belongs.
      if try writer.raiseHistoryFrom(&floor, time: time) { return floor }
    }
  }
}
