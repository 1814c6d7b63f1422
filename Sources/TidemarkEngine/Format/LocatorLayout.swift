/// The parts of a locator, which tells where in a segment an entry's value and head stand.
///
/// Sections follow each other, each a run of chunks: up to 16,320 bytes, then their XXH64 seeded
/// with segment id and chunk number. A section without bytes has no chunk. In an encrypted segment
/// a chunk's bytes are encrypted and their tag follows them; the checksum covers both.
/// ```
/// blocks     two packed columns: where a block begins in the raw values of all entries;
///            4 * its offset in the file + codec. A row with codec 3 is no block: it tells where
///            the last block of a frame ends.
/// values     a packed column, in file order: where a value begins in the raw values
/// frames     two packed columns: 2 * the first slot, and 1 more where the entries are history; the
///            offset in the file
/// sequences  two packed columns, in sequence order: sequence, slot; compacted segments only.
///            In others slot n is the n-th sequence.
/// ```
/// Packed columns take two sections, records and remainders: see ``PackedColumns``.
package enum LocatorLayout {
  package static let blockColumns = 2
  package static let valueColumns = 1
  package static let frameColumns = 2
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
    [
      recordBytes(footer.blockCount, blockColumns), footer.blockBytes,
      recordBytes(footer.slotCount, valueColumns), footer.slotBytes,
      recordBytes(footer.frameCount, frameColumns), footer.frameBytes,
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
  package var rawLength: UInt32
  package var codec: Codec

  /// The row for it in the frame's block table.
  package var entry: BlockEntry {
    BlockEntry(storedLength: Int(storedLength), rawLength: Int(rawLength), codec: codec)
  }

  package init(offset: Int, entry: BlockEntry) {
    self.offset = UInt32(offset)
    storedLength = UInt32(entry.storedLength)
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
  package var isHistory = false
}
