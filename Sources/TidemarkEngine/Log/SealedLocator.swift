/// The locator of a sealed segment: the index at its end that leads from a sequence to a slot (the
/// entry's place in file order), and from a slot to the frame, the block and the place of its
/// value. Read by chunks on first touch; looking up what was read before takes no lock.
package final class SealedLocator: Sendable {
  package let footer: SegmentFooter
  private let file: any File
  private let codecs: FrameCodecs
  /// Every chunk's bytes, chunk n at n << `chunkShift`.
  let memory: ReservedMemory
  /// The directory of the sequences, once all of their groups were read.
  private let directory = OnceReference<GroupDirectory>()
  private let sections: [Section]
  private let blocks: Packed
  private let values: Packed
  private let frames: Packed
  private let sequences: Packed
  /// How many times scans have searched for the slot of a sequence that lay beside the last slot.
  private let searches = Lock(0)

  private static let chunkShift = 14

  /// A part of the locator that begins with a chunk of its own.
  struct Section {
    var firstChunk: Int
    var offset: Int
    var bytes: Int

    var chunkCount: Int {
      (bytes + FormatConstants.locatorChunkPayloadBytes - 1)
        / FormatConstants.locatorChunkPayloadBytes
    }
  }

  /// A table of packed columns in two sections, see ``PackedColumns``.
  struct Packed {
    var records: Section
    var remainders: Section
    var rows: Int
    var recordBytes: Int
  }

  /// - Parameters:
  ///   - footer: the segment's, already checked.
  ///   - length: the file's length.
  package init(
    file: any File, footer: SegmentFooter, length: Int, codecs: FrameCodecs
  ) throws(LogReadError) {
    self.file = file
    self.codecs = codecs
    self.footer = footer
    var offset = footer.locatorOffset
    var chunk = 0
    var sections: [Section] = []
    for bytes in LocatorLayout.sections(footer) {
      let section = Section(firstChunk: chunk, offset: offset, bytes: bytes)
      sections.append(section)
      // Behind each chunk stand the tag of an encrypted one and the checksum.
      offset += bytes + section.chunkCount * (codecs.tagBytes + 8)
      chunk += section.chunkCount
    }
    self.sections = sections
    func table(_ section: Int, rows: Int, _ columns: Int) -> Packed {
      Packed(
        records: sections[section], remainders: sections[section + 1], rows: rows,
        recordBytes: columns * PackedColumns.recordBytes)
    }
    blocks = table(0, rows: footer.blockCount, LocatorLayout.blockColumns)
    values = table(2, rows: footer.slotCount, LocatorLayout.valueColumns)
    frames = table(4, rows: footer.frameCount, LocatorLayout.frameColumns)
    sequences = table(6, rows: footer.sequenceCount, LocatorLayout.sequenceColumns)
    // What a damaged footer claims is bounded by the file, and so is the space that is reserved.
    guard offset + FormatConstants.segmentFooterBytes == length else {
      throw .format(FormatError("locator does not fill the space before the footer"))
    }
    do throws(FileSystemError) {
      memory = try ReservedMemory(byteCount: chunk << Self.chunkShift, chunkShift: Self.chunkShift)
    } catch { throw .system(error) }
  }

  /// Bytes of chunks held in memory.
  package var memoryBytes: Int { memory.loadedBytes + (directory.object?.memoryBytes ?? 0) }

  package func frame(_ index: Int) throws(LogReadError) -> FrameRecord {
    let word = try number(frames, index, column: 0)
    let next =
      index + 1 < frames.rows
      ? try number(frames, index + 1, column: 0) >> 1 : UInt64(footer.slotCount)
    let (first, offset) = (word >> 1, try number(frames, index, column: 1))
    guard first < next, next <= UInt64(footer.slotCount),
      next - first <= UInt64(Limits.frameEntries), offset <= UInt64(UInt32.max)
    else { throw Self.contradiction }
    return FrameRecord(
      offset: UInt32(offset), firstSlot: UInt32(first), entryCount: UInt32(next - first),
      isHistory: word & 1 != 0)
  }

  /// The frame that holds a slot; nil when no frame does.
  package func frame(holdingSlot slot: Int) throws(LogReadError) -> FrameRecord? {
    let index = try rows(frames, below: (UInt64(slot) + 1) << 1) - 1
    return index < 0 ? nil : try frame(index)
  }

  /// The n-th sequence of a compacted segment in sequence order, with its slot.
  package func sequence(_ index: Int) throws(LogReadError) -> (sequence: UInt64, slot: Int) {
    let sequence = try number(sequences, index, column: 0)
    let slot = try number(sequences, index, column: 1)
    guard slot < UInt64(footer.slotCount) else { throw Self.outOfBounds }
    return (sequence, Int(slot))
  }

  /// The slot of a sequence; nil when the segment does not hold it.
  package func slot(of sequence: UInt64) throws(LogReadError) -> Int? {
    guard footer.sequenceCount > 0 else {
      guard sequence >= footer.firstSequence,
        sequence - footer.firstSequence < UInt64(footer.slotCount)
      else { return nil }
      return Int(sequence - footer.firstSequence)
    }
    let place = try sequences(below: sequence)
    guard place < footer.sequenceCount,
      try number(sequences, place, column: 0) == sequence
    else { return nil }
    return try self.sequence(place).slot
  }

  /// Notes that scans have searched for slots that lay beside the last ones.
  /// - Returns: whether these searches have cost as much as to list the sequences of all slots.
  func noteSearches(_ count: Int) -> Bool {
    searches.withLock { searches in
      searches += count
      guard searches > footer.slotCount / Self.searchCost else { return false }
      searches = 0
      return true
    }
  }

  /// A search takes as long as to list so many slots.
  private static let searchCost = 16

  /// How many of a compacted segment's sequences are below `sequence`.
  package func sequences(below sequence: UInt64) throws(LogReadError) -> Int {
    try rows(sequences, below: sequence, directory.object)
  }

  /// Where a slot's value begins in the raw values of the segment, one behind the other. The slot
  /// behind the last one gives where the last value ends.
  package func valueStart(ofSlot slot: Int) throws(LogReadError) -> UInt64 {
    guard slot == footer.slotCount else { return try number(values, slot, column: 0) }
    return blocks.rows == 0 ? 0 : try number(blocks, blocks.rows - 1, column: 0)
  }

  /// Where in the raw values of the segment a slot's value lies.
  package func valueRange(ofSlot slot: Int) throws(LogReadError) -> Range<UInt64> {
    let (start, end) =
      slot + 1 < footer.slotCount
      ? try numbers(values, from: slot, column: 0)
      : (try valueStart(ofSlot: slot), try valueStart(ofSlot: slot + 1))
    guard end >= start, end - start <= UInt64(Limits.recordBytes) else { throw Self.contradiction }
    return start..<end
  }

  /// Where a slot's value stands.
  package func location(ofSlot slot: Int, segmentID: UInt64) throws(LogReadError) -> ValueLocation {
    try location(of: try valueRange(ofSlot: slot), segmentID: segmentID)
  }

  /// The block that holds a place in the raw values.
  /// - Parameter row: where to look first: a walk meets the blocks one behind the other.
  func block(
    holding place: UInt64, near row: Int
  ) throws(LogReadError) -> (row: Int, record: BlockRecord, range: Range<UInt64>) {
    if row >= 0, row + 1 < blocks.rows {
      let (start, end) = try numbers(blocks, from: row, column: 0)
      if start <= place, place < end {
        let (record, range) = try blockAndRange(row)
        return (row, record, range)
      }
    }
    let found = try rows(blocks, below: place + 1) - 1
    let (record, range) = try blockAndRange(found)
    guard range.contains(place) else { throw Self.contradiction }
    return (found, record, range)
  }

  /// Where a value stands.
  /// - Parameter value: where it lies in the raw values, see ``valueRange(ofSlot:)``.
  package func location(
    of value: Range<UInt64>, segmentID: UInt64
  ) throws(LogReadError) -> ValueLocation {
    let (start, end) = (value.lowerBound, value.upperBound)
    var location = ValueLocation(
      segmentID: segmentID, first: .none, more: [], position: 0, length: value.count)
    guard end > start else { return location }
    var row = try rows(blocks, below: start + 1) - 1
    var (record, range) = try blockAndRange(row)
    guard range.contains(start) else { throw Self.contradiction }
    location.first = record
    location.position = Int(start - range.lowerBound)
    guard range.upperBound < end else { return location }
    // A value longer than one block has whole blocks of its own.
    while range.upperBound < end, location.more.count <= Limits.frameBlocks {
      let reached = range.upperBound
      row += 1
      (record, range) = try blockAndRange(row)
      guard range.lowerBound == reached else { throw Self.contradiction }
      location.more.append(record)
    }
    guard range.upperBound == end, location.position == 0 else { throw Self.contradiction }
    return location
  }

  package func block(_ row: Int) throws(LogReadError) -> BlockRecord {
    try blockAndRange(row).record
  }

  /// A block, and where it lies in the raw values.
  private func blockAndRange(
    _ row: Int
  ) throws(LogReadError) -> (record: BlockRecord, range: Range<UInt64>) {
    // The next row tells where a block ends; behind a frame's last block a row without one does.
    guard row >= 0, row + 1 < blocks.rows else { throw Self.outOfBounds }
    let (start, end) = try numbers(blocks, from: row, column: 0)
    let (word, nextWord) = try numbers(blocks, from: row, column: 1)
    let (offset, next) = (word >> 2, nextWord >> 2)
    guard end > start, end - start <= UInt64(Limits.historyBlockBytes), next > offset,
      next <= UInt64(UInt32.max), let codec = Codec(rawValue: UInt8(word & 3))
    else { throw Self.contradiction }
    let stored = next - offset
    let added = codecs.tagBytes + FormatConstants.blockChecksumBytes
    guard stored > UInt64(added), stored <= end - start + UInt64(added) else {
      throw Self.contradiction
    }
    let entry = BlockEntry(storedLength: Int(stored), rawLength: Int(end - start), codec: codec)
    return (BlockRecord(offset: Int(offset), entry: entry), start..<end)
  }

  static let outOfBounds = LogReadError.format(FormatError("locator record out of bounds"))
  private static let contradiction = LogReadError.format(FormatError("locator contradicts itself"))
}

extension SealedLocator {
  /// Reads and checks every chunk.
  package func checkAll() throws(LogReadError) {
    for section in sections {
      for chunk in 0..<section.chunkCount { try load(section, chunk: chunk) }
    }
  }

  /// Makes sure that the chunk of a byte was read.
  /// - Parameter byte: the byte's place in the section.
  /// - Returns: the byte's place in `memory`.
  @inline(__always)
  func load(_ section: Section, _ byte: Int) throws(LogReadError) -> Int {
    guard byte >= 0, byte < section.bytes else { throw Self.outOfBounds }
    let (chunk, rest) = byte.quotientAndRemainder(
      dividingBy: FormatConstants.locatorChunkPayloadBytes)
    if !memory.isLoaded(section.firstChunk &+ chunk) { try load(section, chunk: chunk) }
    return (section.firstChunk &+ chunk) &<< Self.chunkShift &+ rest
  }

  private func load(_ section: Section, chunk: Int) throws(LogReadError) {
    let first = section.firstChunk
    let all = first..<(first + section.chunkCount)
    try memory.load(first + chunk, in: all) { (chunks, target) throws(LogReadError) in
      try read(section, chunks, into: &target)
    }
    if first == sequences.records.firstChunk { makeDirectory() }
  }

  /// Makes the directory of the sequences once all that it needs is loaded. Look-ups do without it
  /// if it fails.
  private func makeDirectory() {
    let records = sequences.records
    let chunks = records.firstChunk..<(records.firstChunk + records.chunkCount)
    guard sequences.rows > 0, directory.object == nil, chunks.allSatisfy(memory.isLoaded) else {
      return
    }
    let groups = 0..<PackedColumns.groups(rows: sequences.rows)
    let firsts = groups.compactMap { try? group(sequences, $0, column: 0).first }
    guard firsts.count == groups.count else { return }
    _ = directory.set(GroupDirectory(firsts))
  }

  /// Reads chunks of a section, numbered in the locator, and checks them.
  private func read(
    _ section: Section, _ chunks: Range<Int>, into target: inout MutableRawSpan
  ) throws(LogReadError) {
    let full = FormatConstants.locatorChunkPayloadBytes
    let stride = FormatConstants.locatorChunkBytes + codecs.tagBytes
    let first = chunks.lowerBound - section.firstChunk
    let count = min(full * chunks.count, section.bytes - first * full)
    let stored: [UInt8]
    do {
      stored = try file.read(
        count + chunks.count * (stride - full), at: section.offset + first * stride)
    } catch { throw .system(error) }
    do throws(FormatError) {
      for chunk in chunks {
        let start = (chunk - chunks.lowerBound) * stride
        let end = min(start + stride, stored.count)
        let bytes = try checked(try stored.rawSpan.slice(start, end - start), chunk: chunk)
        guard bytes.count == min(full, section.bytes - (chunk - section.firstChunk) * full) else {
          throw FormatError("locator has another length")
        }
        target.store(copying: bytes.rawSpan, at: (chunk - chunks.lowerBound) << Self.chunkShift)
      }
    } catch { throw .format(error) }
  }

  /// The bytes of a chunk as stored, once its checksum was compared.
  private func checked(_ stored: RawSpan, chunk: Int) throws(FormatError) -> [UInt8] {
    let count = stored.byteCount - 8
    let sealed = try stored.slice(0, count)
    let seed = LocatorLayout.seed(segmentID: footer.segmentID, chunk: chunk)
    guard
      try XXH64.hash(sealed, seed: seed) == stored.u64(at: count)
        || PlantedBug.isOn(.locatorChecksumIgnored)
    else { throw FormatError("locator does not match its checksum") }
    guard codecs.tagBytes > 0 else { return [UInt8](copying: sealed) }
    return try codecs.open(
      sealed, .locator(at: footer.locatorOffset, chunk: chunk), authenticating: [])
  }
}
