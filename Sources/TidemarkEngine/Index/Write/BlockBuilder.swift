/// Builds the sections that find keys of an image (a sorted run of the index) in byte order: blocks
/// of keys and slots, their offsets, and samples, which sort between groups: see ``ImageLayout``.
struct BlockBuilder {
  private var records: [UInt8] = []
  private var keys = ByteWriter(capacity: 4096)
  private var keysInBlock = 0
  private var previous: [UInt8] = []
  private var offsets: [UInt8] = []
  private var sampleOffsets = ByteWriter()
  private var samples: [UInt8] = []
  private var blocks = 0

  /// Adds a key, which sorts behind the key before it.
  mutating func add(
    _ key: RawSpan, _ slot: Slot, to writer: inout SectionWriter
  ) throws(IndexError) {
    if keysInBlock == 0 {
      appendOffset(writer.sectionBytes)
      if blocks % ImageLayout.blocksPerSample == 0 { try appendSample(before: key) }
      keys.varint(key.byteCount)
      keys.raw(key)
    } else {
      let shared = previous.rawSpan.commonPrefix(with: key)
      keys.varint(shared)
      keys.varint(key.byteCount - shared)
      keys.raw(key.extracting(droppingFirst: shared))
    }
    records.append(slot.sequence, bytes: 6)
    records.append(UInt64(slot.labelSet), bytes: 4)
    records.append(slot.size.rawValue)
    previous.removeAll(keepingCapacity: true)
    previous.append(copying: key)
    keysInBlock += 1
    if keysInBlock == ImageLayout.keysPerBlock { try flush(&writer) }
  }

  /// Ends the section of blocks and writes the sections of their offsets and of the samples.
  mutating func finish(_ keyCount: Int, _ writer: inout SectionWriter) throws(IndexError) {
    if keysInBlock > 0 { try flush(&writer) }
    // One offset more than there are blocks, and samples: where the last one ends.
    appendOffset(writer.sectionBytes)
    writer.end(.blocks, count: keyCount)
    try writer.write(.blockOffsets, offsets.rawSpan, count: blocks)
    try appendSampleOffset()
    let sampleCount = ImageLayout.samples(blocks: blocks)
    try writer.begin()
    try writer.append(sampleOffsets.bytes.rawSpan)
    try writer.append(samples.rawSpan)
    writer.end(.samples, count: sampleCount)
  }

  private mutating func flush(_ writer: inout SectionWriter) throws(IndexError) {
    try writer.append(records.rawSpan)
    try writer.append(keys.bytes.rawSpan)
    records.removeAll(keepingCapacity: true)
    keys.bytes.removeAll(keepingCapacity: true)
    keysInBlock = 0
    blocks += 1
  }

  private mutating func appendOffset(_ offset: Int) {
    offsets.append(UInt64(offset), bytes: ImageLayout.offsetBytes)
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
