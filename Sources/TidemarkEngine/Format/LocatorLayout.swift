/// The parts of a locator: the table at a sealed segment's end that tells where the value and the
/// head (the header) of an entry stand. An entry's *slot* is its number in file order.
/// Sections follow each other, each a run of chunks: up to 16,320 bytes, then their XXH64 seeded
/// with segment id and chunk number. A section without bytes has no chunk. In an encrypted segment
/// a chunk's bytes are encrypted and their tag follows them; the checksum covers both.
/// ```
/// blocks     two packed columns: where a block begins in the raw values of all entries;
///            4 * its offset in the file + codec. A row with codec 3 is no block (a *gap*): it
///            tells where the last block of a frame ends.
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
  /// The codec of a row that is no block but the end of a frame's last one.
  package static let gap: UInt64 = 3

  /// Bytes of the sections, in their order, without checksums and tags.
  package static func sections(_ footer: SegmentFooter) -> [Int] {
    [
      recordBytes(footer.blockCount, blockColumns), footer.blockBytes,
      recordBytes(footer.slotCount, valueColumns), footer.slotBytes,
      recordBytes(footer.frameCount, frameColumns), footer.frameBytes,
      recordBytes(footer.sequenceCount, sequenceColumns), footer.sequenceBytes,
    ]
  }

  private static func recordBytes(_ rows: Int, _ columns: Int) -> Int {
    PackedColumns.groups(rows: rows) * columns * PackedColumns.recordBytes
  }

  /// The seed of a chunk's checksum.
  package static func seed(segmentID: UInt64, chunk: Int) -> UInt64 {
    segmentID &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(chunk)
  }
}

/// Where a value block of a segment lies, as the locator tells.
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

/// Where a frame of a segment lies, as the locator tells.
package struct FrameRecord: Sendable, Hashable {
  package var offset: UInt32
  package var firstSlot: UInt32
  package var entryCount: UInt32
  /// Whether its entries are history, see ``FrameHeader/isHistory``.
  package var isHistory = false
}
