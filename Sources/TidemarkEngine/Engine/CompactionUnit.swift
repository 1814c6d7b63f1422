/// Rewrites one group of segments: decides what stays, sorts it by key and sequence, writes it.
struct CompactionUnit {
  struct Outcome {
    var droppedEntries = 0
    var droppedTombstones = 0
    /// Nil where the segments are best left as they are.
    var swap: CompactionSwap?

    var dropped: Int { droppedEntries + droppedTombstones }
  }

  /// An entry that stays, with its value's place in the arena.
  private struct Kept {
    var front: DecodedFront
    var head: EntryHead
    var valueStart: Int
    var created: UInt64
    var isSuperseded: Bool
  }

  private let engine: Engine
  private let group: CompactionPlan.Group
  private let floor: CompactionFloor
  private let pinned: PinnedVersions?
  private let options: CompactionOptions
  private let caches = LogCaches(blockBytes: 4 << 20, frontBytes: 0)

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

  func run() throws(TidemarkError) -> Outcome {
    // A segment that is laid out already gains by a drop alone, and the heads tell of one.
    let isLaidOut = try isLaidOut()
    if isLaidOut, !floor.drops, options.isSuperseded == nil { return Outcome() }
    if options.dryRun || isLaidOut {
      let forecast = try forecast()
      if options.dryRun || forecast.dropped == 0 { return forecast }
    }
    var outcome = Outcome()
    var swap = CompactionSwap(inputs: group.segments, rows: [], superseded: [], droppedThrough: 0)
    var written: [String] = []
    do throws(TidemarkError) {
      for window in try windows() {
        let kept = try survivors(of: window, values: true, &outcome, &swap)
        if kept.items.isEmpty { continue }
        try options.checkStop()
        let row = try write(kept, covering: window.range, &written)
        swap.rows.append(row)
        swap.superseded.append(kept.superseded)
      }
      guard try isGain(swap, outcome) else {
        discard(written)
        if !options.dense { leaveAlone() }
        return outcome
      }
      try syncNames()
    } catch {
      discard(written)
      throw error
    }
    outcome.swap = swap
    return outcome
  }

  /// Counts the entries that would be dropped, without a look at values.
  private func forecast() throws(TidemarkError) -> Outcome {
    var outcome = Outcome()
    var swap = CompactionSwap(inputs: group.segments, rows: [], superseded: [], droppedThrough: 0)
    for window in try windows() {
      _ = try survivors(of: window, values: false, &outcome, &swap)
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
    guard outcome.dropped == 0, group.segments.count == 1,
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
  private struct Window {
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
      for record in try segment.frames() {
        open.frames.append((segment, record))
        guard segment.kind == .appended, group.rawBytes > Limits.compactionUnitBytes else {
          continue
        }
        let front = try segment.front(record, caches: caches)
        raw += front.blocks.reduce(front.header.headsRawLength) { $0 + $1.rawLength }
        guard raw >= Limits.compactionUnitBytes else { continue }
        let last = front.header.nextSequence - 1
        guard last >= next else {
          throw segment.damage(
            .format(FormatError("a frame outside the range of its segment")),
            offset: front.offset)
        }
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

  // MARK: What stays

  private struct Survivors {
    var items: [Kept] = []
    var values: [UInt8] = []
    var superseded = 0
    var latestTime: Timestamp?
    var rawBytes = 0
    var latestCommitTime: UInt64 = 0
  }

  /// - Parameter values: whether values are read, too.
  private func survivors(
    of window: Window, values: Bool, _ outcome: inout Outcome, _ swap: inout CompactionSwap
  ) throws(TidemarkError) -> Survivors {
    var kept = Survivors()
    var records = NewestRecords()
    var versions = NeededVersions(engine, floor)
    for (segment, record) in window.frames {
      try options.checkStop()
      let front = try segment.front(record, caches: caches)
      for head in front.entries {
        kept.latestCommitTime = max(kept.latestCommitTime, head.commitTime)
        guard segment.range.contains(head.sequence) else {
          throw segment.damage(
            .format(FormatError("an entry outside the range of its segment")),
            offset: front.offset, sequences: head.sequence...head.sequence)
        }
        let fate = try fate(of: head, key: front.key(of: head), in: front, &versions)
        switch fate {
        case .dropped:
          outcome.droppedEntries += 1
        case .droppedTombstone:
          outcome.droppedTombstones += 1
          swap.droppedThrough = max(swap.droppedThrough, head.sequence)
        case .kept(let created, let isSuperseded):
          var item = Kept(
            front: front, head: head, valueStart: kept.values.count, created: created,
            isSuperseded: isSuperseded)
          if head.hasValue, values {
            item.valueStart = kept.values.count
            try copyValue(of: head, in: segment, to: &kept.values)
          }
          if isSuperseded { kept.superseded += head.keyLength + head.valueLength + 16 }
          kept.rawBytes += head.keyLength + head.valueLength
          if head.kind == .record {
            try records.note(head, of: front, at: kept.items.count)
          }
          kept.items.append(item)
        }
      }
    }
    if !records.superseded.isEmpty {
      kept.items = kept.items.enumerated().filter { !records.superseded.contains($0.offset) }
        .map(\.element)
    }
    // Views by own time look at the latest time of a segment: dropped entries count on.
    let rows = engine.reading.withLock { $0.manifest.segments }
    for segment in group.segments {
      guard let time = rows.first(where: { $0.id == segment.id })?.latestTime else { continue }
      kept.latestTime = max(kept.latestTime ?? time, time)
    }
    return kept
  }

  private func copyValue(
    of head: EntryHead, in segment: Segment, to values: inout [UInt8]
  ) throws(TidemarkError) {
    guard let location = try segment.locate(head.sequence) else {
      throw engine.missing(head.sequence)
    }
    guard location.length == head.valueLength else {
      throw segment.damage(
        .format(FormatError("head and locator differ in a value's length")), offset: 0,
        sequences: head.sequence...head.sequence)
    }
    try segment.readValue(at: location, sequence: head.sequence, caches: caches) { value in
      values.append(copying: value)
    }
  }

  private enum Fate {
    case kept(created: UInt64, isSuperseded: Bool)
    case dropped
    case droppedTombstone
  }

  /// Whether a record says nothing any more. One that takes its name away stays: an older one may
  /// stand in a segment that is not rewritten.
  private func isSuperseded(
    _ head: EntryHead, _ key: RawSpan, in front: DecodedFront
  ) throws(TidemarkError) -> Bool {
    guard let isSuperseded = options.isSuperseded else { return false }
    let type: UInt32
    do { type = try front.attributes(of: head).recordType } catch {
      throw TidemarkError(.damaged, "a record of the engine cannot be read", cause: error)
    }
    let known = RecordType(rawValue: type)
    guard head.valueLength > 0 || !known.isListed else { return false }
    return isSuperseded(RecordName(known, key: [UInt8](copying: key)), head.sequence)
  }

  private func fate(
    of head: EntryHead, key: RawSpan, in front: DecodedFront, _ versions: inout NeededVersions
  ) throws(TidemarkError) -> Fate {
    guard head.kind != .record else {
      return try isSuperseded(head, key, in: front)
        ? .dropped : .kept(created: 0, isSuperseded: false)
    }
    let newest = try engine.slot(ofKey: key)?.sequence ?? 0
    let isSuperseded = newest != head.sequence || head.kind.removes
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.tombstoneDroppedEarly), head.kind.removes { return .dropped }
    #endif
    guard floor.drops, head.sequence <= floor.limit else {
      return .kept(created: head.created, isSuperseded: isSuperseded)
    }
    if head.kind.removes, head.sequence > floor.deletes {
      return .kept(created: head.created, isSuperseded: true)
    }
    // A key that the index has forgotten was deleted at or below the floor.
    guard newest > 0 else {
      guard head.sequence <= floor.sequence else {
        return .kept(created: head.created, isSuperseded: true)
      }
      return head.kind.removes ? .droppedTombstone : .dropped
    }
    if let pinned, pinned.kept[head.sequence] != nil {
      return .kept(created: try created(head), isSuperseded: true)
    }
    let chain = try versions.of(key, newest: newest)
    guard chain.keeps(head.sequence) else {
      return head.kind.removes ? .droppedTombstone : .dropped
    }
    if head.kind.removes, head.sequence <= floor.sequence { return .droppedTombstone }
    // The put that a touch stands on may lose its predecessors, too.
    let isLast =
      head.sequence == chain.oldest
      || (head.previous > 0 && head.previous <= floor.limit
        && !chain.keeps(head.previous))
    let created = isLast ? try created(head) : head.created
    return .kept(created: created, isSuperseded: isSuperseded)
  }

  /// Commit time of the oldest version since the key was last absent, for a survivor whose
  /// older versions go.
  private func created(_ head: EntryHead) throws(TidemarkError) -> UInt64 {
    if head.created != 0 || head.kind.removes { return head.created }
    var oldest: UInt64 = 0
    var candidate = head.previous
    while candidate > 0, let entry = try engine.entryIfKept(at: candidate),
      !entry.head.kind.removes
    {
      oldest = entry.head.created != 0 ? entry.head.created : entry.head.commitTime
      if entry.head.created != 0 { break }
      candidate = entry.head.previous
    }
    return oldest
  }

  // MARK: Writing

  private func write(
    _ kept: Survivors, covering range: ClosedRange<UInt64>, _ written: inout [String]
  ) throws(TidemarkError) -> Manifest.Segment {
    var items = kept.items
    items.sort { a, b in
      let order = a.front.key(of: a.head).compare(to: b.front.key(of: b.head))
      return order != 0 ? order < 0 : a.head.sequence < b.head.sequence
    }
    let row = try newRow(range)
    let fileKey = try engine.newFileKey(row.keyID)
    written.append(engine.path + "/" + StoreLayout.logDirectory + "/" + row.fileName)
    do throws(LogReadError) {
      var writer = try CompactedSegmentWriter(
        creating: row, storeID: engine.storeID, storePath: engine.path,
        fileSystem: engine.environment.fileSystem, contexts: engine.contexts,
        layout: layout(items, kept.values), fileKey: fileKey)
      do throws(LogReadError) {
        for item in items { try add(item, of: kept, to: &writer) }
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
    _ item: Kept, of kept: Survivors, to writer: inout CompactedSegmentWriter
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
      attributes: item.front.attributeBytes(of: head), labels: item.front.labels(of: head))
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

  private func layout(_ items: [Kept], _ values: [UInt8]) -> SegmentLayout {
    let lengths = items.map { item in
      item.valueStart..<(item.valueStart + (item.head.hasValue ? item.head.valueLength : 0))
    }
    return CompactedLayout(values: values, places: lengths).layout(
      dense: options.dense, dictionaryFrom: engine.configuration.dictionaryFromBytes,
      contexts: engine.contexts)
  }
}
