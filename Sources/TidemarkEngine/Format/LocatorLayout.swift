/// The parts of a locator, which tells where in a segment an entry's value and head stand.
///
/// Sections follow each other, each a run of chunks: up to 16,320 bytes, then their XXH64 seeded
/// with segment id and chunk number. A section without bytes has no chunk. In an encrypted segment
/// a chunk's bytes are encrypted and their tag follows them; the checksum covers both.
/// ```
/// blocks     two packed columns: where a block begins in the raw values of all entries;
///            4 * its offset in the file + codec. A row with codec 3 is no block: it tells where
///            the last block of a frame ends.
/// checksums  4 bytes for each of these rows: CRC-32C; appended segments only
/// values     a packed column, in file order: where a value begins in the raw values
/// frames     12 bytes: u32 offset in the file, u32 first slot, u32 entries (bits 0-30), whether
///            they are history (bit 31)
/// sequences  two packed columns, in sequence order: sequence, slot; compacted segments only.
///            In others slot n is the n-th sequence.
/// ```
/// Packed columns take two sections, records and remainders: see ``PackedColumns``.
package enum LocatorLayout {
  package static let blockColumns = 2
  package static let checksumBytes = 4
  package static let valueColumns = 1
  package static let frameBytes = 12
  package static let sequenceColumns = 2
  /// In the place of a codec: no block begins here.
  package static let gap: UInt64 = 3

  /// Stored bytes of a section.
  /// - Parameter tagBytes: what encryption adds to a chunk.
  package static func sectionBytes(_ payload: Int, tagBytes: Int) -> Int {
    let full = FormatConstants.locatorChunkPayloadBytes
    return payload + (payload + full - 1) / full * (tagBytes + 8)
  }

  /// Bytes of the sections, in their order, without checksums and tags.
  package static func sections(_ footer: SegmentFooter) -> [Int] {
    let isCompacted = footer.sequenceCount > 0
    return [
      recordBytes(footer.blockCount, blockColumns), footer.blockBytes,
      isCompacted ? 0 : footer.blockCount * checksumBytes,
      recordBytes(footer.slotCount, valueColumns), footer.slotBytes,
      footer.frameCount * frameBytes,
      recordBytes(footer.sequenceCount, sequenceColumns), footer.sequenceBytes,
    ]
  }

  /// Bytes of the records of packed columns.
  package static func recordBytes(_ rows: Int, _ columns: Int) -> Int {
    PackedColumns.groups(rows: rows) * columns * PackedColumns.recordBytes
  }

  /// The seed of a chunk's checksum.
  package static func seed(segmentID: UInt64, chunk: Int) -> UInt64 {
    segmentID &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(chunk)
  }
}

/// A block of a segment, as the locator tells of it.
package struct BlockRecord: Sendable, Hashable {
  package var offset: UInt32
  package var storedLength: UInt32
  /// Nil where it stands behind the block.
  package var checksum: UInt32?
  package var rawLength: UInt32
  package var codec: Codec

  /// The row for it in the frame's block table.
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
}

/// A frame of a segment, as the locator tells of it.
package struct FrameRecord: Sendable, Hashable {
  package var offset: UInt32
  package var firstSlot: UInt32
  package var entryCount: UInt32
  /// Whether its entries are history, see ``FrameHeader/isHistory``.
  package var isHistory: Bool

  package init(offset: UInt32, firstSlot: UInt32, entryCount: UInt32, isHistory: Bool = false) {
    self.offset = offset
    self.firstSlot = firstSlot
    self.entryCount = entryCount
    self.isHistory = isHistory
  }

  package func encode(into writer: inout ByteWriter) {
    writer.u32(offset)
    writer.u32(firstSlot)
    writer.u32(entryCount | (isHistory ? 1 << 31 : 0))
  }

  package init(_ bytes: RawSpan, at position: Int) throws(FormatError) {
    offset = try bytes.u32(at: position)
    firstSlot = try bytes.u32(at: position + 4)
    let word = try bytes.u32(at: position + 8)
    entryCount = word & ~(1 << 31)
    isHistory = word >> 31 != 0
  }
}
