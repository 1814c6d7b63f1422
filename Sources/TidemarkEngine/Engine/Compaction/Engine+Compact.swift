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
    while try !beginCompacting(writes: !options.dryRun) {
      guard options.waits else {
        throw TidemarkError(.busy, "a compaction is running already; wait for it to end")
      }
      writer.wait { !$0.isCompacting }
      try options.checkStop()
    }
    defer { endCompacting() }
    var report = CompactionReport()
    do throws(TidemarkError) {
      if options.dryRun {
        try rewriteLog(options, &report)
      } else {
        defer { provideBallast(mayShrink: true) }
        try withBallast { () throws(TidemarkError) in
          try rewriteLog(options, &report)
        }
      }
    } catch {
      guard error.code == .suspended, isClosed else { throw error }
      throw TidemarkError(.closed, "the store was closed while it was compacted", cause: error)
    }
    return report
  }

  /// One run, which may be made again when it failed; the report then tells of both.
  private func rewriteLog(
    _ options: CompactionOptions, _ report: inout CompactionReport
  ) throws(TidemarkError) {
    if !options.dryRun {
      try markUnclean()
      if let newKey = options.newKey { try adopt(newKey) }
      try sealSegments()
      try flush()
    }
    let pins = try pinsToHonour(options)
    var floor = try compactionFloor(options, pins)
    if floor.drops, !options.dryRun { floor = try raiseHistoryFrom(floor) }
    if report.segmentsBefore == 0 {
      measureLog { (segments, bytes) in
        report.segmentsBefore = segments
        report.bytesBefore = bytes
      }
    }
    let plan = reading.withLock { read in
      CompactionPlan(
        read.segments, rows: read.manifest.segments, includesActive: options.dryRun)
    }
    let pinned = try PinnedVersions(self, floor, pins, groups: plan.groups.map(\.range))
    if floor.drops, !options.dryRun, !hasForgotten(floor.limit) {
      try writeImage(forgetting: floor.limit, but: pinned.deletes)
    }
    report.held = pinned.held
    var fates = CompactionFates(self, floor, pinned, isRecordSuperseded: options.isSuperseded)
    for group in plan.groups {
      try options.checkStop()
      let unit = CompactionUnit(self, group, floor: floor, pinned: pinned, options: options)
      let outcome = try unit.run(&fates)
      if let swap = outcome.swap, !options.dryRun {
        let before = usedBytes(of: swap.inputs)
        try replace(swap)
        report.bytesFreed += before - swap.rows.reduce(0) { $0 + $1.length }
        report.segmentsRewritten += swap.inputs.count
      }
      report.droppedEntries += outcome.droppedEntries
      report.droppedTombstones += outcome.droppedTombstones
    }
    if !options.dryRun {
      try finishChangeOfKeys()
    }
    measureLog { (segments, bytes) in
      report.segmentsAfter = segments
      report.bytesAfter = bytes
    }
    report.historyFrom = reading.withLock { $0.manifest.historyFrom }
  }

  /// Merges the small segments at the end of the log, which many short sessions leave behind.
  func mergeSmallSegments() throws(TidemarkError) {
    guard try beginCompacting() else { return }
    defer { endCompacting() }
    let group = reading.withLock { read -> CompactionPlan.Group in
      var group = CompactionPlan.Group(segments: [], rawBytes: 0)
      for segment in read.segments.reversed() {
        guard let row = read.manifest.segments.first(where: { $0.id == segment.id }),
          row.state == .sealed
        else { continue }
        guard row.rawBytes < Limits.smallSegmentBytes,
          CompactionPlan.fits(row.firstSequence, group.segments.last?.lastSequence)
        else { break }
        group.segments.insert(segment, at: 0)
        group.rawBytes += row.rawBytes
      }
      return group
    }
    guard group.segments.count >= Limits.smallSegments else { return }
    let floor = CompactionFloor(sequence: 0)
    let unit = CompactionUnit(self, group, floor: floor, options: CompactionOptions())
    var fates = CompactionFates(self, floor, nil, isRecordSuperseded: nil)
    if let swap = try unit.run(&fates).swap { try replace(swap) }
  }

  /// Claims the one place for who rewrites the log.
  /// - Returns: false when somebody else has it.
  private func beginCompacting(writes: Bool = true) throws(TidemarkError) -> Bool {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      if writes { try checkWritable(state) }
      guard !state.isCompacting else { return false }
      state.isCompacting = true
      return true
    }
  }

  private func endCompacting() {
    writer.withLock { $0.isCompacting = false }
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

  /// What the retention, or the options, let go.
  func compactionFloor(
    _ options: CompactionOptions, _ pins: [NamedPin]
  ) throws(TidemarkError) -> CompactionFloor {
    var (retention, needed) = reading.withLock { read in
      // A compaction flushes first; its forecast takes that as done.
      (
        read.manifest.retention,
        options.dryRun ? min(read.pins.keys.min() ?? .max, read.visible) : neededFloor(read)
      )
    }
    // One that cannot be read keeps everything.
    if pins.contains(where: { $0.pin == nil }) { needed = 0 }
    let deletes = reading.withLock { $0.deletesKeptAbove }
    if options.dropHistory {
      return CompactionFloor(sequence: needed, needed: needed, deletes: deletes)
    }
    var floor = CompactionFloor(
      sequence: 0, versionsPerKey: retention.versionsPerKey, needed: needed, deletes: deletes)
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

  /// Puts rewritten segments in the place of their inputs, in one step of MANIFEST.
  func replace(_ swap: CompactionSwap) throws(TidemarkError) {
    do throws(TidemarkError) { try install(swap) } catch {
      // If MANIFEST stopped midway it may list them by now.
      if writer.withLock({ $0.poison == nil }) {
        for row in swap.rows {
          try? environment.fileSystem.remove(
            path + "/" + StoreLayout.logDirectory + "/" + row.fileName)
        }
      }
      throw error
    }
  }

  private func install(_ swap: CompactionSwap) throws(TidemarkError) {
    var goneImages: [Manifest.Image] = []
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.inputsRemovedFirst) {
        for old in swap.inputs { try? environment.fileSystem.remove(path + "/" + old.fileName) }
      }
    #endif
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      var manifest = state.manifest
      let inputs = Set(swap.inputs.map(\.id))
      guard let position = manifest.segments.firstIndex(where: { inputs.contains($0.id) }),
        manifest.segments[position...].prefix(inputs.count).allSatisfy({ inputs.contains($0.id) }),
        manifest.segments.count >= position + inputs.count
      else {
        throw TidemarkError(.inputOutput, "the log was rewritten by somebody else; try again")
      }
      manifest.segments.replaceSubrange(position..<(position + inputs.count), with: swap.rows)
      manifest.droppedThrough = max(manifest.droppedThrough, swap.droppedThrough)
      #if TIDEMARK_PLANTED
        if PlantedBug.isOn(.outdatedImageKept) {
          manifest.droppedThrough = state.manifest.droppedThrough
        }
      #endif
      let newDropped = manifest.droppedThrough
      // Runs serve together: the newest says whether they know a delete that is gone.
      if manifest.images.last?.sequence ?? 0 < newDropped {
        goneImages = manifest.images
        manifest.images = []
      }
      try updateManifest(manifest, &state)
      let outputs = swap.rows.map { row in
        Segment(
          row, storeID: manifest.storeID, storePath: path,
          fileSystem: environment.fileSystem, contexts: contexts, keys: keys)
      }
      reading.withLock { read in
        let place = read.segments.firstIndex { inputs.contains($0.id) } ?? 0
        read.segments.removeAll { inputs.contains($0.id) }
        read.segments.insert(contentsOf: outputs, at: place)
        for id in inputs { read.usage.supersededBytes[id] = nil }
        read.leftAlone.subtract(inputs)
        for (row, superseded) in zip(swap.rows, swap.superseded) {
          read.usage.supersededBytes[row.id] = superseded
        }
      }
    }
    // A file that cannot be removed now is a leftover, which the next opening clears away.
    for segment in swap.inputs { try? environment.fileSystem.remove(path + "/" + segment.fileName) }
    removeFiles(of: goneImages)
  }
}
