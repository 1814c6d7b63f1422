internal import TidemarkEngine

/// Reads a locator: all records, and searches by sequence. The body is the fields of a footer, as
/// far as these go, and the locator. Options: bit 1, the segment is compacted; bit 2, the footer
/// says itself where the locator begins.
enum LocatorFuzz {
  private static let salt = FrameFuzz.salt
  private static let footerFields = 116
  private static let contexts = ZstdContexts()

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    let start = FormatConstants.segmentHeaderBytes
    var bytes = [UInt8](repeating: 0, count: start)
    bytes += input.slice(footerFields, input.body.count)
    let fields = input.slice(0, footerFields)
    bytes += fields
    let rest = FormatConstants.segmentFooterBytes - fields.count
    bytes.append(contentsOf: repeatElement(0, count: rest))
    if input.repairs {
      _ = ChecksumRepair.locator(&bytes, salt: salt, locatorAt: input.flag(2) ? nil : start)
    }
    do {
      let disk = MemoryFileSystem()
      let file = try disk.open("/segment", .create)
      try file.writeFully(bytes.rawSpan, at: 0)
      let footer = try SegmentReader.footer(file, length: bytes.count, salt: salt)
      var row = Manifest.Segment(
        id: footer.segmentID, state: .sealed, kind: input.flag(1) ? .compacted : .appended,
        salt: salt, firstSequence: footer.firstSequence)
      row.lastSequence = footer.lastSequence
      row.length = bytes.count
      let segment = Segment(
        row, storeID: [], storePath: "", fileSystem: disk, contexts: contexts, keys: KeyRing(),
        file: file)
      readAll(
        try SegmentReader.locator(
          file, segment: segment, length: bytes.count, codecs: FrameCodecs(contexts: contexts)))
      try search(segment, footer)
    } catch let error as FuzzFinding {
      throw error
    } catch {}
  }

  private static func readAll(_ locator: SealedLocator) {
    let footer = locator.footer
    try? locator.checkAll()
    for index in 0...min(footer.blockCount, 4096) { _ = try? locator.block(index) }
    for index in 0...min(footer.slotCount, 4096) {
      _ = try? locator.location(ofSlot: index, segmentID: footer.segmentID)
    }
    for index in 0...min(footer.frameCount, 4096) { _ = try? locator.frame(index) }
    for index in 0...min(footer.sequenceCount, 4096) { _ = try? locator.sequence(index) }
  }

  private static func search(
    _ segment: Segment, _ footer: SegmentFooter
  ) throws(FuzzFinding) {
    _ = try? segment.frames()
    let first = footer.firstSequence
    var wanted = [0, first &- 1, footer.lastSequence, footer.lastSequence + 1, .max]
    wanted += (0..<40).map { first &+ $0 }
    for sequence in wanted {
      if let location = try? segment.locate(sequence),
        location.length < 0 || location.position < 0 || location.length > Limits.recordBytes
      {
        throw FuzzFinding("a value stands outside of any bounds")
      }
      if let (record, entry) = try? segment.frame(holding: sequence) {
        guard entry >= 0, UInt64(record.firstSlot) + UInt64(entry) <= UInt64(UInt32.max) else {
          throw FuzzFinding("an entry before the first of its frame")
        }
      }
    }
  }

  // MARK: Seeds

  static func seeds() -> [[UInt8]] {
    [seed(compacted: false, frames: 1), seed(compacted: true, frames: 3)].compactMap { $0 }
  }

  private static func seed(compacted: Bool, frames: Int) -> [UInt8]? {
    var table = LocatorTable()
    var output = [UInt8](repeating: 0, count: FormatConstants.segmentHeaderBytes)
    let codecs = FrameCodecs(contexts: contexts)
    for frame in 0..<frames {
      var builder = FrameBuilder(hasExplicitSequences: compacted, blockTarget: 64)
      var sequences: [UInt64] = []
      for number in 0..<6 {
        // Compacted segments are sorted by key, not by sequence.
        let sequence = UInt64(1 + (compacted ? (number * 5 + frame) % 6 : number) + 6 * frame)
        let entry = FrameBuilder.Entry(
          kind: .put, endsBatch: true, sequence: sequence, commitTime: 1 << 40)
        let value = [UInt8](repeating: 1, count: number * 13)
        builder.add(
          entry, key: value.rawSpan.extracting(first: 1 + number), value: value.rawSpan,
          attributes: RawSpan(), labels: { _ in [] })
        sequences.append(sequence)
      }
      let offset = output.count
      guard
        let built = try? builder.finish(
          appendingTo: &output, offset: offset, salt: salt, durableThrough: 0, level: nil,
          codecs: codecs)
      else { return nil }
      table.append(
        header: built.header, offset: offset, blocks: built.blocks, places: built.places,
        sequences: compacted ? sequences : [], holdsRecords: built.holdsRecords)
    }
    let counts = SegmentFooter(
      segmentID: 3, firstSequence: 1, lastSequence: UInt64(6 * frames),
      locatorOffset: FormatConstants.segmentHeaderBytes, chain: 9,
      latestTime: Timestamp(seconds: 1_767_225_600), rawBytes: 500, latestCommitTime: 1 << 40)
    guard let (locator, footer) = try? table.encoded(counts, sealer: nil) else { return nil }
    return [compacted ? 3 : 1] + footer.encoded(salt: salt).prefix(footerFields) + locator
  }
}
