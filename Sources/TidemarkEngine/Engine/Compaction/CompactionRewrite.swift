/// The counts that a compaction made of the entries of a group.
struct CompactionTally: Sendable {
  var droppedEntries = 0
  var droppedTombstones = 0
  /// Raw bytes of both.
  var droppedBytes = 0
  /// The highest tombstone that was dropped.
  var droppedThrough: UInt64 = 0
  /// Bytes of what stays though something newer has replaced it.
  var superseded = 0
  /// Bytes of the cached values among them that only wait: for a sync, or for a view to close.
  var cached = 0
  /// Whether an entry that stays says now when its key was created, which those said that go.
  var tellsCreation = false

  /// Whether nothing goes, and nothing has to be said in the place of what went elsewhere.
  var keepsAll: Bool { droppedEntries + droppedTombstones == 0 && !tellsCreation }

  /// - Parameter goesLater: whether it is cached data that goes once something newer is sure.
  mutating func count(
    _ fate: CompactionFates.Fate, of entry: EntryHead, goesLater: Bool = false
  ) {
    let bytes = entry.keyLength + entry.valueLength + Limits.entryOverheadBytes
    switch fate {
    case .dropped:
      droppedEntries += 1
      droppedBytes += bytes
    case .droppedTombstone:
      droppedTombstones += 1
      droppedBytes += bytes
      droppedThrough = max(droppedThrough, entry.sequence)
    case .kept(let created, let isSuperseded):
      if created != entry.created, entry.kind != .record { tellsCreation = true }
      if isSuperseded { superseded += bytes }
      if isSuperseded, goesLater, entry.kind == .put { cached += bytes }
    }
  }
}

/// Merges the segments of a group into one.
///
/// Compacted segments are sorted and are read from end to end. Of appended ones a window at a time
/// is gathered in memory and put in order; all windows but the last one become files (`MergeRun`).
/// Then all of that is merged by key and sequence. So all versions of a key come together, and
/// memory holds two windows at most, whatever the size of the group.
struct CompactionRewrite {
  private let compactor: Compactor
  private let group: CompactionPlan.Group
  private let pinned: PinnedVersions?
  private var options: CompactionOptions
  private let row: Manifest.Segment
  private let labels = LabelSets()
  private var samples: ValueSamples
  private var runs: [MergeRun] = []
  private var runCount = 0
  private var tally = CompactionTally()
  private var latestCommitTime: UInt64 = 0
  /// Made for the first batch: where nothing stays there is no file.
  private let sink = Lock<CompactionSink?>(nil)
  /// Asked without the lock, which the sink's thread holds for as long as it writes.
  private var hasSink = false
  private let allowsSmallBlocks: Bool
  /// Whether values were written in blocks that are small, so that single reads are cheap.
  private(set) var hasSmallBlocks = false
  /// Batches on their way to the sink, which takes one after the other.
  private var writing: [(done: Deferred<Void>, bytes: Int)] = []
  /// So many batches of common length may wait for the sink.
  private static let batchesAhead = 2

  init(
    _ compactor: Compactor, _ group: CompactionPlan.Group, pinned: PinnedVersions?,
    options: CompactionOptions, allowsSmallBlocks: Bool = true
  ) throws(TidemarkError) {
    self.allowsSmallBlocks = allowsSmallBlocks
    self.compactor = compactor
    self.group = group
    self.pinned = pinned
    self.options = options
    samples = ValueSamples(rawBytes: group.rawBytes)
    var row = Manifest.Segment(
      id: compactor.writer.newSegmentID(), state: .active, kind: .compacted,
      salt: UInt32(truncatingIfNeeded: compactor.environment.random.next()),
      firstSequence: group.range.lowerBound)
    row.keyID = try compactor.keys.current()
    self.row = row
  }

  /// - Parameter fates: has seen the groups before.
  /// - Returns: what was counted, and the new segment, complete and synced but for its name; nil
  ///   where nothing stays.
  mutating func run(
    _ fates: inout CompactionFates
  ) throws(TidemarkError) -> (CompactionTally, Manifest.Segment?) {
    do throws(TidemarkError) {
      let inputs = try gather()
      try merge(inputs, &fates)
      let row = try finish()
      try options.checkStop()
      removeRuns()
      return (tally, row)
    } catch {
      discard()
      throw error
    }
  }

  /// Removes what was written.
  mutating func discard() {
    for batch in writing { _ = try? batch.done.value() }
    writing = []
    removeRuns()
    // Outside of the lock: what throws within is not always told from what the lock hands on.
    var given = sink.withLock { sink in
      let given = sink
      sink = nil
      return given
    }
    given?.writer.discard()
  }

  private mutating func removeRuns() {
    for run in runs { run.remove(compactor.fileSystem) }
    runs = []
  }

  /// By itself a store compacts on one thread, so that its program has the other cores.
  private var usesThread: Bool {
    !compactor.configuration.doesBackgroundWorkInline && options.automatic == nil
  }

  // MARK: Sorting

  /// Brings everything into sorted inputs.
  private mutating func gather() throws(TidemarkError) -> [EntryInput] {
    let options = options
    let stop = { () throws(TidemarkError) in try options.checkStop() }
    var inputs: [EntryInput] = []
    var window = newWindow()
    var spilling: Deferred<MergeRun>?
    do throws(TidemarkError) {
      for segment in group.segments {
        if segment.kind == .compacted {
          let rawBytes = group.rows.first { $0.id == segment.id }?.rawBytes ?? 0
          try samples.look(into: segment, rawBytes: rawBytes)
          for isHistory in [true, false] {
            inputs.append(
              try SegmentInput(segment, ofHistory: isHistory, labels: labels, shouldStop: stop))
          }
        } else {
          try gather(segment, &window, &spilling)
        }
      }
      if let run = try spilling?.value() { runs.append(run) }
    } catch {
      // A failure must not leave a thread behind that still writes, or what that wrote.
      if let run = try? spilling?.value() { runs.append(run) }
      throw error
    }
    for run in runs {
      do throws(LogReadError) { inputs.append(LooseInput(try run.reader())) } catch {
        throw TidemarkError(error)
      }
    }
    if PlantedBug.isOn(.windowForgotten), !runs.isEmpty { return inputs }
    if !window.isEmpty { inputs.append(LooseInput(window)) }
    return inputs
  }

  /// Takes the entries of an appended segment into windows.
  private mutating func gather(
    _ segment: Segment, _ window: inout SortWindow, _ spilling: inout Deferred<MergeRun>?
  ) throws(TidemarkError) {
    var frames = try FrameReader(segment)
    var gathered = window.memoryBytes
    for (number, record) in try segment.frames().enumerated() {
      try options.checkStop(at: number)
      if window.memoryBytes < gathered { gathered = 0 }
      if window.memoryBytes - gathered >= SurvivorBatch.fullBytes {
        try checkPace(after: window.memoryBytes - gathered)
        gathered = window.memoryBytes
      }
      let front = try frames.front(record)
      var sets = LabelSets.OfFrame()
      for head in front.entries {
        if window.memoryBytes >= compactor.configuration.compactionWindowBytes {
          try spill(&window, &spilling)
        }
        let entry = LooseEntry(head: head, labelSet: sets.number(of: head, in: front, labels))
        window.add(
          entry, key: front.key(of: head), attributes: front.attributeBytes(of: head))
        guard head.hasValue else { continue }
        let start = window.bytes.count
        try frames.appendValue(of: head, in: front, to: &window.bytes)
        samples.note(window.bytes.rawSpan.extracting(droppingFirst: start))
      }
    }
  }

  /// A window with room for all that it will hold: to grow would copy what it holds again and
  /// again, into memory that the system has to find first.
  private func newWindow() -> SortWindow {
    let appended = group.rows.filter { $0.kind == .appended }
    let bytes = appended.reduce(0) { $0 + $1.rawBytes + $1.entryCount * LooseEntry.headBytes }
    return SortWindow(roomFor: min(bytes, compactor.configuration.compactionWindowBytes))
  }

  /// Writes a window into a run, while the next one is gathered.
  private mutating func spill(
    _ window: inout SortWindow, _ spilling: inout Deferred<MergeRun>?
  ) throws(TidemarkError) {
    let last = spilling
    spilling = nil
    if let run = try last?.value() { runs.append(run) }
    let full = window
    window = newWindow()
    let compactor = compactor
    let path =
      compactor.path + "/" + StoreLayout.logDirectory + "/"
      + StoreLayout.runName(id: row.id, number: runCount)
    runCount += 1
    let sealer = try compactor.newFileKey(row.keyID)?.sealer(fileID: row.id)
    spilling = Deferred(name: "tidemark-sort", usesThread: usesThread) {
      () throws(TidemarkError) in
      do throws(LogReadError) {
        return try MergeRun(
          creating: path, full, fileSystem: compactor.fileSystem,
          contexts: compactor.contexts, sealer: sealer)
      } catch {
        try? compactor.fileSystem.remove(path)
        throw TidemarkError(error)
      }
    }
  }

  /// Waits, where the compaction is to be slow.
  private mutating func checkPace(after bytes: Int) throws(TidemarkError) {
    try options.checkStop()
    options.automatic?.pace?.wait(after: bytes)
    try options.checkStop()
  }

  // MARK: Merging

  private mutating func merge(
    _ inputs: [EntryInput], _ fates: inout CompactionFates
  ) throws(TidemarkError) {
    let range = group.range
    var merge = try KeyMerge(inputs)
    var batch = SurvivorBatch()
    while let input = merge.first {
      var entry = input.entry
      guard range.contains(entry.head.sequence) else {
        throw input.damage("an entry outside the range of its segment")
      }
      latestCommitTime = max(latestCommitTime, entry.head.commitTime)
      let fate = try fates.fate(
        of: entry.head, key: input.key.rawSpan, isCached: input.isCached
      ) { () throws(TidemarkError) in
        RecordType(rawValue: try input.attributes().recordType)
      }
      tally.count(fate, of: entry.head, goesLater: input.isCached && fates.olderVersionsGo)
      if case .kept(let created, let isSuperseded) = fate {
        entry.head.created = created
        entry.isHistory = isSuperseded && !fates.isTouched
        if let link = pinned?.links[entry.head.sequence] { entry.head.previous = link }
        if let link = fates.cached.link(of: entry.head.previous) { entry.head.previous = link }
        try batch.add(entry, of: input)
        if batch.isFull { try handOver(&batch) }
      }
      try merge.advance()
    }
    batch.release()
    if !batch.bytes.isEmpty { try handOver(&batch) }
    for batch in writing { try batch.done.value() }
    writing = []
  }

  /// Lets another thread write a batch while the next one is merged.
  private mutating func handOver(_ batch: inout SurvivorBatch) throws(TidemarkError) {
    // Ahead of the sink, which has two threads: else all would wait for each other in turn.
    let most = Self.batchesAhead * SurvivorBatch.fullBytes
    while writing.count > Self.batchesAhead
      || !writing.isEmpty && writing.reduce(0, { $0 + $1.bytes }) > most + most / 2
    { try writing.removeFirst().done.value() }
    try checkPace(after: batch.bytes.count)
    if !hasSink {
      try makeSink()
      hasSink = true
    }
    let bytes = batch.takeBytes()
    let (reader, sink) = (compactor.reader, sink)
    // One long sync at the end would keep those waiting who write durably.
    let syncsOften = options.automatic?.pace != nil
    let before = writing.last?.done
    let batch = Deferred(name: "tidemark-compact", usesThread: usesThread) {
      () throws(TidemarkError) in
      try before?.value()
      // Dense blocks take long; who is put to sleep has no time for them.
      try reader.checkReadable()
      do throws(LogReadError) {
        try sink.withLock { (sink: inout CompactionSink?) throws(LogReadError) in
          try sink?.add(bytes)
          if syncsOften { try sink?.sync() }
        }
      } catch { throw TidemarkError(error) }
    }
    writing.append((batch, bytes.count))
  }

  private mutating func makeSink() throws(TidemarkError) {
    let fileKey = try compactor.newFileKey(row.keyID)
    let layout = CompactedLayout(
      values: samples.values, places: samples.places, total: samples.total
    ).layout(
      dense: options.dense,
      dictionaryFrom: allowsSmallBlocks || options.dense
        ? compactor.configuration.dictionaryFromBytes : .max,
      contexts: compactor.contexts)
    hasSmallBlocks = layout.blockTarget < Limits.blockBytes
    do throws(LogReadError) {
      let writer = try CompactedSegmentWriter(
        creating: row, storeID: compactor.reader.storeID, storePath: compactor.path,
        fileSystem: compactor.fileSystem, contexts: compactor.contexts, layout: layout,
        fileKey: fileKey, usesThread: usesThread)
      sink.withLock { $0 = CompactionSink(writer, labels: labels) }
    } catch { throw TidemarkError(error) }
  }

  private func finish() throws(TidemarkError) -> Manifest.Segment? {
    // Views by own time look at the latest time of a segment: dropped entries count on.
    let latestTime = group.rows.compactMap(\.latestTime).max()
    let (last, latestCommitTime) = (group.range.upperBound, latestCommitTime)
    do throws(LogReadError) {
      return try sink.withLock { (sink: inout CompactionSink?) throws(LogReadError) in
        try sink?.writer.finish(
          lastSequence: last, latestTime: latestTime, latestCommitTime: latestCommitTime)
      }
    } catch { throw TidemarkError(error) }
  }
}
