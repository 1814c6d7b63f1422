/// One segment that a repair reads, whatever state it is in, and what is still good in it.
struct RepairSource: Sendable {
  /// A frame whose heads are intact.
  struct Frame: Sendable {
    var offset: Int
    var sequences: ClosedRange<UInt64>
    var entryCount: Int
    /// Raw bytes of its heads and values.
    var rawBytes: Int
  }

  /// Relative to the store.
  let name: String
  let id: UInt64
  let salt: UInt32
  let kind: SegmentHeader.Kind
  /// The store that its header names; nil when no header is whole.
  let storeID: [UInt8]?
  let firstSequence: UInt64
  /// Whether MANIFEST lists it.
  let isListed: Bool
  /// Whether it is known to cover the whole of `coverage`: it was sealed.
  var isComplete = false
  /// The sequences that it is responsible for, whether or not it holds them.
  var coverage: ClosedRange<UInt64>?
  /// Where frames are looked for.
  var frameRange: Range<Int>
  var frames: [Frame] = []
  /// Entries whose heads and values are intact.
  var present = SequenceSet()
  /// Entries that were in it and cannot be read.
  var lost = SequenceSet()
  var losses: [RepairLoss] = []
  var latestCommitTime: UInt64 = 0
  var notes: [String] = []
  private let isMissing: Bool
  private let path: String
  let codecs: FrameCodecs
  /// Whether the header says that it is encrypted.
  let isEncrypted: Bool
  private let row: Manifest.Segment?
  private let footer: SegmentFooter?

  /// Opens a file of the log and finds out what it is.
  /// - Parameters:
  ///   - name: the file, relative to the store.
  ///   - row: what MANIFEST says of it, if there is one that lists it.
  /// - Returns: nil when the file is missing or cannot be a segment.
  init?(
    _ name: String, row: Manifest.Segment?, storePath: String, fileSystem: any FileSystem,
    contexts: ZstdContexts, keys: KeyRing
  ) throws(TidemarkError) {
    self.name = name
    self.row = row
    isMissing = false
    path = storePath + "/" + name
    do {
      guard try fileSystem.kind(path) == .file else { return nil }
      let file = TolerantFile(try fileSystem.open(path, .read))
      defer { file.close() }
      let origin = try SegmentOrigin(
        file, name: name, row: row, contexts: contexts, keys: keys)
      guard let origin else {
        guard file.unreadablePages.isEmpty else {
          throw FileSystemError(.read, path: path, number: ErrorNumber.inputOutput)
        }
        return nil
      }
      id = origin.id
      salt = origin.salt
      kind = origin.kind
      storeID = origin.storeID
      firstSequence = origin.firstSequence
      codecs = origin.codecs
      isEncrypted = origin.isEncrypted
      isListed = row != nil
      let length = try file.length()
      let sealedLength = row?.state == .sealed ? row?.length ?? length : length
      let footer = try? SegmentReader.footer(file, sealedLength: sealedLength, salt: salt)
      self.footer = footer?.segmentID == origin.id ? footer : nil
      let end = min(length, self.footer?.locatorOffset ?? sealedLength)
      frameRange = min(origin.firstFrame, end)..<end
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "reading the log")
    } catch let error as TidemarkError {
      throw error
    } catch {
      throw TidemarkError(.inputOutput, "the log cannot be read", cause: error)
    }
    if let row, row.state == .sealed {
      isComplete = true
      coverage = row.firstSequence...max(row.firstSequence, row.lastSequence)
    } else if let footer = self.footer, footer.lastSequence >= footer.firstSequence {
      isComplete = true
      coverage = footer.firstSequence...footer.lastSequence
    }
    latestCommitTime = self.footer?.latestCommitTime ?? 0
  }

  /// A segment that MANIFEST lists and that is not there, or cannot be read at all.
  init(
    missing row: Manifest.Segment, reason: String, storePath: String, contexts: ZstdContexts
  ) {
    name = StoreLayout.logDirectory + "/" + row.fileName
    self.row = row
    isMissing = true
    path = storePath + "/" + name
    id = row.id
    salt = row.salt
    kind = row.kind
    storeID = nil
    firstSequence = row.firstSequence
    codecs = FrameCodecs(contexts: contexts)
    isEncrypted = row.keyID != nil
    isListed = true
    footer = nil
    frameRange = 0..<0
    var loss = RepairLoss(file: name, offset: 0, reason: reason)
    // How many entries stood in the segment that was being written, nothing tells.
    if row.state == .sealed {
      isComplete = true
      let range = row.firstSequence...max(row.firstSequence, row.lastSequence)
      coverage = range
      lost.insert(range)
      loss.sequences = range
    }
    losses = [loss]
  }

  /// Reads the file from the front to the end, frame by frame.
  func reader(_ fileSystem: any FileSystem) throws(FileSystemError) -> RepairReader {
    let file = TolerantFile(try fileSystem.open(path, .read))
    return try RepairReader(file, salt: salt, codecs: codecs)
  }

  // MARK: Taking stock

  /// Reads everything and notes what is good and what is lost.
  mutating func takeStock(_ fileSystem: any FileSystem) throws(TidemarkError) {
    guard !isMissing else { return }
    do throws(FileSystemError) {
      let reader = try reader(fileSystem)
      defer { reader.close() }
      var stock = Stock(expected: firstSequence)
      var scan = reader.scan(frameRange)
      while !isAtEnd(stock, scan), let piece = try scan.next() {
        switch piece {
        case .frame(let front):
          settle(&stock, next: front.header.firstSequence)
          try take(front, reader, &stock)
        case .damage(let damage):
          stock.hasDamage = true
          if damage.header == nil, let start = stock.open?.range.lowerBound {
            // The stretch goes on, and only a header tells which entries were in its beginning.
            stock.open?.range = start..<damage.range.upperBound
            continue
          }
          settle(&stock, next: damage.header?.firstSequence)
          stock.open = damage
        }
      }
      try finish(stock, reader)
    } catch {
      guard error.isUnreadable else { throw TidemarkError(error, while: "reading the log") }
      loseAll()
    }
  }

  /// Gives up a file that can no longer be read at all.
  private mutating func loseAll() {
    frames = []
    present = SequenceSet()
    if let coverage { lost.insert(coverage) }
    losses = [
      RepairLoss(
        file: name, offset: 0, sequences: coverage, reason: "the disk cannot read the file")
    ]
  }

  private struct Stock {
    /// Sequence expected next, where sequences are dense.
    var expected: UInt64
    var open: FrameScan.Damage?
    var hasDamage = false
    var good: [UInt64] = []
    var lost: [UInt64] = []
    /// The last entry that ends a batch.
    var lastBatchEnd: UInt64 = 0
    var count = 0
  }

  private func isAtEnd(_ stock: Stock, _ scan: FrameScan) -> Bool {
    guard footer == nil, let row, row.state == .sealed else { return false }
    return !stock.hasDamage && stock.count == row.entryCount && scan.chain == row.chain
  }

  private mutating func take(
    _ front: DecodedFront, _ reader: RepairReader, _ stock: inout Stock
  ) throws(FileSystemError) {
    stock.count += front.entries.count
    guard let sequences = front.sequences else { return }
    guard !front.isOpaque else { return lose(front, sequences, &stock) }
    if kind == .appended {
      if sequences.lowerBound > stock.expected {
        var loss = RepairLoss(file: name, offset: front.offset, reason: "frames are missing")
        loss.sequences = stock.expected...(sequences.lowerBound - 1)
        lost.insert(stock.expected...(sequences.lowerBound - 1))
        report(loss)
      }
      stock.expected = max(stock.expected, front.header.nextSequence)
    }
    let body = try reader.values(of: front)
    frames.append(
      Frame(
        offset: front.offset, sequences: sequences, entryCount: front.entries.count,
        rawBytes: front.header.headsRawLength + body.bytes.count))
    var losses: [Int: RepairLoss] = [:]
    for entry in front.entries {
      latestCommitTime = max(latestCommitTime, entry.commitTime)
      if entry.endsBatch { stock.lastBatchEnd = max(stock.lastBatchEnd, entry.sequence) }
      guard let bad = body.firstBadBlock(of: entry, in: front) else {
        stock.good.append(entry.sequence)
        continue
      }
      stock.lost.append(entry.sequence)
      var loss =
        losses[bad.offset]
        ?? RepairLoss(file: name, offset: bad.offset, reason: bad.reason.reason)
      loss.note(entry.sequence, key: [UInt8](copying: front.key(of: entry)))
      losses[bad.offset] = loss
    }
    for (_, loss) in losses.sorted(by: { $0.key < $1.key }) { report(loss) }
  }

  /// Notes a frame that is whole and cannot be decrypted.
  private mutating func lose(
    _ front: DecodedFront, _ sequences: ClosedRange<UInt64>, _ stock: inout Stock
  ) {
    var loss = RepairLoss(
      file: name, offset: front.offset,
      reason: "the header is lost, and with it the key of an encrypted segment")
    loss.sequences = min(stock.expected, sequences.lowerBound)...sequences.upperBound
    lost.insert(min(stock.expected, sequences.lowerBound)...sequences.upperBound)
    stock.expected = max(stock.expected, front.header.nextSequence)
    report(loss)
  }

  private mutating func report(_ loss: RepairLoss) {
    guard losses.count < Limits.verifyFindings else { return }
    losses.append(loss)
  }

  /// Notes what a damaged stretch has cost once the next good frame is known.
  private mutating func settle(_ stock: inout Stock, next: UInt64?) {
    guard let damage = stock.open else { return }
    stock.open = nil
    var loss = RepairLoss(
      file: name, offset: damage.range.lowerBound, reason: damage.reason.reason)
    guard kind == .appended else {
      // Which entries stood there shows when all others are known.
      return report(loss)
    }
    let end = next ?? (isComplete ? coverage.map { $0.upperBound + 1 } : nil) ?? stock.expected
    guard end > stock.expected else { return }
    loss.sequences = stock.expected...(end - 1)
    lost.insert(stock.expected...(end - 1))
    stock.expected = max(stock.expected, end)
    report(loss)
  }

  private mutating func finish(
    _ stock: Stock, _ reader: RepairReader
  ) throws(FileSystemError) {
    var stock = stock
    var isTorn = !isComplete
    if let open = stock.open, !isComplete {
      // Behind the last good frame of a segment that was never sealed: a torn tail, as far as
      // anybody can tell who can read it.
      if let page = reader.unreadablePage(in: open.range) {
        isTorn = false
        report(
          RepairLoss(
            file: name, offset: max(page, open.range.lowerBound),
            reason: "the disk cannot read the end of the segment, and nothing tells which entries "
              + "stand there"))
      } else if try !reader.isZero(open.range) {
        notes.append(
          "\(name): \(open.range.count) bytes from offset \(open.range.lowerBound) on are no "
            + "whole frames: a torn tail, or entries that nothing else tells of")
      }
      stock.open = nil
    }
    settle(&stock, next: nil)
    present = SequenceSet(ascending: stock.good.sorted())
    lost.formUnion(SequenceSet(ascending: stock.lost.sorted()))
    if let row, row.state == .sealed, kind == .appended, stock.expected <= row.lastSequence {
      var loss = RepairLoss(file: name, offset: frameRange.upperBound, reason: "segment was cut")
      loss.sequences = stock.expected...row.lastSequence
      lost.insert(stock.expected...row.lastSequence)
      report(loss)
    }
    if !isComplete { dropOpenBatch(stock.lastBatchEnd, isTorn: isTorn) }
    if kind == .compacted { accountForSorted(stock, reader) }
    if coverage == nil, let last = present.last { coverage = min(firstSequence, last)...last }
  }

  /// The log ends with the last whole batch.
  /// - Parameter isTorn: whether nothing that was acknowledged stands behind it.
  private mutating func dropOpenBatch(_ end: UInt64, isTorn: Bool) {
    guard kind == .appended, let last = present.last, last > end else { return }
    var open = SequenceSet()
    open.insert((end + 1)...last)
    let dropped = present.intersection(open)
    present = present.subtracting(open)
    guard isTorn else {
      lost.formUnion(dropped)
      return report(
        RepairLoss(
          file: name, offset: frameRange.lowerBound, sequences: (end + 1)...last,
          reason: "the rest of the batch cannot be read"))
    }
    notes.append("\(name): the last batch was never finished and is left out")
  }

  /// In a sorted segment the locator tells which entries there were; without it only how many.
  private mutating func accountForSorted(_ stock: Stock, _ reader: RepairReader) {
    let held = footer.flatMap { reader.sequencesHeld(by: $0) }
    if let held {
      let gone = SequenceSet(ascending: held).subtracting(present)
      lost.formUnion(gone)
      if let first = gone.first, let last = gone.last {
        for i in losses.indices where losses[i].sequences == nil {
          losses[i].sequences = first...last
        }
        if losses.isEmpty {
          var loss = RepairLoss(file: name, offset: 0, reason: "entries are missing")
          loss.sequences = first...last
          report(loss)
        }
      }
      return
    }
    let total = footer?.slotCount ?? row?.entryCount
    if let total, stock.count >= total { return }
    guard stock.hasDamage || total != nil, let coverage else { return }
    // Any sequence that is not present may have been there.
    var all = SequenceSet()
    all.insert(coverage)
    lost.formUnion(all.subtracting(present))
    for i in losses.indices where losses[i].sequences == nil { losses[i].sequences = coverage }
    if losses.isEmpty {
      var loss = RepairLoss(
        file: name, offset: frameRange.upperBound, reason: "entries are missing")
      loss.sequences = coverage
      report(loss)
    }
  }
}

extension RepairLoss {
  /// Notes an entry that is lost although its head is intact.
  mutating func note(_ sequence: UInt64, key: [UInt8]) {
    sequences =
      min(
        sequences?.lowerBound ?? sequence, sequence)...max(
        sequences?.upperBound ?? sequence, sequence)
    keyCount += 1
    if keys.count < Limits.repairKeysPerLoss { keys.append(key) }
  }
}
