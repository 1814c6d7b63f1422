/// The last 128 bytes of a sealed segment, written when it is sealed. Before it stands the locator,
/// which tells where in the segment the head and the value of each entry are. A slot is the number
/// of an entry in file order. An entry's own time is what its writer gave it, else the commit time.
///
/// ```
///  0 u64 magic                          64 i64 latest own time, seconds
///  8 u64 segment id                     72 u32 latest own time, nanoseconds
/// 16 u64 first sequence covered         76 u32 whether there is an own time: 0 or 1
/// 24 u64 last sequence covered          80 u64 raw bytes of keys and values
/// 32 u64 where the locator begins       88 u64 latest commit time
/// 40 u32 block rows   44 u32 slots      96 u32 remainders of blocks, in bytes
/// 48 u32 frames   52 u32 sequences     100 u32 of slots   104 u32 of sequences
/// 56 u64 chained XXH64 of all          108 u32 1 if no entry is a record, 0 if not told
///        frame headers                 112 u32 remainders of frames, in bytes   116 zero
///                                      120 u64 XXH64 of 0..<120, seeded with the salt
/// ```
package struct SegmentFooter: Sendable, Hashable {
  package var segmentID: UInt64
  package var firstSequence: UInt64
  package var lastSequence: UInt64
  package var locatorOffset: Int
  /// Rows about blocks: one for each, and one more for each frame that has any.
  package var blockCount = 0
  package var slotCount = 0
  package var frameCount = 0
  /// Rows of sequence and slot: one per slot in a compacted segment; none if sequences are dense.
  package var sequenceCount = 0
  /// Bytes that the locator's sections of ``PackedColumns`` take for remainders.
  package var blockBytes = 0
  package var slotBytes = 0
  package var frameBytes = 0
  package var sequenceBytes = 0
  /// True if no entry is a record (an entry of the engine's own): a search for records then passes
  /// over the segment. False also where that is unknown.
  package var isRecordless = false
  /// Chained checksum of all frame headers; MANIFEST has it too.
  package var chain: UInt64
  package var latestTime: Timestamp?
  package var rawBytes: Int
  package var latestCommitTime: UInt64

  /// A footer without counts, which ``LocatorTable/encoded(_:sealer:)`` fills in.
  package init(
    segmentID: UInt64, firstSequence: UInt64, lastSequence: UInt64, locatorOffset: Int,
    chain: UInt64, latestTime: Timestamp?, rawBytes: Int, latestCommitTime: UInt64
  ) {
    self.segmentID = segmentID
    self.firstSequence = firstSequence
    self.lastSequence = lastSequence
    self.locatorOffset = locatorOffset
    self.chain = chain
    self.latestTime = latestTime
    self.rawBytes = rawBytes
    self.latestCommitTime = latestCommitTime
  }

  package func encoded(salt: UInt32) -> [UInt8] {
    var writer = ByteWriter(capacity: FormatConstants.segmentFooterBytes)
    writer.u64(FormatConstants.footerMagic)
    writer.u64(segmentID)
    writer.u64(firstSequence)
    writer.u64(lastSequence)
    writer.u64(UInt64(locatorOffset))
    writer.u32(UInt32(blockCount))
    writer.u32(UInt32(slotCount))
    writer.u32(UInt32(frameCount))
    writer.u32(UInt32(sequenceCount))
    writer.u64(chain)
    writer.u64(UInt64(bitPattern: latestTime?.seconds ?? 0))
    writer.u32(latestTime?.nanoseconds ?? 0)
    writer.u32(latestTime == nil ? 0 : 1)
    writer.u64(UInt64(rawBytes))
    writer.u64(latestCommitTime)
    writer.u32(UInt32(blockBytes))
    writer.u32(UInt32(slotBytes))
    writer.u32(UInt32(sequenceBytes))
    writer.u32(isRecordless ? 1 : 0)
    writer.u32(UInt32(frameBytes))
    writer.zeros(FormatConstants.segmentFooterBytes - 8 - writer.count)
    writer.u64(XXH64.hash(writer.bytes.rawSpan, seed: UInt64(salt)))
    return writer.bytes
  }

  package init(decoding bytes: RawSpan, salt: UInt32) throws(FormatError) {
    let bytes = try bytes.slice(0, FormatConstants.segmentFooterBytes)
    let end = FormatConstants.segmentFooterBytes - 8
    guard try bytes.u64(at: 0) == FormatConstants.footerMagic,
      XXH64.hash(bytes.extracting(0..<end), seed: UInt64(salt)) == (try bytes.u64(at: end))
    else { throw FormatError("segment footer does not match its checksum") }
    segmentID = try bytes.u64(at: 8)
    firstSequence = try bytes.u64(at: 16)
    lastSequence = try bytes.u64(at: 24)
    let locator = try bytes.u64(at: 32)
    blockCount = Int(try bytes.u32(at: 40))
    slotCount = Int(try bytes.u32(at: 44))
    frameCount = Int(try bytes.u32(at: 48))
    sequenceCount = Int(try bytes.u32(at: 52))
    chain = try bytes.u64(at: 56)
    let hasTime = try bytes.u32(at: 76)
    let nanoseconds = try bytes.u32(at: 72)
    latestTime =
      hasTime == 0
      ? nil : Timestamp(seconds: Int64(bitPattern: try bytes.u64(at: 64)), nanoseconds: nanoseconds)
    let raw = try bytes.u64(at: 80)
    latestCommitTime = try bytes.u64(at: 88)
    blockBytes = Int(try bytes.u32(at: 96))
    slotBytes = Int(try bytes.u32(at: 100))
    sequenceBytes = Int(try bytes.u32(at: 104))
    let recordless = try bytes.u32(at: 108)
    isRecordless = recordless == 1
    frameBytes = Int(try bytes.u32(at: 112))
    // A segment without entries ends one sequence before its first.
    guard locator < 1 << 32, raw < 1 << 48, hasTime <= 1, nanoseconds < 1_000_000_000,
      firstSequence > 0, lastSequence < 1 << 48, firstSequence <= lastSequence + 1,
      sequenceCount == 0 || sequenceCount == slotCount, recordless <= 1
    else { throw FormatError("segment footer out of bounds") }
    locatorOffset = Int(locator)
    rawBytes = Int(raw)
  }
}
