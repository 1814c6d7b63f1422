extension SegmentVerifier {
  /// The findings of the walk over a sealed segment's frames so far.
  struct Walk {
    var table = LocatorTable()
    var entryCount = 0
    /// The sequence expected next, in a segment whose sequences are dense.
    var expected: UInt64
    /// The entry before, in a segment that is sorted: of history, and of the others.
    var lastOfHistory = Position()
    var last = Position()
    var endsBatch = true
    var latestCommitTime: UInt64 = 0
    /// Frames that could not be read, whose extent the next good frame shows.
    var open: FrameScan.Damage?
    var hasDamage = false

    struct Position {
      var key: [UInt8] = []
      var sequence: UInt64 = 0
    }
  }

  /// Checks frames, locator, footer and length of a sealed segment.
  mutating func checkSealed(
    _ file: TolerantFile, firstFrame: Int
  ) throws {
    let length = try file.length()
    let footer =
      length < row.length
      ? nil : try? SegmentReader.footer(file, sealedLength: row.length, salt: row.salt)
    let reader = try WindowReader(file)
    var scan = FrameScan(
      reader, salt: row.salt, codecs: codecs, from: firstFrame,
      end: footer?.locatorOffset ?? min(length, row.length))
    var walk = Walk(expected: row.firstSequence)
    while !isComplete(walk, scan, hasFooter: footer != nil), let piece = try scan.next() {
      switch piece {
      case .frame(let front):
        settle(&walk, next: front.header.firstSequence, file, footer)
        try check(front, scan, &walk)
      case .damage(let damage):
        settle(&walk, next: damage.header?.firstSequence, file, footer)
        walk.open = damage
        walk.hasDamage = true
      }
    }
    let isCut = length < row.length
    if isCut {
      reportCut(walk, length: length)
      // The bytes behind the last good frame are part of the same finding.
      if walk.open?.range.upperBound == length { walk.open = nil }
    }
    settle(&walk, next: nil, file, footer)
    if !isCut {
      try checkTrailer(file, footer, walk, framesEnd: scan.offset, chain: scan.chain)
    }
    if length > row.length {
      report(row.length, "bytes behind the end of a sealed segment", length: length - row.length)
    }
  }

  /// Without a footer only the chain of all headers tells where the frames end.
  private func isComplete(_ walk: Walk, _ scan: FrameScan, hasFooter: Bool) -> Bool {
    !hasFooter && !walk.hasDamage && walk.entryCount == row.entryCount && scan.chain == row.chain
  }

  private mutating func reportCut(_ walk: Walk, length: Int) {
    let isMissingEntries = row.kind == .appended && walk.expected <= row.lastSequence
    report(
      length, "the segment was cut: \(length) of \(row.length) bytes are left",
      length: row.length - length,
      sequences: isMissingEntries ? walk.expected...row.lastSequence : nil)
  }

  // MARK: Frames

  private mutating func check(
    _ front: DecodedFront, _ scan: FrameScan, _ walk: inout Walk
  ) throws {
    let size = front.header.totalLength
    do {
      try checkOrder(front, &walk)
      for entry in front.entries {
        check(try front.attributes(of: entry), of: entry, in: front)
        walk.latestCommitTime = max(walk.latestCommitTime, entry.commitTime)
      }
      let places = front.isOpaque ? [] : try front.places()
      walk.table.append(
        header: front.header, offset: front.offset, blocks: front.blocks, places: places,
        sequences: row.kind == .compacted ? front.entries.map(\.sequence) : [],
        holdsRecords: front.holdsRecords)
      var bad = 0
      let isPadded = try scan.checkBlocks(of: front, codecs: codecs) {
        number, offset, reason in
        bad += 1
        report(
          offset, reason.reason, length: front.blocks[number].storedLength,
          sequences: front.sequences(inBlock: number, places: places))
      }
      if !isPadded {
        report(
          front.offset + size - FormatConstants.frameAlignment, "bytes in a frame's padding",
          length: FormatConstants.frameAlignment, sequences: front.sequences)
      }
      if bad == 0 { entries += front.header.entryCount }
    } catch let error as FormatError {
      report(front.offset, error.reason, length: size, sequences: front.sequences)
      walk.hasDamage = true
    }
    walk.entryCount += front.header.entryCount
    if let last = front.entries.last { walk.endsBatch = last.endsBatch }
  }

  private func checkOrder(_ front: DecodedFront, _ walk: inout Walk) throws(FormatError) {
    guard front.header.hasExplicitSequences == (row.kind == .compacted) else {
      throw FormatError("a frame of another kind of segment")
    }
    guard row.kind == .compacted else {
      guard front.header.firstSequence == walk.expected else {
        walk.expected = max(walk.expected, front.header.nextSequence)
        throw FormatError("frame does not follow the one before it")
      }
      walk.expected = front.header.nextSequence
      return
    }
    var last = front.header.isHistory ? walk.lastOfHistory : walk.last
    for entry in front.entries {
      guard range.contains(entry.sequence) else {
        throw FormatError("an entry that the segment does not cover")
      }
      let order = last.key.rawSpan.compare(to: front.key(of: entry))
      guard order < 0 || (order == 0 && last.sequence < entry.sequence) else {
        throw FormatError("entries out of order")
      }
      if order != 0 { last.key = [UInt8](copying: front.key(of: entry)) }
      last.sequence = entry.sequence
    }
    if front.header.isHistory { walk.lastOfHistory = last } else { walk.last = last }
  }

  /// Reports a damaged stretch once it is known where the next good frame begins.
  private mutating func settle(
    _ walk: inout Walk, next: UInt64?, _ file: TolerantFile, _ footer: SegmentFooter?
  ) {
    guard let damage = walk.open else { return }
    walk.open = nil
    var sequences: ClosedRange<UInt64>?
    if row.kind == .appended {
      let end = next ?? (row.lastSequence + 1)
      if end > walk.expected { sequences = walk.expected...(end - 1) }
      walk.expected = max(walk.expected, next ?? walk.expected)
    } else if let footer {
      sequences = located(damage.range, file, footer)
    }
    report(
      damage.range.lowerBound, damage.reason.reason, length: damage.range.count,
      sequences: sequences)
  }

  /// The sequences that a sorted segment's locator places into a stretch of the file.
  private func located(
    _ stretch: Range<Int>, _ file: TolerantFile, _ footer: SegmentFooter
  ) -> ClosedRange<UInt64>? {
    guard
      let locator = try? SealedLocator(
        file: file, footer: footer, length: row.length, codecs: codecs)
    else { return nil }
    return try? locator.sequences(inFramesAt: stretch)
  }
}

extension SealedLocator {
  /// The least and the greatest sequence in the frames that begin in a stretch of the file.
  package func sequences(
    inFramesAt stretch: Range<Int>
  ) throws(LogReadError) -> ClosedRange<UInt64>? {
    var slots: [Range<Int>] = []
    for index in 0..<footer.frameCount {
      let frame = try frame(index)
      guard stretch.contains(Int(frame.offset)) else { continue }
      slots.append(Int(frame.firstSlot)..<(Int(frame.firstSlot) + Int(frame.entryCount)))
    }
    guard let first = slots.first?.lowerBound, let end = slots.last?.upperBound else { return nil }
    var found: ClosedRange<UInt64>?
    for index in 0..<footer.sequenceCount {
      let (sequence, slot) = try sequence(index)
      guard slot >= first, slot < end else { continue }
      let (least, most) = (found?.lowerBound ?? sequence, found?.upperBound ?? sequence)
      found = min(least, sequence)...max(most, sequence)
    }
    return found
  }
}
