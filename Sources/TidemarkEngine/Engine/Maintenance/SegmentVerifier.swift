/// Checks every byte of one segment: header, frames (blocks of entries) and, if it was sealed, the
/// locator (a table of all entries) and footer behind them.
struct SegmentVerifier {
  let row: Manifest.Segment
  let manifest: Manifest
  /// The store's directory.
  let path: String
  let fileSystem: any FileSystem
  let contexts: ZstdContexts
  /// The user's keys; without any an encrypted segment's checksums are checked and no more.
  let keys: KeyRing
  /// Whether the machine has not started again since the last writer opened the store.
  let sameBoot: Bool
  var findings: [VerifyFinding] = []
  /// The attachments that owned entries name.
  private(set) var attachments: Set<AttachmentID> = []
  private(set) var entries = 0
  private(set) var bytes = 0
  /// The highest sequence found in it.
  private(set) var lastSequence: UInt64 = 0

  private var fileName: String { StoreLayout.logDirectory + "/" + row.fileName }

  /// Notes that something is wrong.
  /// - Parameters:
  ///   - sequences: nil for all that the segment covers.
  ///   - remedy: nil for damage to acknowledged data, for which it is a repair.
  mutating func report(
    _ offset: Int, _ message: String, length: Int = 0, sequences: ClosedRange<UInt64>? = nil,
    remedy: String? = nil
  ) {
    guard findings.count < Limits.verifyFindings else { return }
    let range = row.firstSequence...max(row.firstSequence, row.lastSequence)
    findings.append(
      VerifyFinding(
        file: fileName, offset: offset, length: length, sequences: sequences ?? range,
        message: message, remedy: remedy ?? VerifyRemedy.repair(path),
        isDamageToAcknowledged: remedy == nil, segmentID: row.id))
  }

  mutating func run() throws(TidemarkError) {
    lastSequence = row.state == .sealed ? row.lastSequence : row.firstSequence - 1
    do {
      let file = TolerantFile(try fileSystem.open(path + "/" + fileName, .read))
      defer { file.close() }
      bytes = try file.length()
      let origin = try SegmentOrigin(
        file, name: fileName, row: row, of: manifest.storeID, contexts: contexts,
        keys: keys.isEmpty ? nil : keys
      ) { report($0, $1, length: $2) }
      if let origin, !origin.lacksDictionary {
        if row.state == .active {
          try checkActive(file, origin)
        } else {
          try checkSealed(file, origin)
        }
      }
      for page in file.unreadablePages { report(page, "the disk cannot read this page") }
    } catch let error as FileSystemError where error.number == ErrorNumber.noEntry {
      report(0, "a file of the log is missing")
    } catch let error as FileSystemError where error.isUnreadable {
      report(0, "the disk cannot read the file")
    } catch { throw TidemarkError(wrapping: error, while: "verifying the log") }
    findings.sort { $0.offset < $1.offset }
  }

  /// Checks a segment that was never sealed. A torn tail is no finding: it was never acknowledged.
  private mutating func checkActive(
    _ file: TolerantFile, _ origin: SegmentOrigin
  ) throws(FileSystemError) {
    let recovery = try TailRecovery(row: row, file: file, codecs: origin.codecs, sameBoot: sameBoot)
    let survey = try SegmentSurvey(file, origin)
    let tail = try recovery.run { (fronts) throws(FileSystemError) in
      for front in fronts { try decode(front, survey) }
    }.get()
    entries += tail.entryCount
    lastSequence = max(lastSequence, tail.lastSequence)
    guard case .damage(let damage) = tail.remainder else { return }
    report(
      damage.offset, "damage to acknowledged data: \(damage.reason.reason)",
      length: (damage.nextFrame ?? damage.offset) - damage.offset,
      sequences: damage.firstSequence...max(damage.firstSequence, damage.lastSequence))
  }

  /// Decompresses the blocks of a frame whose checksums are right already.
  private mutating func decode(
    _ front: DecodedFront, _ survey: SegmentSurvey
  ) throws(FileSystemError) {
    for entry in front.entries {
      guard let attributes = try? front.attributes(of: entry) else { continue }
      check(attributes, of: entry, in: front)
    }
    for block in try survey.values(of: front).bad {
      report(block.offset, block.reason.reason, sequences: front.sequences)
    }
  }

  /// The frames so far, as far as the locator, the footer and later frames must agree with them.
  struct Walk {
    var table = LocatorTable()
    /// The last entry so far of a compacted segment, by whether it is history (superseded): history
    /// has frames of its own, and each of both is sorted.
    var last: [Bool: (key: [UInt8], sequence: UInt64)] = [:]
    var endsBatch = true
    var latestCommitTime: UInt64 = 0
  }

  /// Checks frames, locator, footer and length of a sealed segment.
  private mutating func checkSealed(_ file: TolerantFile, _ origin: SegmentOrigin) throws {
    var survey = try SegmentSurvey(file, origin)
    var walk = Walk()
    while let piece = try survey.next() {
      switch piece {
      case .frame(let front, let expected): try check(front, expected, &survey, &walk)
      case .damage(let damage): report(damage, survey)
      }
    }
    let length = origin.length
    if length < row.length {
      let isMissingEntries = row.kind == .appended && survey.expected <= row.lastSequence
      report(
        length, "the segment was cut: \(length) of \(row.length) bytes are left",
        length: row.length - length,
        sequences: isMissingEntries ? survey.expected...row.lastSequence : nil)
      // Damage up to the cut is part of the same finding, and not reported twice.
      if survey.open?.range.upperBound == length { survey.open = nil }
    }
    if let damage = survey.settle(next: nil) { report(damage, survey) }
    if length >= row.length { try checkTrailer(file, survey, walk) }
    if length > row.length {
      report(row.length, "bytes behind the end of a sealed segment", length: length - row.length)
    }
  }

  /// Reports a damaged stretch; for a compacted segment the locator tells which entries it held.
  private mutating func report(_ damage: SegmentSurvey.Damage, _ survey: SegmentSurvey) {
    var sequences = damage.sequences
    if row.kind == .compacted, let held = survey.sequencesHeld(inFramesAt: damage.range),
      let least = held.min(), let most = held.max()
    {
      sequences = least...most
    }
    report(
      damage.range.lowerBound, damage.reason.reason, length: damage.range.count,
      sequences: sequences)
  }

  private mutating func check(
    _ front: DecodedFront, _ expected: UInt64, _ survey: inout SegmentSurvey, _ walk: inout Walk
  ) throws(FileSystemError) {
    let size = front.header.totalLength
    if let last = front.entries.last { walk.endsBatch = last.endsBatch }
    // A frame that fails here is left out of `walk`, so that locator and footer cannot match:
    // `hasDamage` keeps them from being reported for that.
    do throws(FormatError) {
      try checkOrder(front, expected, &walk)
      for entry in front.entries {
        check(try front.attributes(of: entry), of: entry, in: front)
        walk.latestCommitTime = max(walk.latestCommitTime, entry.commitTime)
      }
      walk.table.append(
        header: front.header, offset: front.offset, blocks: front.blocks,
        places: front.isOpaque ? [] : try front.places(),
        sequences: row.kind == .compacted ? front.entries.map(\.sequence) : [],
        holdsRecords: front.holdsRecords)
    } catch {
      report(front.offset, error.reason, length: size, sequences: front.sequences)
      survey.hasDamage = true
      return
    }
    let values = try survey.values(of: front)
    for block in values.bad {
      let hit = front.entries.filter(block.holds).map(\.sequence)
      let least = hit.min()
      report(
        block.offset, block.reason.reason, length: block.storedLength,
        sequences: least.map { $0...(hit.max() ?? $0) })
    }
    if !values.isPadded {
      report(
        front.offset + size - FormatConstants.frameAlignment, "bytes in a frame's padding",
        length: FormatConstants.frameAlignment, sequences: front.sequences)
    }
    if values.bad.isEmpty { entries += front.header.entryCount }
  }

  /// Checks that a frame continues the order of its segment: dense sequences, or (key, sequence).
  private func checkOrder(
    _ front: DecodedFront, _ expected: UInt64, _ walk: inout Walk
  ) throws(FormatError) {
    guard front.header.hasExplicitSequences == (row.kind == .compacted) else {
      throw FormatError("a frame of another kind of segment")
    }
    guard row.kind == .compacted else {
      guard front.header.firstSequence == expected else {
        throw FormatError("frame does not follow the one before it")
      }
      return
    }
    var last = walk.last[front.header.isHistory] ?? ([], 0)
    for entry in front.entries {
      guard entry.sequence >= row.firstSequence,
        entry.sequence <= max(row.firstSequence, row.lastSequence)
      else { throw FormatError("an entry that the segment does not cover") }
      let order = last.key.rawSpan.compare(to: front.key(of: entry))
      guard order < 0 || (order == 0 && last.sequence < entry.sequence) else {
        throw FormatError("entries out of order")
      }
      if order != 0 { last.key = [UInt8](copying: front.key(of: entry)) }
      last.sequence = entry.sequence
    }
    walk.last[front.header.isHistory] = last
  }

  /// Notes an entry's attachment, and reports an operation id that no replica gives out: no damage.
  private mutating func check(
    _ attributes: EntryAttributes, of entry: EntryHead, in front: DecodedFront
  ) {
    if let attachment = attributes.attachment, attributes.entryClass == .owned {
      attachments.insert(attachment)
    }
    guard let origin = attributes.origin, origin.sequence > Slot.maxSequence else { return }
    report(
      front.offset,
      "an operation id with the sequence \(origin.sequence), which nobody gives out; the entry "
        + "counts as written by this store",
      length: front.header.totalLength, sequences: entry.sequence...entry.sequence,
      remedy: "none is needed; logtool compact \(path) --drop-history takes it away once its key "
        + "was written anew")
  }
}
