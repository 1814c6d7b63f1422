/// One value block of a frame, as its block table tells of it.
///
/// ```
/// varint 4 * stored length + codec
/// varint raw length
/// ```
/// The checksum is the last four of the stored bytes: the CRC-32C of those before it, then the
/// segment's salt (u32) and the block's offset in the file (u64).
package struct BlockEntry: Sendable, Hashable {
  /// Everything that stands in the file: with the checksum, and the tag where there is one.
  package var storedLength: Int
  package var rawLength: Int
  package var codec: Codec

  package init(storedLength: Int, rawLength: Int, codec: Codec) {
    self.storedLength = storedLength
    self.rawLength = rawLength
    self.codec = codec
  }

  /// A block that is neither compressed nor encrypted.
  init(rawLength: Int) {
    self.init(
      storedLength: rawLength + FormatConstants.blockChecksumBytes, rawLength: rawLength,
      codec: .raw)
  }

  package func encode(into writer: inout ByteWriter) {
    writer.varint(word)
    writer.varint(rawLength)
  }

  /// Puts the entry over bytes that are there already.
  /// - Returns: where it ends.
  func encode(into bytes: inout MutableRawSpan, at offset: Int) -> Int {
    let end = bytes.put(varint: UInt64(word), at: offset)
    return bytes.put(varint: UInt64(rawLength), at: end)
  }

  /// The data authenticated with an encrypted block: its lengths and its codec.
  package var associatedData: [UInt8] {
    var writer = ByteWriter(capacity: 8)
    encode(into: &writer)
    return writer.bytes
  }

  private var word: Int { storedLength << 2 | Int(codec.rawValue) }

  /// - Parameter tagBytes: what encryption adds to a block's length.
  package init(_ reader: inout ByteReader, tagBytes: Int) throws(FormatError) {
    let word = try reader.varint(atMost: 8 * Limits.historyBlockBytes)
    storedLength = word >> 2
    rawLength = try reader.varint(atMost: Limits.historyBlockBytes)
    guard let codec = Codec(rawValue: UInt8(word & 3)) else {
      throw FormatError("unknown codec of a block", isNewer: true)
    }
    self.codec = codec
    let length = storedLength - tagBytes - FormatConstants.blockChecksumBytes
    guard rawLength > 0, length > 0, length <= rawLength, codec != .raw || length == rawLength
    else { throw FormatError("block lengths out of bounds") }
  }

  /// Compares a block with its checksum.
  /// - Parameters:
  ///   - stored: everything that is stored of it.
  ///   - salt: the segment's.
  ///   - offset: where in the segment it stands.
  /// - Returns: the bytes without the checksum.
  @_lifetime(copy stored)
  package func checked(
    _ stored: RawSpan, salt: UInt32, at offset: Int
  ) throws(FormatError) -> RawSpan {
    guard stored.byteCount == storedLength else { throw Self.wrong }
    let bytes = try contents(stored)
    guard Self.checksum(bytes, salt: salt, at: offset) == (try stored.u32(at: bytes.byteCount))
    else { throw Self.wrong }
    return bytes
  }

  private static let wrong = FormatError("value block does not match its checksum")

  /// The same without a comparison.
  @_lifetime(copy stored)
  package func contents(_ stored: RawSpan) throws(FormatError) -> RawSpan {
    try stored.slice(0, stored.byteCount - FormatConstants.blockChecksumBytes)
  }

  /// The checksum that stands behind a block.
  package static func checksum(_ bytes: RawSpan, salt: UInt32, at offset: Int) -> UInt32 {
    CRC32C.checksum(salt, UInt64(offset), seed: CRC32C.checksum(bytes))
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
      let block = try BlockEntry(&reader, tagBytes: codecs.tagBytes)
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
    if PlantedBug.isOn(.headsChecksumIgnored) { return }
    guard XXH64.hash(front) == header.headsChecksum else {
      throw FormatError("block table and heads do not match their checksum")
    }
  }
}
