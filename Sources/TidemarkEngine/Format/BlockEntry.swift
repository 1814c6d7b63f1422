/// One value block of a frame, as its block table tells of it.
///
/// ```
/// in an appended segment, 8 bytes:
///  0 u32 stored length (bits 0-14), raw length (bits 15-29), codec (bits 30-31)
///  4 u32 CRC-32C of the stored bytes
/// in a compacted segment:
///    varint 4 * stored length + codec
///    varint raw length
/// ```
/// In a compacted segment the checksum is the last four of the stored bytes, the CRC-32C of those
/// before it, then the segment's salt (u32) and the block's offset in the file (u64).
package struct BlockEntry: Sendable, Hashable {
  /// Everything that stands in the file: with tag and checksum, where they are there.
  package var storedLength: Int
  package var rawLength: Int
  /// Nil where it stands behind the block.
  package var checksum: UInt32?
  package var codec: Codec

  package init(storedLength: Int, rawLength: Int, checksum: UInt32?, codec: Codec) {
    self.storedLength = storedLength
    self.rawLength = rawLength
    self.checksum = checksum
    self.codec = codec
  }

  package func encode(into writer: inout ByteWriter) {
    guard let checksum else { return encodeLengths(into: &writer) }
    writer.u32(Self.word(stored: storedLength, raw: rawLength, codec: codec))
    writer.u32(checksum)
  }

  private func encodeLengths(into writer: inout ByteWriter) {
    writer.varint(storedLength << 2 | Int(codec.rawValue))
    writer.varint(rawLength)
  }

  /// Puts the entry over bytes that are there already.
  func encode(into bytes: inout MutableRawSpan, at offset: Int) {
    bytes.put(Self.word(stored: storedLength, raw: rawLength, codec: codec), at: offset)
    bytes.put(checksum ?? 0, at: offset + 4)
  }

  /// The data authenticated with an encrypted block: its lengths and its codec.
  package var associatedData: [UInt8] {
    var writer = ByteWriter(capacity: 8)
    if checksum == nil {
      encodeLengths(into: &writer)
    } else {
      writer.u32(Self.word(stored: storedLength, raw: rawLength, codec: codec))
    }
    return writer.bytes
  }

  /// Both lengths and the codec in one word; a block of an appended segment has at most 16 KiB.
  private static func word(stored: Int, raw: Int, codec: Codec) -> UInt32 {
    UInt32(stored) | UInt32(raw) << 15 | UInt32(codec.rawValue) << 30
  }

  /// An entry of an appended segment's block table.
  /// - Parameter tagBytes: what encryption adds to a block's length.
  package init(_ bytes: RawSpan, at offset: Int, tagBytes: Int) throws(FormatError) {
    let word = try bytes.u32(at: offset)
    storedLength = Int(word & 0x7fff)
    rawLength = Int(word >> 15 & 0x7fff)
    checksum = try bytes.u32(at: offset + 4)
    codec = try Self.codec(word >> 30)
    try check(most: Limits.blockBytes, addedBytes: tagBytes)
  }

  /// An entry of a compacted segment's block table.
  package init(_ reader: inout ByteReader, tagBytes: Int) throws(FormatError) {
    let word = try reader.varint(atMost: 8 * Limits.historyBlockBytes)
    storedLength = word >> 2
    rawLength = try reader.varint(atMost: Limits.historyBlockBytes)
    codec = try Self.codec(UInt32(word & 3))
    try check(
      most: Limits.historyBlockBytes, addedBytes: tagBytes + FormatConstants.blockChecksumBytes)
  }

  private static func codec(_ code: UInt32) throws(FormatError) -> Codec {
    guard let codec = Codec(rawValue: UInt8(code)) else {
      throw FormatError("unknown codec of a block", isNewer: true)
    }
    return codec
  }

  private func check(most: Int, addedBytes: Int) throws(FormatError) {
    let length = storedLength - addedBytes
    guard rawLength <= most, rawLength > 0, length > 0, length <= rawLength,
      codec != .raw || length == rawLength
    else { throw FormatError("block lengths out of bounds") }
  }

  /// Compares a block with its checksum.
  /// - Parameters:
  ///   - stored: everything that is stored of it.
  ///   - salt: the segment's.
  ///   - offset: where in the segment it stands.
  /// - Returns: the bytes without the checksum, where it stands behind them.
  @_lifetime(copy stored)
  package func checked(
    _ stored: RawSpan, salt: UInt32, at offset: Int
  ) throws(FormatError) -> RawSpan {
    guard stored.byteCount == storedLength else { throw Self.wrong }
    if let checksum {
      guard CRC32C.checksum(stored) == checksum else { throw Self.wrong }
      return stored
    }
    let bytes = try contents(stored)
    guard Self.checksum(bytes, salt: salt, at: offset) == (try stored.u32(at: bytes.byteCount))
    else { throw Self.wrong }
    return bytes
  }

  private static let wrong = FormatError("value block does not match its checksum")

  /// The same without a comparison.
  @_lifetime(copy stored)
  package func contents(_ stored: RawSpan) throws(FormatError) -> RawSpan {
    checksum != nil
      ? stored : try stored.slice(0, stored.byteCount - FormatConstants.blockChecksumBytes)
  }

  /// The checksum that stands behind a block of a compacted segment.
  package static func checksum(_ bytes: RawSpan, salt: UInt32, at offset: Int) -> UInt32 {
    var place = ByteWriter(capacity: 12)
    place.u32(salt)
    place.u64(UInt64(offset))
    return CRC32C.checksum(place.bytes.rawSpan, seed: CRC32C.checksum(bytes))
  }
}

/// The front of a frame, checked: its block table, and where its heads stand.
package struct FrameFront: Sendable {
  package var blocks: [BlockEntry]
  /// Raw heads.
  package var heads: [UInt8]

  /// Checks and decodes block table and heads.
  /// - Parameters:
  ///   - front: the stored bytes behind the header, `header.frontLength` of them.
  ///   - header: the frame's header.
  ///   - offset: where the frame stands.
  ///   - codecs: decrypts and decompresses the heads; where they are opaque there are none.
  package init(
    decoding front: RawSpan, header: FrameHeader, offset: Int, codecs: FrameCodecs
  ) throws(FormatError) {
    let front = try front.slice(0, header.frontLength)
    try Self.check(front, header)
    blocks = []
    blocks.reserveCapacity(header.blockCount)
    var reader = ByteReader(front)
    var stored = header.frontLength
    for _ in 0..<header.blockCount {
      let block: BlockEntry
      if header.hasExplicitSequences {
        block = try BlockEntry(&reader, tagBytes: codecs.tagBytes)
      } else {
        let start = try reader.skip(FormatConstants.blockEntryBytes)
        block = try BlockEntry(front, at: start, tagBytes: codecs.tagBytes)
      }
      guard block.codec != .zstdDictionary || header.usesDictionary else {
        throw FormatError("a block asks for a dictionary that the frame does not name")
      }
      guard header.isHistory || block.rawLength <= Limits.blockBytes else {
        throw FormatError("block lengths out of bounds")
      }
      stored += block.storedLength
      blocks.append(block)
    }
    guard stored == header.storedLength else {
      throw FormatError("block lengths do not add up to the frame's")
    }
    let table = reader.offset
    let bytes = try front.slice(table, header.frontLength - table)
    guard codecs.tagBytes > 0 else {
      heads = try codecs.decode(bytes, codec: header.headsCodec, rawLength: header.headsRawLength)
      return
    }
    heads = []
    guard !codecs.isOpaque else { return }
    let opened = try codecs.open(
      bytes, .heads(at: offset + FormatConstants.frameHeaderBytes + table),
      authenticating: header.associatedData + [UInt8](copying: try front.slice(0, table)))
    heads = try codecs.decode(
      opened.rawSpan, codec: header.headsCodec, rawLength: header.headsRawLength)
  }

  private static func check(_ front: RawSpan, _ header: FrameHeader) throws(FormatError) {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.headsChecksumIgnored) { return }
    #endif
    guard XXH64.hash(front) == header.headsChecksum else {
      throw FormatError("block table and heads do not match their checksum")
    }
  }
}
