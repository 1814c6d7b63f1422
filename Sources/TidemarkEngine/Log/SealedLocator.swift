/// The locator of a sealed segment, read by chunk on first touch. Looking up what was read before
/// takes no lock.
package final class SealedLocator: Sendable {
  package let footer: SegmentFooter
  private let file: any File
  private let codecs: FrameCodecs
  /// Every chunk's records, chunk n at n << `chunkShift`.
  private let memory: ReservedMemory
  private let loading = Lock(())
  private let blocks: Section
  private let slots: Section
  private let frames: Section
  private let sequences: Section

  private static let chunkShift = 14

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
  ) throws(LogReadError) {
    self.file = file
    self.codecs = codecs
    self.footer = footer
    var offset = footer.locatorOffset
    var chunk = 0
    func section(_ records: Int, _ bytes: Int) -> Section {
      let section = Section(
        firstChunk: chunk, offset: offset, records: records, recordBytes: bytes,
        tagBytes: codecs.tagBytes)
      offset += section.storedBytes
      chunk += section.chunkCount
      return section
    }
    blocks = section(footer.blockCount, LocatorLayout.blockBytes)
    slots = section(footer.slotCount, LocatorLayout.slotBytes)
    frames = section(footer.frameCount, LocatorLayout.frameBytes)
    sequences = section(footer.sequenceCount, LocatorLayout.sequenceBytes)
    // The file is as long, which bounds the address space that is reserved.
    guard offset + FormatConstants.segmentFooterBytes == length else {
      throw .format(FormatError("locator does not fill the space before the footer"))
    }
    do throws(FileSystemError) {
      memory = try ReservedMemory(
        byteCount: chunk << Self.chunkShift, chunkShift: Self.chunkShift)
    } catch { throw .system(error) }
  }

  /// Bytes of chunks held in memory.
  package var memoryBytes: Int { memory.loadedBytes }

  package func block(_ index: Int) throws(LogReadError) -> BlockRecord {
    let offset = try load(blocks, index, LocatorLayout.blockBytes)
    let memory = self.memory
    do {
      return try BlockRecord(
        memory.bytes(offset, LocatorLayout.blockBytes), at: 0, tagBytes: codecs.tagBytes)
    } catch { throw .format(error) }
  }

  package func place(ofSlot slot: Int) throws(LogReadError) -> ValuePlace {
    if slot == footer.slotCount {
      return ValuePlace(block: UInt32(footer.blockCount), position: 0)
    }
    let offset = try load(slots, slot, LocatorLayout.slotBytes)
    let memory = self.memory
    do {
      let bytes = memory.bytes(offset, LocatorLayout.slotBytes)
      return ValuePlace(block: try bytes.u32(at: 0), position: try bytes.u16(at: 4))
    } catch { throw .format(error) }
  }

  package func frame(_ index: Int) throws(LogReadError) -> FrameRecord {
    let offset = try load(frames, index, LocatorLayout.frameBytes)
    let memory = self.memory
    do {
      return try FrameRecord(memory.bytes(offset, LocatorLayout.frameBytes), at: 0)
    } catch { throw .format(error) }
  }

  /// The n-th sequence of a compacted segment in sequence order, with its slot.
  package func sequence(_ index: Int) throws(LogReadError) -> (sequence: UInt64, slot: Int) {
    let offset = try load(sequences, index, LocatorLayout.sequenceBytes)
    let memory = self.memory
    do {
      let bytes = memory.bytes(offset, LocatorLayout.sequenceBytes)
      return (footer.firstSequence + UInt64(try bytes.u32(at: 0)), Int(try bytes.u32(at: 4)))
    } catch { throw .format(error) }
  }

  /// Reads and checks every chunk.
  package func checkAll() throws(LogReadError) {
    for section in [blocks, slots, frames, sequences] {
      for chunk in 0..<section.chunkCount { try load(section, chunk: chunk) }
    }
  }

  /// Reads a record if nobody did so yet.
  /// - Parameter size: the length of the section's records, so that it is known when compiling.
  /// - Returns: where in `memory` it stands.
  @inline(__always)
  private func load(_ section: Section, _ index: Int, _ size: Int) throws(LogReadError) -> Int {
    guard index >= 0, index < section.records else {
      throw .format(FormatError("locator record out of bounds"))
    }
    let perChunk = FormatConstants.locatorChunkPayloadBytes / size
    let chunk = index / perChunk
    if !memory.isLoaded(section.firstChunk &+ chunk) { try load(section, chunk: chunk) }
    return (section.firstChunk &+ chunk) &<< Self.chunkShift &+ index % perChunk &* size
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

  private func opened(_ stored: [UInt8], chunk: Int) throws(FormatError) -> [UInt8] {
    try codecs.open(
      stored.rawSpan, .locator(at: footer.locatorOffset, chunk: chunk), authenticating: [])
  }

  private func load(_ section: Section, chunk: Int) throws(LogReadError) {
    let number = section.firstChunk + chunk
    try loading.withLock { (_) throws(LogReadError) in
      if memory.isLoaded(number) { return }
      try memory.load(number) { (target) throws(LogReadError) in
        let records = try records(section, chunk)
        target.store(copying: records.rawSpan, at: 0)
      }
    }
  }

  /// The records of a chunk, from the disk.
  private func records(_ section: Section, _ chunk: Int) throws(LogReadError) -> [UInt8] {
    let number = section.firstChunk + chunk
    let full = FormatConstants.locatorChunkPayloadBytes
    let count = min(full, section.records * section.recordBytes - chunk * full)
    let tag = codecs.tagBytes
    let offset = section.offset + chunk * (FormatConstants.locatorChunkBytes + tag)
    var bytes: [UInt8]
    do { bytes = try file.read(count + tag + 8, at: offset) } catch { throw .system(error) }
    do throws(FormatError) {
      try Self.check(
        bytes.rawSpan, count + tag,
        LocatorLayout.seed(segmentID: footer.segmentID, chunk: number))
      bytes.removeLast(8)
      if tag > 0 { bytes = try opened(bytes, chunk: number) }
      guard bytes.count == count else { throw FormatError("locator has another length") }
      return bytes
    } catch { throw .format(error) }
  }
}
