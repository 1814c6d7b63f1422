/// A locator in memory: that of the active segment, and what a sealed one is written from.
package struct LocatorTable: Sendable {
  package private(set) var blocks: [BlockRecord] = []
  package private(set) var slots: [ValuePlace] = []
  package private(set) var frames: [FrameRecord] = []
  /// Sequence of every slot, in slot order; compacted segments only.
  package private(set) var sequences: [UInt64] = []

  package init() {}

  package var memoryBytes: Int {
    blocks.capacity * MemoryLayout<BlockRecord>.stride
      + slots.capacity * MemoryLayout<ValuePlace>.stride
      + frames.capacity * MemoryLayout<FrameRecord>.stride + sequences.capacity * 8
  }

  /// Adds a frame that was just built or read.
  /// - Parameters:
  ///   - header: its header.
  ///   - offset: where it stands in the file.
  ///   - blocks: its block table.
  ///   - places: where each entry's value stands, blocks counted from the frame's first.
  ///   - sequences: each entry's sequence, for compacted segments.
  package mutating func append(
    header: FrameHeader, offset: Int, blocks table: [BlockEntry], places: [ValuePlace],
    sequences more: [UInt64] = []
  ) {
    guard !places.isEmpty else { return }
    let firstBlock = UInt32(blocks.count)
    frames.append(
      FrameRecord(
        offset: UInt32(offset), firstSlot: UInt32(slots.count), firstBlock: firstBlock,
        entryCount: UInt32(places.count)))
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

  /// Adds a frame of one entry.
  /// - Parameter block: its value's; nil when it has none.
  mutating func append(single header: FrameHeader, offset: Int, block: BlockEntry?) {
    let place = ValuePlace(block: UInt32(blocks.count), position: 0)
    frames.append(
      FrameRecord(
        offset: UInt32(offset), firstSlot: UInt32(slots.count), firstBlock: place.block,
        entryCount: 1))
    if let block {
      let position = offset + FormatConstants.frameHeaderBytes + header.frontLength
      blocks.append(BlockRecord(offset: position, entry: block))
    }
    slots.append(place)
  }

  /// Stored bytes of all sections.
  /// - Parameters:
  ///   - segmentID: the segment's id.
  ///   - firstSequence: the first that the segment covers.
  ///   - offset: where in the segment the locator will stand.
  ///   - sealer: encrypts it.
  package func encoded(
    segmentID: UInt64, firstSequence: UInt64, at offset: Int, sealer: BlockSealer?
  ) throws(FormatError) -> [UInt8] {
    var output = ByteWriter()
    var chunk = 0
    var section = ByteWriter()
    func flush() throws(FormatError) {
      let payload = FormatConstants.locatorChunkPayloadBytes
      var start = 0
      while start < section.count {
        let count = min(payload, section.count - start)
        let stored = output.count
        output.raw(section.bytes.rawSpan.extracting(start..<(start + count)))
        try sealer?.seal(&output.bytes, from: stored, .locator(at: offset, chunk: chunk))
        let sum = XXH64.hash(
          output.bytes.rawSpan.extracting(stored..<output.count),
          seed: LocatorLayout.seed(segmentID: segmentID, chunk: chunk))
        output.u64(sum)
        chunk += 1
        start += count
      }
      section = ByteWriter()
    }
    for block in blocks { block.encode(into: &section) }
    try flush()
    for slot in slots {
      section.u32(slot.block)
      section.u16(slot.position)
    }
    try flush()
    for frame in frames { frame.encode(into: &section) }
    try flush()
    let order = sequences.indices.sorted { sequences[$0] < sequences[$1] }
    for slot in order {
      section.u32(UInt32(sequences[slot] - firstSequence))
      section.u32(UInt32(slot))
    }
    try flush()
    return output.bytes
  }

  /// Where values stand, worked out from the heads the way the builder placed them.
  /// - Parameters:
  ///   - lengths: every entry's value length, in file order.
  ///   - blocks: the frame's block table.
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
      places.append(ValuePlace(block: UInt32(block), position: UInt16(position)))
      guard length > 0 else { continue }
      guard block < blocks.count else { throw FormatError("more values than blocks") }
      position += length
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
      // A run of blocks belongs to one value; whatever follows begins in the next block.
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
