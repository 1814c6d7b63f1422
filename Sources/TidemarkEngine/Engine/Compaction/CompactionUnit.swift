/// Rewrites one group of segments: decides what stays, sorts it by key and sequence, writes it.
struct CompactionUnit: Sendable {
  struct Outcome {
    var droppedEntries = 0
    var droppedTombstones = 0
    /// Nil where the segments are best left as they are.
    var swap: CompactionSwap?

    private var tellsCreation = false

    /// Whether nothing goes, and nothing has to be said in the place of what went elsewhere.
    var keepsAll: Bool { droppedEntries + droppedTombstones == 0 && !tellsCreation }

    fileprivate mutating func count(_ part: Survivors.Part) {
      droppedEntries += part.droppedEntries
      droppedTombstones += part.droppedTombstones
      if part.tellsCreation { tellsCreation = true }
    }
  }

  private let engine: Engine
  private let group: CompactionPlan.Group
  private let floor: CompactionFloor
  private let pinned: PinnedVersions?
  private let options: CompactionOptions

  init(
    _ engine: Engine, _ group: CompactionPlan.Group, floor: CompactionFloor,
    pinned: PinnedVersions? = nil, options: CompactionOptions
  ) {
    self.engine = engine
    self.group = group
    self.floor = floor
    self.pinned = pinned
    self.options = options
  }

  /// - Parameter fates: has seen the segments before.
  func run(_ fates: inout CompactionFates) throws(TidemarkError) -> Outcome {
    // A segment that is laid out already gains by a drop alone, and the heads tell of one.
    let isLaidOut = try isLaidOut()
    if isLaidOut, !floor.drops, options.isSuperseded == nil { return Outcome() }
    if options.dryRun || isLaidOut {
      let forecast = try forecast(&fates)
      if options.dryRun || forecast.keepsAll { return forecast }
    }
    var outcome = Outcome()
    var swap = CompactionSwap(inputs: group.segments, rows: [], superseded: [], droppedThrough: 0)
    let written = Lock<[String]>([])
    do throws(TidemarkError) {
      for part in try rewrite(&fates, written) {
        outcome.count(part)
        swap.droppedThrough = max(swap.droppedThrough, part.droppedThrough)
        guard let row = part.row else { continue }
        swap.rows.append(row)
        swap.superseded.append(part.superseded)
      }
      guard try isGain(swap, outcome) else {
        discard(written.withLock { $0 })
        if !options.dense { leaveAlone() }
        return outcome
      }
      try syncNames()
    } catch {
      discard(written.withLock { $0 })
      throw error
    }
    outcome.swap = swap
    return outcome
  }

  /// Writes what stays of each window, while the next one is gathered.
  /// - Parameter written: gets the paths of files.
  private func rewrite(
    _ fates: inout CompactionFates, _ written: Lock<[String]>
  ) throws(TidemarkError) -> [Survivors.Part] {
    var parts: [Survivors.Part] = []
    var writing: Deferred<Survivors.Part>?
    // A failure must not leave a thread behind that still writes.
    defer { _ = try? writing?.value() }
    for window in try windows() {
      let kept = try survivors(of: window, values: true, &fates)
      if let part = try writing?.value() { parts.append(part) }
      writing = nil
      try options.checkStop()
      writing = Deferred(
        name: "tidemark-compact", usesThread: !engine.configuration.doesBackgroundWorkInline
      ) { () throws(TidemarkError) in
        var part = kept.part
        if !kept.items.isEmpty { part.row = try write(kept, covering: window.range, written) }
        return part
      }
    }
    if let part = try writing?.value() { parts.append(part) }
    return parts
  }

  /// Counts the entries that would be dropped, without a look at values.
  private func forecast(_ fates: inout CompactionFates) throws(TidemarkError) -> Outcome {
    var outcome = Outcome()
    for window in try windows() {
      outcome.count(try survivors(of: window, values: false, &fates).part)
    }
    return outcome
  }

  private func discard(_ written: [String]) {
    for path in written { try? engine.environment.fileSystem.remove(path) }
  }

  /// Remembers that the segment has nothing to gain, until something of it can go.
  private func leaveAlone() {
    let id = group.segments[0].id
    engine.reading.withLock { _ = $0.leftAlone.insert(id) }
  }

  /// Whether the group is one segment as a compaction leaves it, and nothing else is asked for.
  private func isLaidOut() throws(TidemarkError) -> Bool {
    let segment = group.segments[0]
    let key = try engine.keys.current()
    guard group.segments.count == 1, !options.dense, segment.keyID == key else { return false }
    return segment.kind == .compacted
      || engine.reading.withLock { $0.leftAlone.contains(segment.id) }
  }

  /// Whether what was written is worth its place: one segment that loses nothing, keeps its key and
  /// gets no smaller stays as it is.
  private func isGain(
    _ swap: CompactionSwap, _ outcome: Outcome
  ) throws(TidemarkError) -> Bool {
    guard outcome.keepsAll, group.segments.count == 1,
      try group.segments[0].keyID == engine.keys.current()
    else { return true }
    return swap.rows.reduce(0) { $0 + $1.length } < group.segments[0].usedLength()
  }

  private func syncNames() throws(TidemarkError) {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.compactedNameNotSynced) { return }
    #endif
    do {
      try engine.environment.fileSystem.syncDirectory(
        engine.path + "/" + StoreLayout.logDirectory)
    } catch { throw TidemarkError(error, while: "compacting the log") }
  }

  // MARK: Windows

  /// A run of frames that is rewritten into one segment.
  private struct Window: Sendable {
    var frames: [(Segment, FrameRecord)] = []
    var range: ClosedRange<UInt64>
  }

  /// Cuts the group into windows whose raw bytes fit into memory. A compacted segment is not
  /// cut, since its frames are not in sequence order; it was made to fit.
  private func windows() throws(TidemarkError) -> [Window] {
    var windows: [Window] = []
    var open = Window(range: group.segments[0].range)
    var raw = 0
    var next = group.segments[0].firstSequence
    for segment in group.segments {
      guard segment.kind == .appended, group.rawBytes > Limits.compactionUnitBytes else {
        for record in try segment.frames() { open.frames.append((segment, record)) }
        continue
      }
      let measured = try segment.measuredFrames()
      let perEntry = headBytes(measured.map { (Int($0.record.entryCount), $0.valueBytes) })
      for (record, last, bytes) in measured {
        open.frames.append((segment, record))
        raw += bytes + Int(record.entryCount) * perEntry
        guard raw >= Limits.compactionUnitBytes, last >= next else { continue }
        open.range = next...last
        windows.append(open)
        next = last + 1
        open = Window(range: next...max(next, segment.lastSequence))
        raw = 0
      }
    }
    guard let last = group.segments.last else { return windows }
    if !open.frames.isEmpty {
      open.range = next...max(next, last.lastSequence)
      windows.append(open)
    }
    return windows
  }

  /// About how many raw bytes an entry takes besides its value, by what MANIFEST says of the group.
  /// - Parameter frames: of each frame, how many entries it has and the bytes of their values.
  private func headBytes(_ frames: [(entries: Int, valueBytes: Int)]) -> Int {
    let entries = frames.reduce(0) { $0 + $1.entries }
    let rest = group.rawBytes - frames.reduce(0) { $0 + $1.valueBytes }
    return min(max(64, rest / max(1, entries)), 2 * Limits.keyBytes)
  }

  // MARK: What stays

  /// - Parameter values: whether values are read, too.
  private func survivors(
    of window: Window, values: Bool, _ fates: inout CompactionFates
  ) throws(TidemarkError) -> Survivors {
    var kept = Survivors()
    var records = NewestRecords()
    fates.beginWindow()
    guard let first = window.frames.first?.0 else { return kept }
    var frames = try FrameReader(first)
    for (segment, record) in window.frames {
      try options.checkStop()
      if segment !== frames.segment { frames = try FrameReader(segment) }
      let front = try frames.front(record)
      for head in front.entries {
        kept.latestCommitTime = max(kept.latestCommitTime, head.commitTime)
        guard window.range.contains(head.sequence) else {
          throw segment.damage(
            .format(FormatError("an entry outside the range of its segment")),
            offset: front.offset, sequences: head.sequence...head.sequence)
        }
        switch try fates.fate(of: head, key: front.key(of: head), in: front) {
        case .dropped: kept.part.droppedEntries += 1
        case .droppedTombstone:
          kept.part.droppedTombstones += 1
          kept.part.droppedThrough = max(kept.part.droppedThrough, head.sequence)
        case .kept(let created, let isSuperseded):
          if head.kind == .record {
            try records.note(head, of: front, at: kept.items.count)
          }
          kept.add(
            head, of: front, created: created, isSuperseded: isSuperseded,
            isTouched: fates.isTouched)
          if head.hasValue, values {
            try frames.appendValue(of: head, in: front, to: &kept.values)
          }
        }
      }
    }
    kept.remove(records.superseded)
    // Views by own time look at the latest time of a segment: dropped entries count on.
    let rows = engine.reading.withLock { $0.manifest.segments }
    for segment in group.segments {
      guard let time = rows.first(where: { $0.id == segment.id })?.latestTime else { continue }
      kept.latestTime = max(kept.latestTime ?? time, time)
    }
    return kept
  }

  // MARK: Writing

  private func write(
    _ kept: Survivors, covering range: ClosedRange<UInt64>, _ written: Lock<[String]>
  ) throws(TidemarkError) -> Manifest.Segment {
    let order = kept.sorted()
    let row = try newRow(range)
    let fileKey = try engine.newFileKey(row.keyID)
    let path = engine.path + "/" + StoreLayout.logDirectory + "/" + row.fileName
    written.withLock { $0.append(path) }
    do throws(LogReadError) {
      var writer = try CompactedSegmentWriter(
        creating: row, storeID: engine.storeID, storePath: engine.path,
        fileSystem: engine.environment.fileSystem, contexts: engine.contexts,
        layout: layout(kept, order), fileKey: fileKey)
      do throws(LogReadError) {
        for number in order { try add(kept.items[Int(number)], of: kept, to: &writer) }
        return try writer.finish(
          lastSequence: range.upperBound, latestTime: kept.latestTime,
          latestCommitTime: kept.latestCommitTime)
      } catch {
        writer.discard()
        throw error
      }
    } catch {
      throw engine.describe(error)
    }
  }

  private func add(
    _ item: Survivors.Item, of kept: Survivors, to writer: inout CompactedSegmentWriter
  ) throws(LogReadError) {
    // Dense blocks take long; who is put to sleep has no time for them.
    do { try engine.files.checkGrowth(.write, engine.path) } catch { throw .system(error) }
    let head = item.head
    var entry = FrameBuilder.Entry(rewriting: head)
    entry.created = item.created
    if let link = pinned?.links[head.sequence] { entry.previous = link }
    let end = item.valueStart + head.valueLength
    try writer.add(
      entry, key: item.front.key(of: head),
      value: head.hasValue ? kept.values.rawSpan.extracting(item.valueStart..<end) : nil,
      attributes: item.front.attributeBytes(of: head), labels: item.front.labels(of: head),
      isSuperseded: item.isHistory)
  }

  private func newRow(_ range: ClosedRange<UInt64>) throws(TidemarkError) -> Manifest.Segment {
    let random = engine.environment.random
    let id = engine.writer.withLock { state in
      defer { state.manifest.nextSegmentID += 1 }
      return state.manifest.nextSegmentID
    }
    var row = Manifest.Segment(
      id: id, state: .active, kind: .compacted, salt: UInt32(truncatingIfNeeded: random.next()),
      firstSequence: range.lowerBound)
    row.keyID = try engine.keys.current()
    return row
  }

  private func layout(_ kept: Survivors, _ order: [UInt32]) -> SegmentLayout {
    let places = order.map { number in
      let item = kept.items[Int(number)]
      let length = item.head.hasValue ? item.head.valueLength : 0
      return item.valueStart..<(item.valueStart + length)
    }
    return CompactedLayout(values: kept.values, places: places).layout(
      dense: options.dense, dictionaryFrom: engine.configuration.dictionaryFromBytes,
      contexts: engine.contexts)
  }
}
