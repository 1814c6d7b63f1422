/// The 64 bytes in front of a frame: then block table, heads (entry headers) and value blocks.
///
/// ```
///  0 u32 sync word ^ salt                 32 u32 entry count
///  4 u32 CRC-32C of 8..<64, salt, offset  36 u32 block count
///  8 u32 stored length of the payload     40 u64 XXH64 of block table and heads, as stored
/// 12 u32 bytes of keys and attributes     48 u8  zero
/// 16 u64 first sequence                   49 u8  flags: 1 = of a compacted segment, heads carry
///                                                their sequences, 2 = history
/// 24 u64 durableThrough                   50 u16 dictionary: 0 none, 1 the segment's
///                                         52 u32 stored length of block table and heads
///                                         56 u64 zero
/// ```
/// The header's checksum is compared before a length is used. It covers the segment's random salt
/// and the offset, so that stale or misplaced bytes of another file or place do not match.
package struct FrameHeader: Sendable, Hashable {
  package var storedLength: Int
  /// The total length of the frame's keys and attributes before compression. A decoder refuses a
  /// frame whose keys and attributes come out longer, so that it bounds the memory for them.
  package var headsRawLength: Int
  package var firstSequence: UInt64
  /// The highest sequence known to be synced when this frame was written.
  package var durableThrough: UInt64
  package var entryCount: Int
  package var blockCount: Int
  package var headsChecksum: UInt64
  /// Whether the frame is in a compacted segment, so that heads carry their sequences.
  package var hasExplicitSequences: Bool
  /// Whether the frame holds what compaction keeps apart from the newest versions of the keys.
  package var isHistory = false
  package var usesDictionary: Bool
  /// Stored length of the block table and the heads together.
  package var frontLength: Int

  /// Bytes of header, payload and padding; the next frame begins behind them.
  package var totalLength: Int {
    let length = FormatConstants.frameHeaderBytes + storedLength
    return (length + FormatConstants.frameAlignment - 1) & ~(FormatConstants.frameAlignment - 1)
  }

  /// The sequence after the last of the frame; not for explicit sequences, which have gaps.
  package var nextSequence: UInt64 { firstSequence + UInt64(entryCount) }

  package func encoded(salt: UInt32, offset: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: FormatConstants.frameHeaderBytes)
    encode(into: &bytes, at: 0, salt: salt, offset: offset)
    return bytes
  }

  /// Writes the header over bytes of a buffer, from `start` on.
  /// - Parameter offset: where in the file the header will stand.
  func encode(into output: inout [UInt8], at start: Int, salt: UInt32, offset: Int) {
    let count = FormatConstants.frameHeaderBytes
    output.withMutableRawSpan { all in
      var header = all._mutatingExtracting(start..<(start + count))
      header.put(FormatConstants.frameSync ^ salt, at: 0)
      header.put(UInt32(storedLength), at: 8)
      header.put(UInt32(headsRawLength), at: 12)
      header.put(firstSequence, at: 16)
      header.put(durableThrough, at: 24)
      header.put(UInt32(entryCount), at: 32)
      header.put(UInt32(blockCount), at: 36)
      header.put(headsChecksum, at: 40)
      header.put(UInt8(0), at: 48)
      header.put(UInt8((hasExplicitSequences ? 1 : 0) | (isHistory ? 2 : 0)), at: 49)
      header.put(UInt16(usesDictionary ? 1 : 0), at: 50)
      header.put(UInt32(frontLength), at: 52)
      header.put(UInt64(0), at: 56)
    }
    let checksum = Self.checksum(
      output.rawSpan.extracting(start..<(start + count)), salt: salt, offset: offset)
    output.withMutableRawSpan { $0.put(checksum, at: start + 4) }
  }

  /// The data authenticated with the heads of an encrypted frame: the header but for what depends
  /// on the encrypted bytes (the heads' checksum) or their place (the first 8 bytes).
  package var associatedData: [UInt8] {
    var header = self
    header.headsChecksum = 0
    return Array(header.encoded(salt: 0, offset: 0).dropFirst(8))
  }
}

extension FrameHeader {
  /// Decodes the header that bytes begin with, and checks its checksum and all bounds.
  /// - Parameter offset: where in the file the header stands.
  package init(decoding bytes: RawSpan, salt: UInt32, offset: Int) throws(FormatError) {
    let header = try bytes.slice(0, FormatConstants.frameHeaderBytes)
    guard try header.u32(at: 0) == FormatConstants.frameSync ^ salt else {
      throw FormatError("no frame begins here")
    }
    guard try header.u32(at: 4) == Self.checksum(header, salt: salt, offset: offset) else {
      throw FormatError("frame header does not match its checksum")
    }
    storedLength = Int(try header.u32(at: 8))
    headsRawLength = Int(try header.u32(at: 12))
    firstSequence = try header.u64(at: 16)
    durableThrough = try header.u64(at: 24)
    entryCount = Int(try header.u32(at: 32))
    blockCount = Int(try header.u32(at: 36))
    headsChecksum = try header.u64(at: 40)
    let flags = try header.u8(at: 49)
    let dictionary = try header.u16(at: 50)
    guard try header.u8(at: 48) == 0, flags <= 3, dictionary <= 1, try header.u64(at: 56) == 0
    else {
      throw FormatError("unknown flags in a frame", isNewer: true)
    }
    hasExplicitSequences = flags & 1 != 0
    isHistory = flags & 2 != 0
    usesDictionary = dictionary == 1
    frontLength = Int(try header.u32(at: 52))
    guard storedLength <= Limits.framePayloadBytes, headsRawLength <= Limits.frameHeadsBytes,
      entryCount <= Limits.frameEntries, blockCount <= Limits.frameBlocks,
      firstSequence > 0, firstSequence < 1 << 48, durableThrough < 1 << 48
    else { throw FormatError("frame out of bounds") }
    guard frontLength <= storedLength,
      frontLength >= blockCount * FormatConstants.leastBlockEntryBytes,
      hasExplicitSequences || !isHistory,
      entryCount > 0 || headsRawLength == 0
    else { throw FormatError("frame lengths contradict each other") }
  }

  private static func checksum(_ header: RawSpan, salt: UInt32, offset: Int) -> UInt32 {
    let body = header.extracting(8..<FormatConstants.frameHeaderBytes)
    return CRC32C.checksum(salt, UInt64(offset), seed: CRC32C.checksum(body))
  }
}
