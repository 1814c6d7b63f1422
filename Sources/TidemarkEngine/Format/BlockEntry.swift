/// One value block of a frame, as its block table tells of it.
///
/// ```
///  0 u32 stored length (bits 0-14), raw length (bits 15-29), codec (bits 30-31)
///  4 u32 CRC-32C of the stored bytes
/// ```
package struct BlockEntry: Sendable, Hashable {
  package var storedLength: Int
  package var rawLength: Int
  package var checksum: UInt32
  package var codec: Codec

  package init(storedLength: Int, rawLength: Int, checksum: UInt32, codec: Codec) {
    self.storedLength = storedLength
    self.rawLength = rawLength
    self.checksum = checksum
    self.codec = codec
  }

  package func encode(into writer: inout ByteWriter) {
    writer.u32(Self.word(stored: storedLength, raw: rawLength, codec: codec))
    writer.u32(checksum)
  }

  /// Puts the entry over bytes that are there already.
  func encode(into bytes: inout MutableRawSpan, at offset: Int) {
    bytes.put(Self.word(stored: storedLength, raw: rawLength, codec: codec), at: offset)
    bytes.put(checksum, at: offset + 4)
  }

  /// What is authenticated with an encrypted block: its lengths and its codec.
  package var associatedData: [UInt8] {
    var writer = ByteWriter(capacity: 4)
    writer.u32(Self.word(stored: storedLength, raw: rawLength, codec: codec))
    return writer.bytes
  }

  /// Both lengths and the codec in one word; a block has at most 16 KiB.
  static func word(stored: Int, raw: Int, codec: Codec) -> UInt32 {
    UInt32(stored) | UInt32(raw) << 15 | UInt32(codec.rawValue) << 30
  }

  /// - Parameter tagBytes: what encryption adds to a block's length.
  package init(_ bytes: RawSpan, at offset: Int, tagBytes: Int) throws(FormatError) {
    let word = try bytes.u32(at: offset)
    storedLength = Int(word & 0x7fff)
    rawLength = Int(word >> 15 & 0x7fff)
    checksum = try bytes.u32(at: offset + 4)
    guard let codec = Codec(rawValue: UInt8(word >> 30)) else {
      throw FormatError("unknown codec of a block", isNewer: true)
    }
    self.codec = codec
    let length = storedLength - tagBytes
    guard rawLength <= Limits.blockBytes, rawLength > 0, length > 0, length <= rawLength,
      codec != .raw || length == rawLength
    else { throw FormatError("block lengths out of bounds") }
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
    var stored = header.frontLength
    for i in 0..<header.blockCount {
      let block = try BlockEntry(
        front, at: i * FormatConstants.blockEntryBytes, tagBytes: codecs.tagBytes)
      guard block.codec != .zstdDictionary || header.usesDictionary else {
        throw FormatError("a block asks for a dictionary that the frame does not name")
      }
      stored += block.storedLength
      blocks.append(block)
    }
    guard stored == header.storedLength else {
      throw FormatError("block lengths do not add up to the frame's")
    }
    let table = header.blockCount * FormatConstants.blockEntryBytes
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
