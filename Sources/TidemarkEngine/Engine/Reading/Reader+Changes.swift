/// The changes that other owners make to what readers see. Each takes the readers' lock, `reading`,
/// briefly. The writer's lock, where it is held as well, was taken before.
extension Reader {
  // MARK: The writer, which holds its lock

  /// Makes a batch visible, and leaves it in frames to be written.
  func stage(_ batch: OperationBatch, _ staging: inout Staging) throws(IndexOrStoreError) {
    try reading.withLock { (read: inout ReadState) throws(IndexOrStoreError) in
      try staging.run(batch, &read, hotCache: hotCache, caches: caches)
    }
  }

  /// Makes a put or delete without attributes visible.
  func stage(
    _ entry: SingleEntry, _ key: RawSpan, _ value: RawSpan?, into appender: SegmentAppender?
  ) -> ReadState.SingleOutcome {
    reading.withLock { $0.stage(entry, key, value, into: appender, hotCache) }
  }

  /// The frames whose entries are visible and not yet written to the file.
  var stagedFrames: [FrameBuilder] { reading.withLock { $0.staged } }

  /// Forgets the staged frames: they are in the file now, where readers find them by the segment.
  func noteWritten(keepsFrameMemory: Bool) {
    // Freed after the lock, so that readers do not wait for the memory of a large batch.
    var written: [FrameBuilder] = []
    reading.withLock { read in
      var next = FrameBuilder()
      if keepsFrameMemory, var last = read.staged.popLast() { next.takeMemory(of: &last) }
      read.nextFrame = next
      swap(&read.staged, &written)
      read.stagedTouches.removeAll(keepingCapacity: true)
    }
  }

  /// The frame of the single entry is written.
  func noteSingleWritten() { reading.withLock { $0.singleInFlight = nil } }

  func noteDurable(_ sequence: UInt64) { reading.withLock { $0.durable = sequence } }

  /// Publishes MANIFEST as it was written.
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

  /// Rebuilds the index from the log, after a run of it turned out to be damaged. The caller holds
  /// the writer's lock, and everything visible is in the log; readers wait.
  /// - Throws: `error` itself where it is no damage.
  func rebuildIndex(after error: IndexError) throws(TidemarkError) {
    guard error.voidsRun else { throw TidemarkError(error) }
    try rebuildIndex(ignoresRuns: true)
  }

  /// Rebuilds the index; the caller does as for ``rebuildIndex(after:)``.
  func rebuildIndex(ignoresRuns: Bool) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      let builder = IndexBuilder(
        path: path, environment: environment, keys: keys, manifest: read.manifest,
        segments: read.segments, lastSequence: read.visible)
      let built = try builder.build(
        active: nil, salvage: configuration.recovery == .salvage, ignoresRuns: ignoresRuns)
      read.index = built.index
      read.nextRun.indexWasRebuilt()
      read.usage = built.usage
      // What was uncertain before stays so until the store is reopened.
      read.uncertainBelow = max(read.uncertainBelow, built.uncertainBelow)
    }
    hotCache.removeAll()
  }

  /// Refuses reads by the index until the store is reopened: it may have entries of a failed batch.
  func distrustIndex() { reading.withLock { $0.uncertainBelow = .max } }

  /// Begins a checkpoint of the index: freezes the memtable, of which a sorted run is to be written
  /// without locks. The writer's lock is held, so that `sequence` is the last entry.
  /// - Parameter count: decides how many of the newest runs are merged into it.
  func beginRun(
    _ id: UInt64, through sequence: UInt64, _ manifest: Manifest, _ fileKey: NewFileKey?,
    merging count: (Index) -> Int
  ) -> RunJob {
    reading.withLock { read in
      // A memtable that is still frozen is of a run that could not be written: this run is of it.
      if read.nextRun.frozen == nil { read.index.freeze() }
      var info = read.nextRun.begin(
        id, historyFrom: manifest.historyFrom,
        else: RunInfo(
          storeID: manifest.storeID, runID: id, sequence: sequence,
          userInfo: read.usage.encoded(), dropTombstonesThrough: 0, keepFormerMembers: true))
      info.fileKey = fileKey
      // Above the floor a view may need the cached value before an eviction.
      info.dropEvictionsThrough = LogSnapshot(read).neededFloor
      let taken = count(read.index)
      return RunJob(
        info: info, input: read.index.mergeInput(taking: taken), taken: taken,
        generation: read.nextRun.generation)
    }
  }

  /// The runs that stay beneath a new one. The caller holds the writer's lock from here to
  /// `publish`, so that the index is not rebuilt in between.
  /// - Throws: `inputOutput` where the index was rebuilt since the job began.
  func runsBeneath(_ job: RunJob) throws(TidemarkError) -> Set<UInt64> {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      guard read.nextRun.generation == job.generation else {
        throw TidemarkError(.inputOutput, "the index was made anew meanwhile; try again")
      }
      // `runs` are newest first.
      return Set(read.index.runs.runs.dropFirst(job.taken).map(\.header.runID))
    }
  }

  /// Puts a run, which MANIFEST lists by now, in the place of the frozen memtable and merged runs.
  /// - Returns: what it replaces, to be freed after all locks: for many keys that takes a while.
  func publish(_ run: SortedRun, _ job: RunJob) throws(TidemarkError) -> Discarded {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      do throws(IndexError) {
        let discarded = try read.index.publish(run, taking: job.taken)
        read.nextRun.frozen = nil
        return discarded
      } catch { throw TidemarkError(error) }
    }
  }

  /// Has the next whole run leave tombstones out before compaction drops them from the log.
  func forgetDeletes(through limit: UInt64, but kept: Set<UInt64>) {
    reading.withLock { $0.nextRun.forgetDeletes(through: limit, but: kept) }
  }

  /// Whether the runs of the index have no tombstones up to a sequence any more.
  func hasForgottenDeletes(through limit: UInt64) -> Bool {
    reading.withLock { read in
      let runs = read.index.runs
      return runs.sequence >= limit && runs.runs.allSatisfy { $0.header.deletedKeys == 0 }
    }
  }

  /// Whether entries are visible that no run covers.
  var isAheadOfRuns: Bool { reading.withLock { $0.visible > $0.index.runs.sequence } }

  /// Whether a checkpoint that had little time has left runs unmerged.
  func hasUnevenRuns(least: Int) -> Bool {
    reading.withLock { $0.index.runs.isUneven(least: least) }
  }

  // MARK: Compaction

  /// Sets the count of superseded bytes of a segment that had none, if it is still in the log.
  func note(_ usage: SpaceUsage.Row, of segment: Segment) {
    reading.withLock { read in
      guard read.segments.contains(where: { $0 === segment }) else { return }
      read.usage.rows[segment.id] = usage
    }
  }

  /// Remembers that rewriting these segments would not make them smaller.
  func leaveAlone(_ segments: [Segment]) {
    let ids = segments.map(\.id)
    reading.withLock { $0.leftAlone.formUnion(ids) }
  }

  /// The entries of a sealed segment that name attachments; nil if nobody has looked yet.
  func attachments(in segment: Segment) -> [AttachmentUse]? {
    reading.withLock { $0.attachments[segment.id] }
  }

  func noteAttachments(_ uses: [AttachmentUse], in segment: Segment) {
    reading.withLock { read in
      guard read.segments.contains(where: { $0 === segment }) else { return }
      read.attachments[segment.id] = uses
    }
  }

  /// Raises the oldest state that a view can show, in one hold of the lock: a view is either open
  /// by now, and lowers the floor, or is refused from here on. The caller holds the writer's lock.
  /// - Parameter time: the latest of the entries' own times up to `floor.limit`.
  /// - Returns: MANIFEST to be written; nil if the limit was lowered, so that `time` is another.
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

  /// Puts a rewritten segment in the place of others; MANIFEST lists it by now. Readers that hold
  /// an old segment fail where its file is gone, and look again: see ``isCurrent(_:)``.
  func replace(_ swap: CompactionSwap, by output: Segment?) {
    reading.withLock { read in
      let inputs = Set(swap.inputs.map(\.id))
      let place = read.segments.firstIndex { inputs.contains($0.id) } ?? 0
      read.segments.removeAll { inputs.contains($0.id) }
      if let output { read.segments.insert(output, at: place) }
      // Cached bytes that were superseded during the rewrite, which may have counted them or not:
      // counted twice they cause one more compaction, not counted they would never be dropped.
      let late = max(0, read.usage.cached(in: swap.inputs) - swap.cachedBefore)
      for id in inputs { (read.usage.rows[id], read.attachments[id]) = (nil, nil) }
      read.leftAlone.subtract(inputs)
      read.rewriteCount += 1
      if let output {
        read.usage.rows[output.id] = SpaceUsage.Row(
          superseded: swap.superseded.superseded + late, cached: swap.superseded.cached + late)
      }
    }
    caches.removeSequences()
  }

  /// Has compactions keep tombstones above a sequence, up to which a follower has read the log.
  /// - Parameter sequence: nil keeps none. Tombstones that have been dropped stay so.
  package func keepDeletes(above sequence: UInt64?) {
    reading.withLock { $0.deletesKeptAbove = sequence ?? .max }
  }

  // MARK: Opening and closing

  /// Refuses reads from now on. Writes are refused already, so what is still staged has failed.
  func letGo(isSuspended: Bool) {
    reading.withLock { read in
      read.isClosed = !isSuspended
      read.isSuspended = isSuspended
      isOpen.isSet = false
      read.segments = []
      read.dropStaged()
    }
  }

  /// Frees index and caches, after ``letGo(isSuspended:)``.
  func removeAll() {
    let discarded = reading.withLock { $0.index.removeAll() }
    removeCached()
    _ = discarded
  }

  /// Frees the memory of the hot cache, of decoded objects and of decoded blocks of the log.
  package func removeCached() {
    hotCache.removeAll()
    objects.removeAll()
    caches.removeAll()
  }

  /// Replaces the state by what a resumption, or a reader beside another process, has opened again.
  /// - Parameter resumes: whether the store is suspended; else it must be open.
  func takeUp(_ opened: Opened, resumes: Bool) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      if resumes { read.isSuspended = false }
      try read.checkReadable()
      read.takeUp(opened)
      reopenCount.raise()
      isOpen.isSet = true
      // Under the lock, so that no reader of the new state hits a value of the old one.
      hotCache.removeAll()
      objects.invalidate()
    }
    objects.removeAll()
    caches.removeAll()
  }
}

/// A run of the index that is being written.
struct RunJob {
  var info: RunInfo
  var input: MergeInput
  /// How many of the newest runs are merged into it.
  var taken: Int
  /// ``NextRun/generation`` when the job began.
  var generation: Int
}
