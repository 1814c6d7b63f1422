/// Copies what a plan takes from its sources into segments of the new store.
struct RepairWriter {
  private let sources: [RepairSource]
  private let plan: RepairPlan
  /// The sequences that are not in the new store, those among them that could not be read again.
  private(set) var lost: SequenceSet
  /// The entries that were whole when stock was taken, and could not be read again.
  private(set) var losses: [RepairLoss] = []
  private let target: StoreTarget
  private let storeID: [UInt8]
  private let environment: EngineEnvironment
  private let contexts: ZstdContexts
  private let keys: KeyRing
  /// The user's key for the new store; nil when that is not to be encrypted.
  private let keyID: Encryption.KeyID?
  private var unit = RepairUnit()
  private let present: SequenceSet
  /// The sequences that were copied in this run of the plan, in whichever order.
  private var copied: [UInt64] = []

  private(set) var rows: [Manifest.Segment] = []
  private(set) var entries = 0
  private(set) var latestCommitTime: UInt64 = 0
  /// The last entry whose earlier version is neither there nor known to be lost.
  private(set) var lastDangling: UInt64 = 0

  init(
    _ sources: [RepairSource], plan: RepairPlan, lost: SequenceSet, target: StoreTarget,
    storeID: [UInt8], environment: EngineEnvironment, contexts: ZstdContexts, keys: KeyRing,
    keyID: Encryption.KeyID?
  ) {
    self.sources = sources
    self.plan = plan
    self.lost = lost
    self.target = target
    self.storeID = storeID
    self.environment = environment
    self.contexts = contexts
    self.keys = keys
    self.keyID = keyID
    var present = SequenceSet()
    // In the order of sequences, so that every insertion is one at the end.
    let all = plan.taken.flatMap(\.ranges).sorted { $0.lowerBound < $1.lowerBound }
    for range in all { present.insert(range) }
    self.present = present
  }

  /// Writes all segments.
  mutating func run() throws(TidemarkError) {
    for run in plan.runs {
      let source = sources[run.source]
      copied = []
      do {
        let reader = try source.reader(environment.fileSystem)
        defer { reader.close() }
        if source.kind == .appended {
          try copyInOrder(run, source, reader)
        } else {
          try copySorted(run, run.range, source, reader)
        }
      } catch let error as FileSystemError {
        guard error.isUnreadable else { throw TidemarkError(error, while: "reading the log") }
      } catch let error as TidemarkError {
        throw error
      } catch {
        throw TidemarkError(.inputOutput, "the log cannot be read", cause: error)
      }
      noteLosses(run, source)
    }
    try flush()
  }

  /// Counts as lost what the plan takes from a source and a disk that fails now and then has not
  /// given a second time.
  private mutating func noteLosses(_ run: RepairPlan.Run, _ source: RepairSource) {
    var wanted = SequenceSet()
    wanted.insert(run.range)
    wanted = plan.taken[run.source].intersection(wanted)
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

  private mutating func copyInOrder(
    _ run: RepairPlan.Run, _ source: RepairSource, _ reader: RepairReader
  ) throws {
    for frame in source.frames where frame.sequences.overlaps(run.range) {
      if unit.isFull(expecting: frame.rawBytes) {
        try flush()
      }
      try copy(frame, within: run.range, run, reader)
    }
  }

  /// The frames of a sorted segment are not in the order of sequences, so all of a range goes
  /// into one segment; a range of too much is halved.
  private mutating func copySorted(
    _ run: RepairPlan.Run, _ range: ClosedRange<UInt64>, _ source: RepairSource,
    _ reader: RepairReader
  ) throws {
    let frames = source.frames.filter { $0.sequences.overlaps(range) }
    var bytes = frames.reduce(0) { $0 + $1.rawBytes }
    var count = frames.reduce(0) { $0 + $1.entryCount }
    if bytes > Limits.compactionUnitBytes || count > Limits.repairUnitEntries {
      (bytes, count) = try measure(frames, range, reader)
    }
    let isTooMuch =
      bytes > Limits.compactionUnitBytes || count > Limits.repairUnitEntries
      || range.upperBound - range.lowerBound > UInt64(UInt32.max)
    if isTooMuch, range.count > 1 {
      let middle = range.lowerBound + (range.upperBound - range.lowerBound) / 2
      try copySorted(run, range.lowerBound...middle, source, reader)
      try copySorted(run, (middle + 1)...range.upperBound, source, reader)
      return
    }
    if unit.isFull(expecting: bytes) { try flush() }
    for frame in frames { try copy(frame, within: range, run, reader) }
  }

  /// Raw bytes and number of the entries in a range.
  private func measure(
    _ frames: [RepairSource.Frame], _ range: ClosedRange<UInt64>, _ reader: RepairReader
  ) throws -> (Int, Int) {
    var bytes = 0
    var count = 0
    for frame in frames {
      guard let front = try reader.front(at: frame.offset) else {
        bytes += frame.rawBytes
        count += frame.entryCount
        continue
      }
      for head in front.entries where range.contains(head.sequence) {
        bytes += head.keyLength + head.valueLength + head.attributesLength + 32
        count += 1
      }
    }
    return (bytes, count)
  }

  private mutating func copy(
    _ frame: RepairSource.Frame, within range: ClosedRange<UInt64>, _ run: RepairPlan.Run,
    _ reader: RepairReader
  ) throws {
    guard let front = try reader.front(at: frame.offset) else { return }
    let values = try reader.values(of: front)
    let taken = plan.taken[run.source]
    for head in front.entries where range.contains(head.sequence) && taken.contains(head.sequence) {
      guard values.firstBadBlock(of: head, in: front) == nil else { continue }
      try unit.add(head, of: front, values: values)
      entries += 1
      copied.append(head.sequence)
      if head.previous > 0, !present.contains(head.previous), !lost.contains(head.previous) {
        lastDangling = max(lastDangling, head.sequence)
      }
    }
  }

  private mutating func flush() throws(TidemarkError) {
    guard !unit.isEmpty else { return }
    latestCommitTime = max(latestCommitTime, unit.latestCommitTime)
    let fileKey = try keys.newFileKey(keyID, random: environment.randomBytes)
    rows.append(
      try unit.write(
        id: UInt64(rows.count) + 1, to: target, storeID: storeID, environment: environment,
        contexts: contexts, fileKey: fileKey))
    unit = RepairUnit()
  }
}
