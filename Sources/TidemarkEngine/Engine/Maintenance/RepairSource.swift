/// One segment that a repair reads, in whatever state, and which of its entries are good or lost. A
/// frame is a block of entries with a header; a sorted (compacted) segment has them by key.
struct RepairSource: Sendable {
  /// A frame whose heads are intact.
  struct Frame: Sendable {
    var offset: Int
    var sequences: ClosedRange<UInt64>
    var entryCount: Int
    /// Raw bytes of its heads and values.
    var rawBytes: Int
  }

  let origin: SegmentOrigin
  /// The sequences that the segment stands for in the log, whether or not it holds them.
  private(set) var coverage: ClosedRange<UInt64>?
  private(set) var frames: [Frame] = []
  /// Entries whose heads and values are intact.
  private(set) var present = SequenceSet()
  /// Entries that were in it and cannot be read.
  private(set) var lost = SequenceSet()
  private(set) var losses: [RepairLoss] = []
  private(set) var latestCommitTime: UInt64 = 0
  private(set) var notes: [String] = []
  private var isMissing = false
  /// The entries that were met, in the order of the file, by whether their values are intact.
  private var met: (good: [UInt64], lost: [UInt64]) = ([], [])
  /// The last entry that ends a batch.
  private var lastBatchEnd: UInt64 = 0
  private let storePath: String

  /// Opens a file of the log, finds out what it is and closes it again.
  /// - Returns: nil when the file is missing or cannot be a segment.
  init?(
    _ name: String, row: Manifest.Segment?, storePath: String, fileSystem: any FileSystem,
    contexts: ZstdContexts, keys: KeyRing
  ) throws(TidemarkError) {
    self.storePath = storePath
    let path = storePath + "/" + name
    do {
      guard try fileSystem.kind(path) == .file else { return nil }
      let file = TolerantFile(try fileSystem.open(path, .read))
      defer { file.close() }
      let origin = try SegmentOrigin(
        file, name: name, row: row, of: nil, contexts: contexts, keys: keys
      ) { _, _, _ in }
      guard let origin else {
        // A file that the disk cannot read must not pass for one that is no segment.
        guard file.unreadablePages.isEmpty else {
          throw FileSystemError(.read, path: path, number: ErrorNumber.inputOutput)
        }
        return nil
      }
      self.origin = origin
    } catch { throw TidemarkError(wrapping: error, while: "reading the log") }
    coverage = origin.coverage
    latestCommitTime = origin.footer?.latestCommitTime ?? 0
  }

  /// A segment that MANIFEST lists and that is not there, or cannot be read at all.
  init(missing row: Manifest.Segment, reason: String, storePath: String, contexts: ZstdContexts) {
    self.storePath = storePath
    origin = SegmentOrigin(missing: row, contexts: contexts)
    isMissing = true
    // Nil for a segment that was never sealed: nothing tells how many entries it had.
    coverage = origin.coverage
    lose(coverage, at: 0, reason)
  }

  var name: String { origin.name }
  var kind: SegmentHeader.Kind { origin.kind }
  var storeID: [UInt8]? { origin.storeID }
  /// Whether MANIFEST lists it.
  var isListed: Bool { origin.row != nil }
  /// Whether it was sealed: only then `coverage` is known from elsewhere than its entries.
  var isComplete: Bool { origin.coverage != nil }

  /// Opens the file again for a walk; the caller closes the survey.
  func survey(_ fileSystem: any FileSystem) throws(FileSystemError) -> SegmentSurvey {
    let file = TolerantFile(try fileSystem.open(storePath + "/" + name, .read))
    return try SegmentSurvey(file, origin, joinsDamage: true)
  }

  /// Reads the whole segment and notes what is good and what is lost; called once.
  mutating func takeStock(_ fileSystem: any FileSystem) throws(TidemarkError) {
    guard !isMissing else { return }
    do throws(FileSystemError) {
      var survey = try survey(fileSystem)
      defer { survey.close() }
      while let piece = try survey.next() {
        switch piece {
        case .frame(let front, let expected): try take(front, expected, survey)
        case .damage(let damage): lose(damage)
        }
      }
      try finish(&survey)
      met = ([], [])
    } catch {
      guard error.isUnreadable else { throw TidemarkError(error, while: "reading the log") }
      frames = []
      present = SequenceSet()
      losses = []
      lose(coverage, at: 0, "the disk cannot read the file")
    }
  }

  /// Notes a loss.
  /// - Parameter sequences: nil where none are lost, or it is not known yet which.
  private mutating func lose(_ sequences: ClosedRange<UInt64>?, at offset: Int, _ reason: String) {
    if let sequences { lost.insert(sequences) }
    report(RepairLoss(file: name, offset: offset, sequences: sequences, reason: reason))
  }

  private mutating func report(_ loss: RepairLoss) {
    guard losses.count < Limits.verifyFindings else { return }
    losses.append(loss)
  }

  /// Notes a damaged stretch; what a sorted one held shows only at the end (`accountForSorted`).
  private mutating func lose(_ damage: SegmentSurvey.Damage) {
    guard kind == .compacted || damage.sequences != nil else { return }
    lose(damage.sequences, at: damage.range.lowerBound, damage.reason.reason)
  }

  private mutating func take(
    _ front: DecodedFront, _ expected: UInt64, _ survey: SegmentSurvey
  ) throws(FileSystemError) {
    guard let sequences = front.sequences else { return }
    guard !front.isOpaque else {
      return lose(
        min(expected, sequences.lowerBound)...sequences.upperBound, at: front.offset,
        "the header is lost, and with it the key of an encrypted segment")
    }
    // Sequences of an appended segment have no gaps.
    if kind == .appended, sequences.lowerBound > expected {
      lose(expected...(sequences.lowerBound - 1), at: front.offset, "frames are missing")
    }
    let values = try survey.values(of: front)
    frames.append(
      Frame(
        offset: front.offset, sequences: sequences, entryCount: front.entries.count,
        rawBytes: front.header.headsRawLength + values.length))
    var losses: [Int: RepairLoss] = [:]
    for entry in front.entries {
      latestCommitTime = max(latestCommitTime, entry.commitTime)
      if entry.endsBatch { lastBatchEnd = max(lastBatchEnd, entry.sequence) }
      guard let bad = values.firstBadBlock(of: entry, in: front) else {
        met.good.append(entry.sequence)
        continue
      }
      met.lost.append(entry.sequence)
      losses[
        bad.offset, default: RepairLoss(file: name, offset: bad.offset, reason: bad.reason.reason)
      ].note(entry.sequence, key: [UInt8](copying: front.key(of: entry)))
    }
    for (_, loss) in losses.sorted(by: { $0.key < $1.key }) { report(loss) }
  }

  private mutating func finish(_ survey: inout SegmentSurvey) throws(FileSystemError) {
    var isTorn = !isComplete
    if let open = survey.open, !isComplete {
      // Behind the last good frame of a segment that was never sealed: a torn tail, unless the disk
      // cannot read it, when acknowledged entries may stand there.
      let range = open.range
      if let page = survey.unreadablePage(in: range) {
        isTorn = false
        lose(
          nil, at: max(page, range.lowerBound),
          "the disk cannot read the end of the segment, and nothing tells which entries stand there"
        )
      } else if try !survey.isZero(from: range.lowerBound, to: range.upperBound) {
        notes.append(
          "\(name): \(range.count) bytes from offset \(range.lowerBound) on are no "
            + "whole frames: a torn tail, or entries that nothing else tells of")
      }
    } else if let damage = survey.settle(next: nil) {
      lose(damage)
    }
    present = SequenceSet(ascending: met.good.sorted())
    lost.formUnion(SequenceSet(ascending: met.lost.sorted()))
    if let row = origin.row, row.state == .sealed, kind == .appended,
      survey.expected <= row.lastSequence
    {
      lose(survey.expected...row.lastSequence, at: origin.framesEnd, "segment was cut")
    }
    if !isComplete { dropOpenBatch(isTorn: isTorn) }
    if kind == .compacted { accountForSorted(survey, count: met.good.count + met.lost.count) }
    if coverage == nil, let last = present.last {
      coverage = min(origin.firstSequence, last)...last
    }
  }

  /// Leaves out the entries of a last batch that has no end: a batch counts as a whole, or not.
  /// - Parameter isTorn: whether nothing acknowledged stands behind them; else they are lost.
  private mutating func dropOpenBatch(isTorn: Bool) {
    guard kind == .appended, let last = present.last, last > lastBatchEnd else { return }
    let open = (lastBatchEnd + 1)...last
    let dropped = present.intersection(SequenceSet(open))
    present = present.subtracting(dropped)
    guard isTorn else {
      lost.formUnion(dropped)
      return report(
        RepairLoss(
          file: name, offset: min(origin.firstFrame, origin.framesEnd), sequences: open,
          reason: "the rest of the batch cannot be read"))
    }
    notes.append("\(name): the last batch was never finished and is left out")
  }

  /// Adds what a sorted segment lost: by its locator (a table at its end), or all that may be lost.
  /// - Parameter count: the entries whose heads are intact.
  private mutating func accountForSorted(_ survey: SegmentSurvey, count: Int) {
    var gone: ClosedRange<UInt64>?
    var offset = 0
    if let held = survey.sequencesHeld() {
      let missing = SequenceSet(ascending: held).subtracting(present)
      lost.formUnion(missing)
      if let first = missing.first, let last = missing.last { gone = first...last }
    } else {
      let total = origin.footer?.slotCount ?? origin.row?.entryCount
      if let total, count >= total { return }
      guard survey.hasDamage || total != nil, let coverage else { return }
      // Any sequence that is not present may have been lost.
      lost.formUnion(SequenceSet(coverage).subtracting(present))
      gone = coverage
      offset = origin.framesEnd
    }
    guard let gone else { return }
    for i in losses.indices where losses[i].sequences == nil { losses[i].sequences = gone }
    if losses.isEmpty {
      report(RepairLoss(file: name, offset: offset, sequences: gone, reason: "entries are missing"))
    }
  }
}

extension RepairLoss {
  /// Notes an entry that is lost although its head is intact.
  fileprivate mutating func note(_ sequence: UInt64, key: [UInt8]) {
    let known = sequences ?? sequence...sequence
    sequences = min(known.lowerBound, sequence)...max(known.upperBound, sequence)
    keyCount += 1
    if keys.count < Limits.repairKeysPerLoss { keys.append(key) }
  }
}
