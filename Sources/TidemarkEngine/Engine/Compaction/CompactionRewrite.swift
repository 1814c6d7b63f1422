/// The counts that a compaction makes of the entries of a group: segments rewritten together.
struct CompactionTally: Sendable {
  var droppedEntries = 0
  var droppedTombstones = 0
  /// Raw bytes of both.
  var droppedBytes = 0
  /// The highest sequence of a tombstone that was dropped.
  var droppedThrough: UInt64 = 0
  /// Raw bytes of entries that stay though something newer has replaced them.
  var superseded = 0
  /// Those of cached values among them, which go after the next sync or when views are closed.
  var cached = 0
  /// Whether an entry that stays got the time of its key's creation: older ones go, or went before.
  var tellsCreation = false

  /// Whether no entry of the group is dropped or changed.
  var keepsAll: Bool { droppedEntries + droppedTombstones == 0 && !tellsCreation }

  /// - Parameter goesLater: whether it is cached data that goes once nothing needs it.
  mutating func count(
    _ fate: CompactionDecisions.Fate, of entry: EntryHead, goesLater: Bool = false
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

/// Merges the segments of a group into one new segment, as an external merge sort.
///
/// Compacted segments are sorted by key, and so are frames that were loaded in key order: both are
/// merged from their files, through a read buffer of 512 KiB each. All other entries are sorted in
/// memory by windows; all windows but the last one go to files, the *runs* (`MergeRun`). Then all
/// inputs are merged by key and sequence, and each entry is kept or dropped. Besides the buffers
/// memory holds two windows at most.
///
/// One thread calls it; others write runs and the output (`sink`). It owns its files: `run` removes
/// them where it throws, and the caller calls `discard` where it does not want the new segment.
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
  /// Writes the new segment. Made for the first batch: where no entry stays there is no file.
  private let sink = Lock<CompactionSink?>(nil)
  /// Whether there is a sink: its thread holds the lock for as long as it writes.
  private var hasSink = false
  private let allowsSmallBlocks: Bool
  /// Whether the layout has small value blocks, which make a get of one value cheap.
  private(set) var hasSmallBlocks = false
  /// Batches that are being written or wait for it, in order: each waits for the one before.
  private var writing: [(done: Deferred<Void>, bytes: Int)] = []
  /// Most batches of common length that wait for the sink.
  private static let batchesAhead = 2

  init(
    _ compactor: Compactor, _ group: CompactionPlan.Group, pinned: PinnedVersions?,
    options: CompactionOptions, allowsSmallBlocks: Bool = true
  ) throws(TidemarkError) {
    (self.compactor, self.group, self.pinned) = (compactor, group, pinned)
    (self.options, self.allowsSmallBlocks) = (options, allowsSmallBlocks)
    samples = ValueSamples(compactor.reader, rawBytes: group.rawBytes)
    var row = Manifest.Segment(
      id: compactor.writer.newSegmentID(), state: .active, kind: .compacted,
      salt: UInt32(truncatingIfNeeded: compactor.environment.random.next()),
      firstSequence: group.range.lowerBound)
    row.keyID = try compactor.keys.current()
    self.row = row
  }

  /// - Parameter decisions: was asked about the groups before this one.
  /// - Returns: the counts, and the new segment, complete and synced but for its name in the
  ///   directory; nil where no entry stays.
  mutating func run(
    _ decisions: inout CompactionDecisions
  ) throws(TidemarkError) -> (CompactionTally, Manifest.Segment?) {
    do throws(TidemarkError) {
      let inputs = try gather()
      try merge(inputs, &decisions)
      let row = try finish()
      try options.checkStop()
      removeRuns()
      return (tally, row)
    } catch {
      discard()
      throw error
    }
  }

  /// Removes all files that were written; also after `run` has returned, or again.
  mutating func discard() {
    // Waits: no thread may write to a file that is being removed. Errors count no more.
    for batch in writing { _ = try? batch.done.value() }
    writing = []
    removeRuns()
    // Outside of the lock: an error within is not always told from one that `withLock` rethrows.
    var taken = sink.withLock { sink in
      defer { sink = nil }
      return sink
    }
    taken?.writer.discard()
  }

  private mutating func removeRuns() {
    for run in runs { run.remove(compactor.fileSystem) }
    runs = []
  }

  /// An automatic compaction stays on its own thread, so that the program has the other cores.
  private var usesThread: Bool {
    !compactor.configuration.doesBackgroundWorkInline && options.automatic == nil
  }

  // MARK: Sorting

  /// Once so many inputs are merged from their segments, further appended segments are sorted in
  /// memory even if they are in key order: this bounds the read buffers, of 512 KiB each.
  private static let mostInputs = 64

  /// Makes sorted inputs of all segments.
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
          let newest = try segment.frames(ofHistory: false)
          try samples.look(into: segment, newest, rawBytes: rawBytes)
          for frames in [try segment.frames(ofHistory: true), newest] {
            inputs.append(try SegmentInput(segment, frames, labels: labels, shouldStop: stop))
          }
        } else {
          var chain = FrameChain(isOpen: inputs.count < Self.mostInputs)
          try gather(segment, &chain, &window, &spilling)
          guard !chain.frames.isEmpty else { continue }
          try samples.look(into: segment, chain.frames, rawBytes: chain.rawBytes)
          inputs.append(try SegmentInput(segment, chain.frames, labels: labels, shouldStop: stop))
        }
      }
      if let run = try spilling?.value() { runs.append(run) }
    } catch {
      // Waits for a thread that still writes a run, so that `discard` removes the file.
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

  /// Adds the entries of an appended segment to the window, and spills full windows; frames that
  /// are in order already go to the chain instead.
  private mutating func gather(
    _ segment: Segment, _ chain: inout FrameChain, _ window: inout SortWindow,
    _ spilling: inout Deferred<MergeRun>?
  ) throws(TidemarkError) {
    var frames = try FrameReader(segment)
    var gathered = window.memoryBytes
    var chained = 0
    for (number, record) in try segment.frames().enumerated() {
      try options.checkStop(at: number)
      // A new window was begun.
      if window.memoryBytes < gathered { gathered = 0 }
      if window.memoryBytes - gathered >= SurvivorBatch.fullBytes {
        try checkPace(after: window.memoryBytes - gathered)
        gathered = window.memoryBytes
      }
      let front = try frames.front(record)
      if chain.takes(record, front) {
        chained += front.header.storedLength
        if chained >= SurvivorBatch.fullBytes {
          try checkPace(after: chained)
          chained = 0
        }
        continue
      }
      var sets = LabelSets.OfFrame()
      for head in front.entries {
        if window.memoryBytes >= compactor.configuration.compactionWindowBytes {
          try spill(&window, &spilling)
        }
        let entry = MergeEntry(head: head, labelSet: sets.number(of: head, in: front, labels))
        window.add(entry, key: front.key(of: head), attributes: front.attributeBytes(of: head))
        guard head.hasValue else { continue }
        let start = window.bytes.count
        try frames.appendValue(of: head, in: front, to: &window.bytes)
        try samples.note(
          window.bytes.rawSpan.extracting(droppingFirst: start), of: head.sequence,
          key: front.key(of: head))
      }
    }
  }

  /// A window with memory for all that it will hold: growing would copy its bytes again and again.
  private func newWindow() -> SortWindow {
    let appended = group.rows.filter { $0.kind == .appended }
    let bytes = appended.reduce(0) { $0 + $1.rawBytes + $1.entryCount * MergeEntry.headBytes }
    return SortWindow(roomFor: min(bytes, compactor.configuration.compactionWindowBytes))
  }

  /// Writes a window to a run on another thread, while the next one is gathered. Waits for the run
  /// before, so that there are two windows in memory at most.
  private mutating func spill(
    _ window: inout SortWindow, _ spilling: inout Deferred<MergeRun>?
  ) throws(TidemarkError) {
    let last = spilling
    // Nil first: after an error of the last run, which has removed its file, nobody waits again.
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

  /// Waits, where the compaction has a pace.
  /// - Throws: `closed` where it is to stop.
  private mutating func checkPace(after bytes: Int) throws(TidemarkError) {
    try options.checkStop()
    options.automatic?.pace?.wait(after: bytes)
    try options.checkStop()
  }

  // MARK: Merging

  /// Merges the inputs, decides about each entry, and hands those that stay to the sink.
  private mutating func merge(
    _ inputs: [EntryInput], _ decisions: inout CompactionDecisions
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
      let fate = try decisions.fate(
        of: entry.head, key: input.key.rawSpan, isCached: input.isCached
      ) { () throws(TidemarkError) in
        RecordType(rawValue: try input.attributes().recordType)
      }
      tally.count(fate, of: entry.head, goesLater: input.isCached && decisions.olderVersionsGo)
      if case .kept(let created, let isSuperseded) = fate {
        entry.head.created = created
        entry.isHistory = isSuperseded && !decisions.isTouched
        if let link = pinned?.links[entry.head.sequence] { entry.head.previous = link }
        if let link = decisions.cached.link(of: entry.head.previous) { entry.head.previous = link }
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
    // Bounds memory. Some batches may wait, so that the sink's threads never wait for this one.
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
    // One long sync at the end would delay the syncs of commits.
    let writesBack = options.automatic?.pace != nil
    let before = writing.last?.done
    let batch = Deferred(name: "tidemark-compact", usesThread: usesThread) {
      () throws(TidemarkError) in
      // Batches are written in order, and none after one that failed.
      try before?.value()
      // Ends soon where the store is suspended: dense blocks take long.
      try reader.checkReadable()
      do throws(LogReadError) {
        try sink.withLock { (sink: inout CompactionSink?) throws(LogReadError) in
          try sink?.add(bytes)
          if writesBack { try sink?.writeBack() }
        }
      } catch { throw TidemarkError(error) }
    }
    writing.append((batch, bytes.count))
  }

  private mutating func makeSink() throws(TidemarkError) {
    let fileKey = try compactor.newFileKey(row.keyID)
    var layout = CompactedLayout(
      values: samples.values, places: samples.places, total: samples.total
    ).layout(
      dense: options.dense,
      dictionaryFrom: allowsSmallBlocks || options.dense
        ? compactor.configuration.dictionaryFromBytes : .max,
      contexts: compactor.contexts)
    if options.automatic != nil { layout.level = FrameCodecs.automaticLevel }
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
    // Views by own time go by the latest such time of a segment, and dropped entries count in it.
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
