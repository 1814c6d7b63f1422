/// Copies what a plan takes from its sources (damaged segments) into compacted segments of the new
/// store, which MANIFEST lists only when all are written.
struct RepairWriter {
  let sources: [RepairSource]
  let plan: RepairPlan
  /// The sequences that are lost, including those that could not be read a second time.
  private(set) var lost: SequenceSet
  let target: StoreTarget
  let storeID: [UInt8]
  let environment: EngineEnvironment
  let contexts: ZstdContexts
  let keys: KeyRing
  /// The user's key for the new store; nil when that is not to be encrypted.
  let keyID: Encryption.KeyID?
  private(set) var rows: [Manifest.Segment] = []
  private(set) var entries = 0
  private(set) var latestCommitTime: UInt64 = 0
  /// The last entry whose link leads to a version that is neither there nor known to be lost.
  private(set) var lastDangling: UInt64 = 0
  /// The entries that were whole when stock was taken, and could not be read again.
  private(set) var losses: [RepairLoss] = []
  private(set) var unit = Unit()
  /// The sequences that were copied in this run of the plan, in whichever order.
  private(set) var copied: [UInt64] = []

  /// Entries on their way into one segment.
  struct Unit {
    var items: [(front: DecodedFront, head: EntryHead, valueStart: Int)] = []
    var values: [UInt8] = []
    var rawBytes = 0
    var latestTime: Timestamp?
    var latestCommitTime: UInt64 = 0
  }

  mutating func run() throws(TidemarkError) {
    for run in plan.runs {
      let source = sources[run.source]
      copied = []
      do {
        let survey = try source.survey(environment.fileSystem)
        defer { survey.close() }
        if source.kind == .appended {
          for frame in source.frames where frame.sequences.overlaps(run.range) {
            try makeRoom(for: frame.rawBytes)
            try copy(frame, within: run.range, run, survey)
          }
        } else {
          try copySorted(run, run.range, source, survey)
        }
      } catch let error as FileSystemError where error.isUnreadable {
        // `noteLosses` counts all that was not copied as lost.
      } catch { throw TidemarkError(wrapping: error, while: "reading the log") }
      noteLosses(run, source)
    }
    try flush()
  }

  /// Counts as lost what the plan takes from a source and the disk has not given a second time.
  private mutating func noteLosses(_ run: RepairPlan.Run, _ source: RepairSource) {
    let wanted = plan.taken[run.source].intersection(SequenceSet(run.range))
    for range in wanted.subtracting(SequenceSet(ascending: copied.sorted())).ranges {
      lost.insert(range)
      guard losses.count < Limits.verifyFindings else { continue }
      let frame = source.frames.first { $0.sequences.overlaps(range) }
      losses.append(
        RepairLoss(
          file: source.name, offset: frame?.offset ?? 0, sequences: range,
          reason: "it was whole at first, and could not be read again"))
    }
  }

  /// Copies a range from a sorted segment. Its frames are not in the order of sequences, so all of
  /// the range goes into one segment, or segments would overlap; too long a range is halved.
  private mutating func copySorted(
    _ run: RepairPlan.Run, _ range: ClosedRange<UInt64>, _ source: RepairSource,
    _ survey: SegmentSurvey
  ) throws {
    func isTooMuch(_ bytes: Int, _ count: Int) -> Bool {
      bytes > Limits.compactionUnitBytes || count > Limits.repairUnitEntries
    }
    let frames = source.frames.filter { $0.sequences.overlaps(range) }
    var bytes = frames.reduce(0) { $0 + $1.rawBytes }
    var count = frames.reduce(0) { $0 + $1.entryCount }
    if isTooMuch(bytes, count) { (bytes, count) = try measure(frames, range, survey) }
    if isTooMuch(bytes, count) || range.upperBound - range.lowerBound > UInt64(UInt32.max),
      range.count > 1
    {
      let middle = range.lowerBound + (range.upperBound - range.lowerBound) / 2
      try copySorted(run, range.lowerBound...middle, source, survey)
      try copySorted(run, (middle + 1)...range.upperBound, source, survey)
      return
    }
    try makeRoom(for: bytes)
    for frame in frames { try copy(frame, within: range, run, survey) }
  }

  /// Raw bytes and number of the entries in a range; frames also hold entries of other ranges.
  private func measure(
    _ frames: [RepairSource.Frame], _ range: ClosedRange<UInt64>, _ survey: SegmentSurvey
  ) throws(FileSystemError) -> (Int, Int) {
    var bytes = 0
    var count = 0
    for frame in frames {
      guard let front = try survey.front(at: frame.offset) else {
        bytes += frame.rawBytes
        count += frame.entryCount
        continue
      }
      for head in front.entries where range.contains(head.sequence) {
        bytes += head.repairedBytes
        count += 1
      }
    }
    return (bytes, count)
  }

  private mutating func copy(
    _ frame: RepairSource.Frame, within range: ClosedRange<UInt64>, _ run: RepairPlan.Run,
    _ survey: SegmentSurvey
  ) throws {
    guard let front = try survey.front(at: frame.offset) else { return }
    let values = try survey.values(of: front, keepsBytes: true)
    let taken = plan.taken[run.source]
    for head in front.entries where range.contains(head.sequence) && taken.contains(head.sequence) {
      guard values.firstBadBlock(of: head, in: front) == nil else { continue }
      try add(head, of: front, values)
      entries += 1
      copied.append(head.sequence)
      if head.previous > 0, !plan.present.contains(head.previous), !lost.contains(head.previous) {
        lastDangling = max(lastDangling, head.sequence)
      }
    }
  }

  /// Adds an entry whose value is intact.
  private mutating func add(
    _ head: EntryHead, of front: DecodedFront, _ values: FrameValues
  ) throws(FormatError) {
    let time = try front.attributes(of: head).time ?? HybridTime(head.commitTime).timestamp
    unit.items.append((front, head, unit.values.count))
    if head.valueLength > 0 {
      unit.values.append(
        copying: try values.bytes.rawSpan.slice(head.valueOffset, head.valueLength))
    }
    unit.rawBytes += head.repairedBytes
    unit.latestTime = max(unit.latestTime ?? time, time)
    unit.latestCommitTime = max(unit.latestCommitTime, head.commitTime)
  }

  /// Writes the segment that is gathered, unless so many raw bytes more still fit into it.
  private mutating func makeRoom(for bytes: Int) throws(TidemarkError) {
    if unit.rawBytes + bytes > Limits.compactionUnitBytes
      || unit.items.count >= Limits.repairUnitEntries
    {
      try flush()
    }
  }

  /// Writes the gathered entries, sorted by key and sequence, as a segment of the new store.
  private mutating func flush() throws(TidemarkError) {
    let sequences = unit.items.map(\.head.sequence)
    guard let first = sequences.min(), let last = sequences.max() else { return }
    latestCommitTime = max(latestCommitTime, unit.latestCommitTime)
    let fileKey = try keys.newFileKey(keyID, random: environment.randomBytes)
    var row = Manifest.Segment(
      id: UInt64(rows.count) + 1, state: .sealed, kind: .compacted,
      salt: UInt32(truncatingIfNeeded: environment.random.next()), firstSequence: first)
    row.keyID = fileKey?.keyID
    let sorted = unit.items.sorted { a, b in
      let order = a.front.key(of: a.head).compare(to: b.front.key(of: b.head))
      return order != 0 ? order < 0 : a.head.sequence < b.head.sequence
    }
    do throws(LogReadError) {
      var writer = try CompactedSegmentWriter(
        creating: row, storeID: storeID, storePath: target.path,
        fileSystem: environment.fileSystem, contexts: contexts,
        layout: SegmentLayout(level: FrameCodecs.fastLevel), fileKey: fileKey)
      for (front, head, start) in sorted {
        let value = unit.values.rawSpan.extracting(start..<(start + head.valueLength))
        try writer.add(
          FrameBuilder.Entry(rewriting: head), key: front.key(of: head),
          value: head.hasValue ? value : nil, attributes: front.attributeBytes(of: head),
          labels: front.labels(of: head))
      }
      rows.append(
        try writer.finish(
          lastSequence: last, latestTime: unit.latestTime,
          latestCommitTime: unit.latestCommitTime))
    } catch {
      switch error {
      case .system(let error): throw TidemarkError(error, while: "writing the repaired store")
      case .format(let error):
        throw TidemarkError(
          .inputOutput, "the repaired store cannot be written: \(error.reason)", cause: error)
      }
    }
    unit = Unit()
  }
}

extension EntryHead {
  /// About the bytes that the entry takes in the new store.
  fileprivate var repairedBytes: Int { keyLength + valueLength + attributesLength + 32 }
}
