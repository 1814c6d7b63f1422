/// The changes that other owners make to what readers see.
extension Reader {
  // MARK: The writer

  /// Makes a batch visible, and leaves it in frames to be written.
  func stage(
    _ batch: OperationBatch, _ staging: inout Staging
  ) throws(IndexOrStoreError) {
    try reading.withLock { (read: inout ReadState) throws(IndexOrStoreError) in
      try staging.run(batch, &read, hotCache: hotCache, caches: caches)
    }
  }

  /// Makes a put or delete of bytes alone visible.
  /// - Parameter appender: gets it as a frame of its own; nil leaves it in memory.
  func stage(
    _ entry: SingleEntry, _ key: RawSpan, _ value: RawSpan?, into appender: SegmentAppender?
  ) -> ReadState.SingleOutcome {
    reading.withLock { $0.stage(entry, key, value, into: appender, hotCache) }
  }

  /// The frames whose entries are visible and not yet with the kernel.
  var stagedFrames: [FrameBuilder] { reading.withLock { $0.staged } }

  /// The frames that were staged are with the kernel.
  /// - Parameter keepsFrameMemory: whether single puts go on, which use a frame's memory again.
  func noteWritten(keepsFrameMemory: Bool) {
    // Readers do not wait until the memory of a large batch is let go.
    var written: [FrameBuilder] = []
    reading.withLock { read in
      var next = FrameBuilder()
      if keepsFrameMemory, var last = read.staged.popLast() { next.takeMemory(of: &last) }
      read.nextFrame = next
      swap(&read.staged, &written)
      read.stagedTouches.removeAll(keepingCapacity: true)
    }
  }

  /// The entry that was staged by itself is with the kernel.
  func noteSingleWritten() { reading.withLock { $0.singleInFlight = nil } }

  func noteDurable(_ sequence: UInt64) { reading.withLock { $0.durable = sequence } }

  func show(_ manifest: Manifest) { reading.withLock { $0.manifest = manifest } }

  func add(_ segment: Segment) {
    reading.withLock { read in
      read.segments.append(segment)
      read.usage.rows[segment.id] = SpaceUsage.Row()
    }
  }

  func remove(_ segment: Segment) {
    reading.withLock { read in
      read.segments.removeAll { $0 === segment }
      read.usage.rows[segment.id] = nil
    }
  }

  // MARK: The index

  /// Makes the index anew from the log, after a run of it turned out to be damaged.
  ///
  /// Nobody writes meanwhile, and all that is visible is in the log.
  func rebuildIndex(after error: IndexError) throws(TidemarkError) {
    guard error.voidsImage else { throw TidemarkError(error) }
    try rebuildIndex(ignoresRuns: true)
  }

  /// Makes the index anew from the log; the same holds for the caller.
  /// - Parameter ignoresRuns: whether no run is to be trusted.
  func rebuildIndex(ignoresRuns: Bool) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      let builder = IndexBuilder(
        path: path, environment: environment, keys: keys, manifest: read.manifest,
        segments: read.segments, lastSequence: read.visible)
      let built = try builder.build(
        active: nil, salvage: configuration.recovery == .salvage, ignoresRuns: ignoresRuns)
      read.index = built.index
      read.nextRun.startOver()
      read.usage = built.usage
      read.staleBelow = max(read.staleBelow, built.staleBelow)
    }
    hotCache.removeAll()
  }

  /// Nothing that the index says is certain until the store is reopened.
  func distrustIndex() { reading.withLock { $0.staleBelow = .max } }

  /// Freezes what is to go into the next run of the index.
  func beginRun(_ plan: RunPlan) -> RunJob {
    reading.withLock { read in
      if read.nextRun.frozen == nil { read.index.freeze() }
      var info = read.nextRun.begin(
        plan.id, historyFrom: plan.manifest.historyFrom,
        else: ImageInfo(
          storeID: plan.manifest.storeID, imageID: plan.id, sequence: plan.sequence,
          userInfo: read.usage.encoded(), dropTombstonesThrough: 0, keepFormerMembers: true))
      info.fileKey = plan.fileKey
      info.dropEvictionsThrough = LogSnapshot(read).neededFloor
      let taken = plan.countToMerge(read.index)
      return RunJob(
        info: info, input: read.index.mergeInput(taking: taken), taken: taken,
        generation: read.nextRun.generation)
    }
  }

  /// The runs beneath those that a job takes the place of.
  /// - Throws: `inputOutput` where the index was made anew since it began.
  func runsBeneath(_ job: RunJob) throws(TidemarkError) -> Set<UInt64> {
    let beneath = reading.withLock { read -> Set<UInt64>? in
      guard read.nextRun.generation == job.generation else { return nil }
      return Set(read.index.runs.runs.dropFirst(job.taken).map(\.header.imageID))
    }
    guard let beneath else {
      throw TidemarkError(.inputOutput, "the index was made anew meanwhile; try again")
    }
    return beneath
  }

  /// Takes a run into use.
  /// - Returns: what it replaces, to be let go of when all locks are released: for many keys that
  ///   takes a while.
  func publish(_ run: Image, _ job: RunJob) throws(TidemarkError) -> Discarded {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      do throws(IndexError) {
        let discarded = try read.index.publish(run, taking: job.taken)
        read.nextRun.end()
        return discarded
      } catch { throw TidemarkError(error) }
    }
  }

  /// Deletes up to a sequence are left out of the index from the next run on, but for those that
  /// stay: compactions let them go.
  func forgetDeletes(through limit: UInt64, but kept: Set<UInt64>) {
    reading.withLock { $0.nextRun.forgetDeletes(through: limit, but: kept) }
  }

  /// Whether the runs of the index know nothing any more of what was deleted up to a sequence.
  func hasForgottenDeletes(through limit: UInt64) -> Bool {
    reading.withLock { read in
      let runs = read.index.runs
      return runs.sequence >= limit && runs.runs.allSatisfy { $0.header.deletedKeys == 0 }
    }
  }

  /// Whether something came after the newest run.
  var isAheadOfRuns: Bool { reading.withLock { $0.visible > $0.index.runs.sequence } }

  /// Whether runs were left to be merged by who has the time.
  func hasUnevenRuns(least: Int) -> Bool {
    reading.withLock { $0.index.runs.isUneven(least: least) }
  }

  // MARK: Compaction

  /// Takes note of what is superseded in a segment, if it is still there.
  func note(_ usage: SpaceUsage.Row, of segment: Segment) {
    reading.withLock { read in
      guard read.segments.contains(where: { $0 === segment }) else { return }
      read.usage.rows[segment.id] = usage
    }
  }

  /// Remembers that segments have nothing to gain, until something of them can go.
  func leaveAlone(_ segments: [Segment]) {
    let ids = segments.map(\.id)
    reading.withLock { $0.notes.leaveAlone(ids) }
  }

  /// The entries of a sealed segment that name attachments, once they were found.
  func attachments(in segment: Segment) -> [AttachmentUse]? {
    reading.withLock { $0.notes.attachments[segment.id] }
  }

  func noteAttachments(_ uses: [AttachmentUse], in segment: Segment) {
    reading.withLock { read in
      guard read.segments.contains(where: { $0 === segment }) else { return }
      read.notes.noteAttachments(uses, in: segment.id)
    }
  }

  /// Raises the sequence from which history is kept, in one hold: a view is either seen here, or
  /// refused from here on.
  /// - Returns: nil where a view has come in between, which lowers the floor, so that the time is
  ///   another one; else MANIFEST as it is to be written.
  func raiseHistoryFrom(
    _ floor: inout CompactionFloor, time: Timestamp?, in manifest: Manifest
  ) -> Manifest? {
    reading.withLock { read in
      let limit = floor.limit
      let now = LogSnapshot(read)
      floor.needed = min(floor.needed, now.neededFloor)
      floor.sequence = min(floor.sequence, floor.needed)
      floor.deletes = min(floor.deletes, now.deletesKeptAbove)
      guard floor.limit == limit else { return nil }
      var manifest = manifest
      guard limit > manifest.historyFrom else { return manifest }
      manifest.historyFrom = limit
      manifest.historyTime = time
      read.manifest.historyFrom = limit
      read.manifest.historyTime = time
      return manifest
    }
  }

  /// Puts rewritten segments in the place of others.
  func replace(_ swap: CompactionSwap, by outputs: [Segment]) {
    reading.withLock { read in
      let inputs = Set(swap.inputs.map(\.id))
      let place = read.segments.firstIndex { inputs.contains($0.id) } ?? 0
      read.segments.removeAll { inputs.contains($0.id) }
      read.segments.insert(contentsOf: outputs, at: place)
      // Caches give entries up while these are rewritten, and it is not known of which of them
      // the rewrite knew: counted twice they are looked for again, forgotten they would stay.
      let late = max(0, read.usage.cached(in: swap.inputs) - swap.cachedBefore)
      for id in inputs { read.usage.rows[id] = nil }
      read.notes.remove(inputs)
      read.replacements += 1
      for (row, superseded) in zip(swap.rows, swap.superseded) {
        read.usage.rows[row.id] = SpaceUsage.Row(
          superseded: superseded.superseded + late, cached: superseded.cached + late)
      }
    }
    caches.removeSequences()
  }

  /// Keeps deletes above a sequence from compactions, without what they or others superseded: for
  /// those who read the log and have come so far.
  /// - Parameter sequence: nil keeps none. What has gone already stays gone.
  package func keepDeletes(above sequence: UInt64?) {
    reading.withLock { $0.deletesKeptAbove = sequence ?? .max }
  }

  // MARK: Opening and closing

  /// Refuses reads from now on.
  func letGo(isSuspended: Bool) {
    reading.withLock { read in
      read.isClosed = !isSuspended
      read.isSuspended = isSuspended
      isOpen.isSet = false
      read.segments = []
      read.leaveStaged()
    }
  }

  /// Drops index and caches from memory, once reads are refused.
  func removeAll() {
    let discarded = reading.withLock { $0.index.removeAll() }
    hotCache.removeAll()
    objects.removeAll()
    caches.removeAll()
    _ = discarded
  }

  /// Takes over what an opening has found.
  /// - Parameter resumes: whether the store was suspended; else it must be open.
  func takeUp(_ opened: Opened, resumes: Bool) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      if resumes { read.isSuspended = false }
      try read.checkReadable()
      read.takeUp(opened)
      opening.raise()
      isOpen.isSet = true
      // Sequences that a crash took back may have been given out again, and a reader of the new
      // state must not come upon what was read before.
      hotCache.removeAll()
      objects.invalidate()
    }
    objects.removeAll()
    caches.removeAll()
  }
}

/// The wishes for a run of the index.
struct RunPlan {
  var id: UInt64
  /// The last entry that it covers.
  var sequence: UInt64
  var manifest: Manifest
  var fileKey: NewFileKey?
  /// How many of the newest runs it takes the place of.
  var countToMerge: (Index) -> Int
}

/// A run of the index that is being written.
struct RunJob {
  var info: ImageInfo
  var input: MergeInput
  /// How many of the newest runs go.
  var taken: Int
  /// See ``NextRun``.
  var generation: Int
}
