/// Builds the sections that find keys of a sorted run in byte order: blocks
/// of keys and slots, their offsets, and samples, which sort between groups: see ``RunLayout``.
struct BlockBuilder {
  private var slots: [Slot] = []
  private var columns = ByteWriter(capacity: 256)
  private var keys = ByteWriter(capacity: 4096)
  private var previous: [UInt8] = []
  private var offsets: [UInt8] = []
  private var sampleOffsets = ByteWriter()
  private var samples: [UInt8] = []
  private var blocks = 0

  /// Adds a key, which sorts behind the key before it.
  mutating func add(
    _ key: RawSpan, _ slot: Slot, to writer: inout SectionWriter
  ) throws(IndexError) {
    if slots.isEmpty {
      appendOffset(writer.sectionBytes)
      if blocks % RunLayout.blocksPerSample == 0 { try appendSample(before: key) }
      keys.varint(key.byteCount)
      keys.raw(key)
    } else {
      let shared = previous.rawSpan.commonPrefix(with: key)
      keys.varint(shared)
      keys.varint(key.byteCount - shared)
      keys.raw(key.extracting(droppingFirst: shared))
    }
    slots.append(slot)
    previous.removeAll(keepingCapacity: true)
    previous.append(copying: key)
    if slots.count == RunLayout.keysPerBlock { try flush(&writer) }
  }

  /// Ends the section of blocks and writes the sections of their offsets and of the samples.
  mutating func finish(_ keyCount: Int, _ writer: inout SectionWriter) throws(IndexError) {
    if !slots.isEmpty { try flush(&writer) }
    // One offset more than there are blocks, and samples: where the last one ends.
    appendOffset(writer.sectionBytes)
    writer.end(.blocks, count: keyCount)
    try writer.write(.blockOffsets, offsets.rawSpan, count: blocks)
    try appendSampleOffset()
    let sampleCount = RunLayout.samples(blocks: blocks)
    try writer.begin()
    try writer.append(sampleOffsets.bytes.rawSpan)
    try writer.append(samples.rawSpan)
    writer.end(.samples, count: sampleCount)
  }

  private mutating func flush(_ writer: inout SectionWriter) throws(IndexError) {
    appendColumns()
    try writer.append(columns.bytes.rawSpan)
    try writer.append(keys.bytes.rawSpan)
    slots.removeAll(keepingCapacity: true)
    columns.bytes.removeAll(keepingCapacity: true)
    keys.bytes.removeAll(keepingCapacity: true)
    blocks += 1
  }

  private mutating func appendColumns() {
    var (least, most, sets) = (UInt64.max, UInt64.min, UInt32.min)
    for slot in slots {
      least = min(least, slot.sequence)
      most = max(most, slot.sequence)
      sets |= slot.labelSet
    }
    let sequenceBits = 64 - (most - least).leadingZeroBitCount
    let setBits = 32 - sets.leadingZeroBitCount
    columns.u64(least | UInt64(sequenceBits) << 48 | UInt64(setBits) << 56)
    var bits = PackedBits()
    for slot in slots { bits.add(slot.sequence - least, width: sequenceBits, to: &columns) }
    bits.finish(&columns)
    bits = PackedBits()
    for slot in slots { bits.add(UInt64(slot.labelSet), width: setBits, to: &columns) }
    bits.finish(&columns)
    for slot in slots { columns.u8(slot.size.rawValue) }
  }

  private mutating func appendOffset(_ offset: Int) {
    offsets.append(UInt64(offset), bytes: RunLayout.offsetBytes)
  }

  /// Adds the shortest prefix of `key` that sorts behind the key before it; nothing for the first.
  private mutating func appendSample(before key: RawSpan) throws(IndexError) {
    try appendSampleOffset()
    guard blocks > 0 else { return }
    // Keys ascend without repetition, so that `key` has a byte behind the shared ones.
    let shared = previous.rawSpan.commonPrefix(with: key)
    samples.append(copying: key.extracting(first: shared + 1))
  }

  private mutating func appendSampleOffset() throws(IndexError) {
    guard let offset = UInt32(exactly: samples.count) else { throw IndexError.limitExceeded }
    sampleOffsets.u32(offset)
  }
}
