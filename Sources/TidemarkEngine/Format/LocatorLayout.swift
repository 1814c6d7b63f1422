/// The records of a locator, which tells where in a segment an entry's value and head stand.
///
/// Four sections follow each other, each a run of chunks: up to 16,368 bytes of records, then
/// their XXH64 seeded with segment id and chunk number. A section without records has no chunk.
/// In an encrypted segment a chunk's records are encrypted and their tag follows them; the
/// checksum covers both.
/// ```
/// blocks     12 bytes: u32 offset in the file, u32 lengths and codec as in BlockEntry,
///                      u32 CRC-32C
/// slots       6 bytes: u32 block, u16 position in the raw block; in file order.
///                      A value ends where the next slot's begins.
/// frames     16 bytes: u32 offset in the file, u32 first slot, u32 first block, u32 entries
/// sequences   8 bytes: u32 sequence less the segment's first, u32 slot; in sequence order;
///                      compacted segments only. In others slot n is the n-th sequence.
/// ```
package enum LocatorLayout {
  package static let blockBytes = 12
  package static let slotBytes = 6
  package static let frameBytes = 16
  package static let sequenceBytes = 8

  /// Stored bytes of a section.
  /// - Parameter tagBytes: what encryption adds to a chunk.
  package static func sectionBytes(records: Int, recordBytes: Int, tagBytes: Int) -> Int {
    let payload = records * recordBytes
    let full = FormatConstants.locatorChunkPayloadBytes
    return payload + (payload + full - 1) / full * (tagBytes + 8)
  }

  /// What a chunk's checksum is seeded with.
  package static func seed(segmentID: UInt64, chunk: Int) -> UInt64 {
    segmentID &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(chunk)
  }
}

/// A block of a segment, as the locator tells of it.
package struct BlockRecord: Sendable, Hashable {
  package var offset: UInt32
  package var storedLength: UInt32
  package var checksum: UInt32
  package var rawLength: UInt32
  package var codec: Codec

  /// What the frame's block table says of it.
  package var entry: BlockEntry {
    BlockEntry(
      storedLength: Int(storedLength), rawLength: Int(rawLength), checksum: checksum,
      codec: codec)
  }

  package init(offset: Int, entry: BlockEntry) {
    self.offset = UInt32(offset)
    storedLength = UInt32(entry.storedLength)
    checksum = entry.checksum
    rawLength = UInt32(entry.rawLength)
    codec = entry.codec
  }

  package func encode(into writer: inout ByteWriter) {
    writer.u32(offset)
    writer.u32(
      BlockEntry.word(stored: Int(storedLength), raw: Int(rawLength), codec: codec))
    writer.u32(checksum)
  }

  /// - Parameter tagBytes: what encryption adds to a block's length.
  package init(_ bytes: RawSpan, at position: Int, tagBytes: Int) throws(FormatError) {
    offset = try bytes.u32(at: position)
    let word = try bytes.u32(at: position + 4)
    storedLength = word & 0x7fff
    rawLength = word >> 15 & 0x7fff
    checksum = try bytes.u32(at: position + 8)
    guard let codec = Codec(rawValue: UInt8(word >> 30)), rawLength <= Limits.blockBytes,
      storedLength >= tagBytes, storedLength <= Int(rawLength) + tagBytes
    else { throw FormatError("block record out of bounds") }
    self.codec = codec
  }
}

/// A frame of a segment, as the locator tells of it.
package struct FrameRecord: Sendable, Hashable {
  package var offset: UInt32
  package var firstSlot: UInt32
  package var firstBlock: UInt32
  package var entryCount: UInt32

  package init(offset: UInt32, firstSlot: UInt32, firstBlock: UInt32, entryCount: UInt32) {
    self.offset = offset
    self.firstSlot = firstSlot
    self.firstBlock = firstBlock
    self.entryCount = entryCount
  }

  package func encode(into writer: inout ByteWriter) {
    writer.u32(offset)
    writer.u32(firstSlot)
    writer.u32(firstBlock)
    writer.u32(entryCount)
  }

  package init(_ bytes: RawSpan, at position: Int) throws(FormatError) {
    offset = try bytes.u32(at: position)
    firstSlot = try bytes.u32(at: position + 4)
    firstBlock = try bytes.u32(at: position + 8)
    entryCount = try bytes.u32(at: position + 12)
  }
}
