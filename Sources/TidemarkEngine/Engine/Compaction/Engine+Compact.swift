extension Engine {
  /// Rewrites the log: drops what the retention does not keep, merges small segments, sorts
  /// and recompresses.
  ///
  /// Order, so that a crash at any point leaves a store that is right: MANIFEST says from where
  /// history is kept; an image that no longer knows dropped tombstones is written, since deleted
  /// keys could rise from an older one; then the segments are replaced, oldest first, each group in
  /// one step of MANIFEST, and files go only after that.
  @discardableResult
  package func compact(
    _ options: CompactionOptions = CompactionOptions()
  ) throws(TidemarkError) -> CompactionReport {
    let isAutomatic = options.automatic != nil
    while try !beginCompacting(writes: !options.dryRun, isAutomatic: isAutomatic) {
      // One that nobody has asked for makes room for this one, unless that is such a one, too.
      let isEnding =
        (!isAutomatic || options.waits) && writer.withLock { $0.compactor.makeRoom() }
      writer.broadcast()
      guard options.waits || isEnding else {
        throw TidemarkError(.busy, "a compaction is running already; wait for it to end")
      }
      writer.wait { !$0.compactor.isRunning }
      try options.checkStop()
    }
    defer { endCompacting() }
    var report = CompactionReport()
    do throws(TidemarkError) {
      if options.dryRun || isAutomatic {
        try rewriteLog(options, &report)
      } else {
        defer { provideBallast(mayShrink: true) }
        try withBallast { () throws(TidemarkError) in
          do throws(TidemarkError) { try rewriteLog(options, &report) } catch {
            guard error.code == .noSpace else { throw error }
            let before = report.segmentsRewritten
            try rewriteLog(options, singly: true, &report)
            if report.segmentsRewritten == before { throw error }
          }
        }
      }
    } catch {
      guard error.code == .suspended, isClosed else { throw error }
      throw TidemarkError(.closed, "the store was closed while it was compacted", cause: error)
    }
    // Entries that went may have been the last to name an attachment.
    if !options.dryRun, !isAutomatic || report.droppedEntries > 0 {
      let swept = try sweepAttachments()
      report.attachmentsRemoved = swept.removed
      report.attachmentBytesFreed = swept.removedBytes
    }
    // Again, since content may have been finished meanwhile that was begun under the former key.
    if options.newKey != nil, let failure = try attachments.rewriteWithCurrentKey() {
      throw failure
    }
    return report
  }

  /// One run, which may be made again when it failed; the report then tells of all.
  /// - Parameter singly: whether segments are rewritten one by one, and only those that lose
  ///   something: on a disk that is nearly full each of them gives back room for the next.
  private func rewriteLog(
    _ options: CompactionOptions, singly: Bool = false, _ report: inout CompactionReport
  ) throws(TidemarkError) {
    if !options.dryRun {
      try markUnclean()
      if let newKey = options.newKey { try adopt(newKey) }
      if options.automatic == nil {
        try sealSegments()
        try flush()
      }
      try changeKeyBesideLog(isAsked: options.automatic == nil)
    }
    let isInSteps = options.automatic?.stepBytes != nil
    let pins = try pinsToHonour(options)
    var floor = try compactionFloor(options, pins)
    var groups = compactionGroups(options, &floor)
    if singly { groups = groups.flatMap(\.singles) }
    if floor.drops, !options.dryRun { floor = try raiseHistoryFrom(floor) }
    if report.segmentsBefore == 0 {
      measureLog { (segments, bytes) in
        report.segmentsBefore = segments
        report.bytesBefore = bytes
      }
    }
    let pinned = try PinnedVersions(self, floor, pins, groups: groups.map(\.range))
    if floor.drops, !options.dryRun, !hasForgotten(floor.limit) {
      try writeImage(forgetting: floor.limit, but: pinned.deletes)
    }
    report.held = pinned.held
    var fates = CompactionFates(self, floor, pinned, isRecordSuperseded: options.isSuperseded)
    var lack: TidemarkError?
    while !groups.isEmpty {
      // A segment that is held keeps its file open, and with it its space on the disk.
      let group = groups.removeFirst()
      try options.checkStop()
      let unit = CompactionUnit(
        self, group, floor: floor, pinned: pinned, options: options,
        onlyDrops: singly || isInSteps && group.segments.count == 1)
      let before = fates
      do throws(TidemarkError) { try replace(by: unit, &fates, options, &report) } catch {
        guard singly || isInSteps, error.code == .noSpace else { throw error }
        lack = error
        fates = before
        try unit.passOver(&fates)
      }
    }
    if let lack, !isInSteps || report.segmentsRewritten == 0 { throw lack }
    if !options.dryRun, options.automatic == nil {
      try finishChangeOfKeys()
    }
    measureLog { (segments, bytes) in
      report.segmentsAfter = segments
      report.bytesAfter = bytes
    }
    report.historyFrom = reading.withLock { $0.manifest.historyFrom }
  }

  /// Rewrites one group.
  private func replace(
    by unit: CompactionUnit, _ fates: inout CompactionFates, _ options: CompactionOptions,
    _ report: inout CompactionReport
  ) throws(TidemarkError) {
    let outcome = try unit.run(&fates)
    if let swap = outcome.swap, !options.dryRun {
      let before = usedBytes(of: swap.inputs)
      try replace(swap)
      report.bytesFreed += before - swap.rows.reduce(0) { $0 + $1.length }
      report.segmentsRewritten += swap.inputs.count
    }
    report.droppedEntries += outcome.droppedEntries
    report.droppedTombstones += outcome.droppedTombstones
    report.droppedBytes += outcome.droppedBytes
  }

  /// - Parameter floor: lowered to nothing where older segments do not take part: all versions of a
  ///   key together tell which of them may go.
  /// - Returns: what is rewritten together.
  private func compactionGroups(
    _ options: CompactionOptions, _ floor: inout CompactionFloor
  ) -> [CompactionPlan.Group] {
    let limit = floor
    let (groups, isWhole) = reading.withLock { read -> ([CompactionPlan.Group], Bool) in
      guard let automatic = options.automatic else {
        let plan = CompactionPlan(
          read.segments, rows: read.manifest.segments, includesActive: options.dryRun
        ) { read.isDone($0, options, limit) }
        return (plan.groups, true)
      }
      // A purge leaves short segments behind, which the next one merges. So it sees all segments.
      if let step = automatic.stepBytes {
        let groups = purgeGroups(
          read.segments, read.manifest.segments, read.usage, from: automatic.first,
          stepBytes: step)
        return (groups, false)
      }
      let segments = read.segments.drop { $0.id != automatic.first }
      let plan = CompactionPlan(Array(segments), rows: read.manifest.segments)
      return (plan.groups, segments.count == read.segments.count)
    }
    if !isWhole { floor = CompactionFloor(sequence: 0, cached: floor.cached) }
    return groups
  }

  /// Merges the small segments at the end of the log, which many short sessions leave behind.
  func mergeSmallSegments() throws(TidemarkError) {
    guard try beginCompacting() else { return }
    defer { endCompacting() }
    let group = reading.withLock { read -> CompactionPlan.Group in
      var group = CompactionPlan.Group(segments: [], rows: [])
      for segment in read.segments.reversed() {
        guard let row = read.manifest.segments.first(where: { $0.id == segment.id }),
          row.state == .sealed
        else { continue }
        guard row.rawBytes < Limits.smallSegmentBytes,
          CompactionPlan.fits(row.firstSequence, group.segments.last?.lastSequence)
        else { break }
        group.segments.insert(segment, at: 0)
        group.rows.insert(row, at: 0)
      }
      return group
    }
    guard group.segments.count >= Limits.smallSegments else { return }
    try changeKeyBesideLog(isAsked: false)
    let floor = CompactionFloor(sequence: 0)
    let unit = CompactionUnit(self, group, floor: floor, options: CompactionOptions())
    var fates = CompactionFates(self, floor, nil, isRecordSuperseded: nil)
    if let swap = try unit.run(&fates).swap { try replace(swap) }
  }

  /// Claims the one place for who rewrites the log.
  /// - Returns: false when somebody else has it.
  private func beginCompacting(
    writes: Bool = true, isAutomatic: Bool = false
  ) throws(TidemarkError) -> Bool {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      if writes { try checkWritable(state) }
      return state.compactor.begin(byItself: isAutomatic)
    }
  }

  private func endCompacting() {
    writer.withLock { $0.compactor.end() }
    writer.broadcast()
  }

  private func measureLog(_ body: (Int, Int) -> Void) {
    let segments = reading.withLock { $0.segments }
    body(segments.count, usedBytes(of: segments))
  }

  private func usedBytes(of segments: [Segment]) -> Int {
    segments.reduce(0) { $0 + $1.usedLength() }
  }

  /// From here on a crash leaves files behind, which only an unclean opening clears away.
  func markUnclean() throws(TidemarkError) {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      guard state.manifest.isClosedCleanly else { return }
      var manifest = state.manifest
      manifest.isClosedCleanly = false
      try updateManifest(manifest, &state)
    }
  }

  /// The pins of all peers, where anything may go at all.
  func pinsToHonour(_ options: CompactionOptions) throws(TidemarkError) -> [NamedPin] {
    let keepsAll = reading.withLock { $0.manifest.retention == .everything }
    return keepsAll && !options.dropHistory ? [] : try retentionPins()
  }

  /// The floor that the retention, or the options, set.
  func compactionFloor(
    _ options: CompactionOptions, _ pins: [NamedPin]
  ) throws(TidemarkError) -> CompactionFloor {
    var (retention, needed) = reading.withLock { read in
      // A compaction flushes first; its forecast takes that as done.
      (
        read.manifest.retention,
        options.dryRun ? min(read.views.least ?? .max, read.visible) : neededFloor(read)
      )
    }
    let cached = needed
    // One that cannot be read keeps everything.
    if pins.contains(where: { $0.pin == nil }) { needed = 0 }
    if let floor = try projectionFloor() { needed = min(needed, floor) }
    let deletes = reading.withLock { $0.deletesKeptAbove }
    if options.dropHistory {
      return CompactionFloor(
        sequence: needed, needed: needed, deletes: deletes, cached: cached)
    }
    var floor = CompactionFloor(
      sequence: 0, versionsPerKey: retention.versionsPerKey, needed: needed, deletes: deletes,
      cached: cached)
    if let age = retention.ageSeconds {
      floor.sequence = max(floor.sequence, try lastSequence(olderThan: age))
    }
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
    var reached: UInt64 = 0
    let segments = reading.withLock { $0.segments }
    for segment in segments {
      var isPast = false
      for record in try segment.frames() {
        let front = try segment.front(record, caches: caches)
        for head in front.entries {
          if HybridTime(head.commitTime).timestamp <= limit {
            reached = max(reached, head.sequence)
          } else {
            isPast = true
          }
        }
        if isPast, segment.kind == .appended { break }
      }
      if isPast { break }
    }
    return reached
  }

  /// The sequence below which superseded entries go so that the log fits into `bytes`.
  private func lastSequence(toKeep bytes: UInt64) throws(TidemarkError) -> UInt64 {
    let status = try status()
    var excess = status.bytes.log - Int(clamping: bytes)
    var reached: UInt64 = 0
    for segment in status.segments where excess > 0 {
      excess -= segment.supersededBytes
      reached = segment.lastSequence
    }
    return reached
  }

  /// Says from where history is kept.
  /// - Returns: the floor, lowered to what views need that were opened meanwhile.
  private func raiseHistoryFrom(
    _ floor: CompactionFloor
  ) throws(TidemarkError) -> CompactionFloor {
    var floor = floor
    while true {
      let limit = floor.limit
      let time = try latestTime(through: limit)
      let isDone = try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
        try checkWritable(state)
        // In one hold: a view is either seen here, or refused from here on.
        let manifest = reading.withLock { read -> Manifest? in
          floor.needed = min(floor.needed, neededFloor(read))
          floor.sequence = min(floor.sequence, floor.needed)
          floor.deletes = min(floor.deletes, read.deletesKeptAbove)
          // A view that came in between has lowered it: its time is another one.
          guard floor.limit == limit else { return nil }
          var manifest = state.manifest
          guard limit > manifest.historyFrom else { return manifest }
          manifest.historyFrom = limit
          manifest.historyTime = time
          read.manifest.historyFrom = limit
          read.manifest.historyTime = time
          return manifest
        }
        guard let manifest else { return false }
        if manifest != state.manifest { try publish(manifest, &state) }
        return true
      }
      if isDone { break }
    }
    return floor
  }

  /// Whether the runs of the index know nothing any more of what was deleted up to a sequence.
  private func hasForgotten(_ limit: UInt64) -> Bool {
    reading.withLock { read in
      let runs = read.index.runs
      return runs.sequence >= limit && runs.runs.allSatisfy { $0.header.deletedKeys == 0 }
    }
  }

  /// Writes MANIFEST with a higher `historyFrom`, which readers see already.
  private func publish(
    _ manifest: Manifest, _ state: inout WriterState
  ) throws(TidemarkError) {
    do { try updateManifest(manifest, &state) } catch {
      // Nothing was dropped: what was refused for a moment is answered again.
      let before = state.manifest
      if state.poison == nil {
        reading.withLock { read in
          read.manifest.historyFrom = before.historyFrom
          read.manifest.historyTime = before.historyTime
        }
      }
      throw error
    }
  }
}
