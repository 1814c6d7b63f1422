/// A locator in memory: where the value and the head of each entry of the active segment stand.
/// Sealing writes it to the file. `Segment` owns it. A *slot* is an entry's number in file order.
package struct LocatorTable: Sendable {
  package private(set) var blocks: [BlockRecord] = []
  /// Where the value of each entry stands; blocks are numbered within the segment.
  package private(set) var slots: [ValuePlace] = []
  package private(set) var frames: [FrameRecord] = []
  /// The number of the first block of each frame; that of the next frame if it has none.
  private var firstBlocks: [UInt32] = []
  /// Sequence of every slot, in slot order; compacted segments only.
  package private(set) var sequences: [UInt64] = []
  /// Whether any entry is, or may be, a record of the engine's own.
  package private(set) var holdsRecords = false

  package init() {}

  package var memoryBytes: Int {
    blocks.capacity * MemoryLayout<BlockRecord>.stride
      + slots.capacity * MemoryLayout<ValuePlace>.stride
      + frames.capacity * (MemoryLayout<FrameRecord>.stride + 4) + sequences.capacity * 8
  }

  /// Adds a frame that was just built or read.
  /// - Parameters:
  ///   - places: where each entry's value stands, blocks counted from the frame's first.
  ///   - sequences: each entry's sequence, for compacted segments.
  ///   - hasRecords: whether any entry is, or may be, a record of the engine's own.
  package mutating func append(
    header: FrameHeader, offset: Int, blocks table: [BlockEntry], places: [ValuePlace],
    sequences more: [UInt64] = [], holdsRecords hasRecords: Bool
  ) {
    if hasRecords { holdsRecords = true }
    // A frame without entries only says how far the log is synced: nothing is to be found in it.
    guard !places.isEmpty else { return }
    let firstBlock = UInt32(blocks.count)
    firstBlocks.append(firstBlock)
    frames.append(
      FrameRecord(
        offset: UInt32(offset), firstSlot: UInt32(slots.count),
        entryCount: UInt32(places.count), isHistory: header.isHistory))
    var position = offset + FormatConstants.frameHeaderBytes + header.frontLength
    for entry in table {
      blocks.append(BlockRecord(offset: position, entry: entry))
      position += entry.storedLength
    }
    for place in places {
      slots.append(ValuePlace(block: firstBlock + place.block, position: place.position))
    }
    sequences.append(contentsOf: more)
  }

  /// Adds a frame of one put or delete.
  /// - Parameter block: the block of its value; nil for an empty value or a delete.
  mutating func append(single header: FrameHeader, offset: Int, block: BlockEntry?) {
    let place = ValuePlace(block: UInt32(blocks.count), position: 0)
    frames.append(
      FrameRecord(offset: UInt32(offset), firstSlot: UInt32(slots.count), entryCount: 1))
    firstBlocks.append(place.block)
    if let block {
      let position = offset + FormatConstants.frameHeaderBytes + header.frontLength
      blocks.append(BlockRecord(offset: position, entry: block))
    }
    slots.append(place)
  }

  /// The frame that holds a slot, which must be one of the table's; nil in an empty table.
  func frame(holdingSlot slot: Int) -> FrameRecord? {
    // Every read takes this path, and an unspecialized generic search allocates.
    // Every frame has a slot at least, so frame number `slot` is the last that can hold it, and
    // does where all before have one: it is tried first.
    var (low, high) = (0, min(frames.count, slot + 1))
    if high > 0, Int(frames[high - 1].firstSlot) <= slot { low = high }
    while low < high {
      let middle = (low + high) / 2
      if Int(frames[middle].firstSlot) <= slot { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : frames[low - 1]
  }

  /// Stored bytes of all sections, and the footer completed with their lengths.
  /// - Parameter footer: the footer without the lengths of the sections.
  package func encoded(
    _ footer: SegmentFooter, sealer: BlockSealer?
  ) throws(FormatError) -> (bytes: [UInt8], footer: SegmentFooter) {
    var footer = footer
    let rows = blockRows()
    let blocks = PackedColumns.encode([rows.raw, rows.stored])
    let values = PackedColumns.encode([valueStarts(rows)])
    let frames = PackedColumns.encode([
      frames.map { UInt64($0.firstSlot) << 1 | ($0.isHistory ? 1 : 0) },
      frames.map { UInt64($0.offset) },
    ])
    let places = PackedColumns.encode(sortedSequences())
    footer.blockCount = rows.raw.count
    footer.slotCount = slots.count
    footer.frameCount = self.frames.count
    footer.sequenceCount = sequences.count
    footer.blockBytes = blocks.remainders.count
    footer.slotBytes = values.remainders.count
    footer.frameBytes = frames.remainders.count
    footer.sequenceBytes = places.remainders.count
    footer.isRecordless = !holdsRecords
    var writer = ChunkWriter(footer: footer, sealer: sealer)
    for columns in [blocks, values, frames, places] {
      try writer.add(columns.records)
      try writer.add(columns.remainders)
    }
    return (writer.output.bytes, footer)
  }

  /// All sequences in their order, and the slot of each.
  private func sortedSequences() -> [[UInt64]] {
    guard let first = sequences.min(), let last = sequences.max(),
      last - first <= UInt64(UInt32.max)
    else {
      let order = sequences.indices.sorted { sequences[$0] < sequences[$1] }
      return [order.map { sequences[$0] }, order.map { UInt64($0) }]
    }
    // Sequence and slot in one number sort several times as fast as pairs.
    let pairs = sequences.enumerated().map { ($0.element - first) << 32 | UInt64($0.offset) }
      .sorted()
    return [pairs.map { first + ($0 >> 32) }, pairs.map { $0 & 0xffff_ffff }]
  }

  private struct BlockRows {
    var raw: [UInt64] = []
    var stored: [UInt64] = []
    /// Where each block begins in the raw values; gaps have no row here.
    var starts: [UInt64] = []
    /// The length of the raw values of all blocks so far.
    var end: UInt64 = 0
  }

  /// A row for each block, and one for where the last block of each frame ends.
  private func blockRows() -> BlockRows {
    var rows = BlockRows()
    for number in frames.indices {
      let end = number + 1 < frames.count ? Int(firstBlocks[number + 1]) : blocks.count
      let first = Int(firstBlocks[number])
      guard first < end else { continue }
      for block in blocks[first..<end] {
        rows.starts.append(rows.end)
        rows.raw.append(rows.end)
        rows.stored.append(UInt64(block.offset) << 2 | UInt64(block.codec.rawValue))
        rows.end += UInt64(block.rawLength)
      }
      let last = blocks[end - 1]
      rows.raw.append(rows.end)
      rows.stored.append((UInt64(last.offset) + UInt64(last.storedLength)) << 2 | LocatorLayout.gap)
    }
    return rows
  }

  private func valueStarts(_ rows: BlockRows) -> [UInt64] {
    slots.map { place in
      let block = Int(place.block)
      return (block < rows.starts.count ? rows.starts[block] : rows.end) + UInt64(place.position)
    }
  }

  /// Where the values of a frame stand: the places are not stored, but follow from the lengths by
  /// the rules of `FrameBuilder.place`. Throws where lengths and blocks contradict each other.
  /// - Parameter lengths: every entry's value length, in file order.
  package static func places(
    lengths: [Int], blocks: [BlockEntry]
  ) throws(FormatError) -> [ValuePlace] {
    var places: [ValuePlace] = []
    places.reserveCapacity(lengths.count)
    var block = 0
    var position = 0
    for length in lengths {
      if length > 0, block < blocks.count, position == blocks[block].rawLength {
        block += 1
        position = 0
      }
      places.append(ValuePlace(block: UInt32(block), position: UInt32(position)))
      guard length > 0 else { continue }
      guard block < blocks.count else { throw FormatError("more values than blocks") }
      position += length
      // Only a value that began its block may be longer than the block, and fills several.
      let first = block
      while position > blocks[block].rawLength {
        guard places[places.count - 1].position == 0 else {
          throw FormatError("a value crosses its block")
        }
        position -= blocks[block].rawLength
        block += 1
        guard block < blocks.count else { throw FormatError("more values than blocks") }
      }
      guard block > first else { continue }
      // Blocks that a long value fills hold no other: the next value begins in the block after.
      guard position == blocks[block].rawLength else {
        throw FormatError("a value does not fill its blocks")
      }
      block += 1
      position = 0
    }
    let last = position > 0 && block < blocks.count ? block + 1 : block
    guard last == blocks.count, position == 0 || position == blocks[block].rawLength else {
      throw FormatError("values do not fill their blocks")
    }
    return places
  }
}

/// Cuts the sections of a locator into chunks, with their checksums.
private struct ChunkWriter {
  let footer: SegmentFooter
  let sealer: BlockSealer?
  var output = ByteWriter()
  var chunk = 0

  mutating func add(_ section: [UInt8]) throws(FormatError) {
    let payload = FormatConstants.locatorChunkPayloadBytes
    for start in stride(from: 0, to: section.count, by: payload) {
      let stored = output.count
      output.raw(section.rawSpan.extracting(start..<min(start + payload, section.count)))
      try sealer?.seal(
        &output.bytes, from: stored, .locator(at: footer.locatorOffset, chunk: chunk))
      let sum = XXH64.hash(
        output.bytes.rawSpan.extracting(stored..<output.count),
        seed: LocatorLayout.seed(segmentID: footer.segmentID, chunk: chunk))
      output.u64(sum)
      chunk += 1
    }
  }
}
