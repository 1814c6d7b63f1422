/// The locator of a sealed segment, read by chunk on first touch.
package final class SealedLocator: Sendable {
  package let footer: SegmentFooter
  private let file: any File
  private let chunks: Lock<[[UInt8]?]>
  private let loadedBytes = Lock<Int>(0)
  private let sections: [Section]
  private let codecs: FrameCodecs

  /// One of the four runs of records.
  private struct Section {
    var firstChunk: Int
    var offset: Int
    var records: Int
    var recordBytes: Int
    var tagBytes: Int

    var chunkCount: Int {
      (records * recordBytes + FormatConstants.locatorChunkPayloadBytes - 1)
        / FormatConstants.locatorChunkPayloadBytes
    }
    var storedBytes: Int {
      LocatorLayout.sectionBytes(
        records: records, recordBytes: recordBytes, tagBytes: tagBytes)
    }
  }

  /// - Parameters:
  ///   - file: the segment's file.
  ///   - footer: its footer, already checked.
  ///   - length: the file's length.
  ///   - codecs: the segment's, which decrypt the locator where that is encrypted.
  package init(
    file: any File, footer: SegmentFooter, length: Int, codecs: FrameCodecs
  ) throws(FormatError) {
    self.file = file
    self.codecs = codecs
    self.footer = footer
    var sections: [Section] = []
    var offset = footer.locatorOffset
    var chunk = 0
    for (records, bytes) in [
      (footer.blockCount, LocatorLayout.blockBytes), (footer.slotCount, LocatorLayout.slotBytes),
      (footer.frameCount, LocatorLayout.frameBytes),
      (footer.sequenceCount, LocatorLayout.sequenceBytes),
    ] {
      let section = Section(
        firstChunk: chunk, offset: offset, records: records, recordBytes: bytes,
        tagBytes: codecs.tagBytes)
      sections.append(section)
      offset += section.storedBytes
      chunk += section.chunkCount
    }
    guard offset + FormatConstants.segmentFooterBytes == length else {
      throw FormatError("locator does not fill the space before the footer")
    }
    self.sections = sections
    chunks = Lock(Array(repeating: nil, count: chunk))
  }

  /// Bytes of chunks held in memory.
  package var memoryBytes: Int { loadedBytes.withLock { $0 } }

  package func block(_ index: Int) throws(LogReadError) -> BlockRecord {
    try record(0, index) { (bytes, at) throws(FormatError) in
      try BlockRecord(bytes, at: at, tagBytes: codecs.tagBytes)
    }
  }

  package func place(ofSlot slot: Int) throws(LogReadError) -> ValuePlace {
    if slot == footer.slotCount {
      return ValuePlace(block: UInt32(footer.blockCount), position: 0)
    }
    return try record(1, slot) { (bytes, at) throws(FormatError) in
      ValuePlace(block: try bytes.u32(at: at), position: try bytes.u16(at: at + 4))
    }
  }

  package func frame(_ index: Int) throws(LogReadError) -> FrameRecord {
    try record(2, index) { (bytes, at) throws(FormatError) in try FrameRecord(bytes, at: at) }
  }

  /// The n-th sequence of a compacted segment in sequence order, with its slot.
  package func sequence(_ index: Int) throws(LogReadError) -> (sequence: UInt64, slot: Int) {
    try record(3, index) { (bytes, at) throws(FormatError) in
      (footer.firstSequence + UInt64(try bytes.u32(at: at)), Int(try bytes.u32(at: at + 4)))
    }
  }

  /// Reads and checks every chunk.
  package func checkAll() throws(LogReadError) {
    for (number, section) in sections.enumerated() where section.records > 0 {
      for i in 0..<section.chunkCount {
        _ = try load(section, chunk: i)
        _ = number
      }
    }
  }

  private func record<R>(
    _ number: Int, _ index: Int, _ decode: (RawSpan, Int) throws(FormatError) -> R
  ) throws(LogReadError) -> R {
    let section = sections[number]
    guard index >= 0, index < section.records else {
      throw .format(FormatError("locator record out of bounds"))
    }
    let perChunk = FormatConstants.locatorChunkPayloadBytes / section.recordBytes
    let bytes = try load(section, chunk: index / perChunk)
    do {
      return try decode(bytes.rawSpan, index % perChunk * section.recordBytes)
    } catch { throw .format(error) }
  }

  private static func check(
    _ bytes: RawSpan, _ count: Int, _ seed: UInt64
  ) throws(FormatError) {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.locatorChecksumIgnored) { return }
    #endif
    guard XXH64.hash(try bytes.slice(0, count), seed: seed) == (try bytes.u64(at: count)) else {
      throw FormatError("locator does not match its checksum")
    }
  }

  private func opened(_ stored: [UInt8], chunk: Int) throws(LogReadError) -> [UInt8] {
    do {
      return try codecs.open(
        stored.rawSpan, .locator(at: footer.locatorOffset, chunk: chunk), authenticating: [])
    } catch { throw .format(error) }
  }

  private func load(_ section: Section, chunk: Int) throws(LogReadError) -> [UInt8] {
    let number = section.firstChunk + chunk
    if let loaded = chunks.withLock({ $0[number] }) { return loaded }
    let full = FormatConstants.locatorChunkPayloadBytes
    let count = min(full, section.records * section.recordBytes - chunk * full)
    let tag = codecs.tagBytes
    let offset = section.offset + chunk * (FormatConstants.locatorChunkBytes + tag)
    var bytes: [UInt8]
    do { bytes = try file.read(count + tag + 8, at: offset) } catch { throw .system(error) }
    do throws(FormatError) {
      try Self.check(
        bytes.rawSpan, count + tag,
        LocatorLayout.seed(
          segmentID: footer.segmentID, chunk: number))
    } catch { throw .format(error) }
    bytes.removeLast(8)
    let loaded = tag == 0 ? bytes : try opened(bytes, chunk: number)
    chunks.withLock { $0[number] = loaded }
    loadedBytes.withLock { $0 += loaded.count }
    return loaded
  }
}
