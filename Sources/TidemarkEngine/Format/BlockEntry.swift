/// One value block of a frame, as its row in the frame's block table says.
///
/// ```
/// varint 4 * stored length + codec
/// varint raw length
/// ```
/// The last four stored bytes are the CRC-32C of those before, then of the segment's salt (u32) and
/// the block's offset in the file (u64): a stale or misplaced block does not match.
package struct BlockEntry: Sendable, Hashable {
  /// The bytes in the file, with the checksum and the tag of an encrypted block.
  package var storedLength: Int
  package var rawLength: Int
  package var codec: Codec
}

extension BlockEntry {
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

  /// Writes the row over bytes of a buffer.
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
    // Compression that does not make a block shorter is never stored, so a longer one is damage.
    let length = storedLength - tagBytes - FormatConstants.blockChecksumBytes
    guard rawLength > 0, length > 0, length <= rawLength, codec != .raw || length == rawLength
    else { throw FormatError("block lengths out of bounds") }
  }

  /// Compares a block with its checksum.
  /// - Parameter stored: everything that is stored of it.
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

  /// The block's bytes without the checksum, which is not compared.
  @_lifetime(copy stored)
  package func contents(_ stored: RawSpan) throws(FormatError) -> RawSpan {
    try stored.slice(0, stored.byteCount - FormatConstants.blockChecksumBytes)
  }

  /// The checksum that stands behind a block.
  package static func checksum(_ bytes: RawSpan, salt: UInt32, at offset: Int) -> UInt32 {
    CRC32C.checksum(salt, UInt64(offset), seed: CRC32C.checksum(bytes))
  }
}
