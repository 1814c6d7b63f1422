/// Names an attachment, a value in a file of its own beside the log, by its content.
package struct AttachmentID: Sendable, Hashable {
  /// The SHA-256 of the content.
  package var hash: [UInt8]
  /// The length of the content, in bytes.
  package var length: UInt64

  package init(hash: [UInt8], length: UInt64) {
    self.hash = hash
    self.length = length
  }

  /// The name of its file: the hash in hexadecimal digits.
  package var fileName: String { Self.text(hash) }

  /// The name in interchange files: `sha256:`, the hash in hexadecimal digits, `:`, the length.
  package var text: String { "sha256:\(fileName):\(length)" }

  /// - Parameter text: see ``text-swift.property``; anything else gives nil.
  package init?(text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == "sha256", let hash = Self.hash(ofFile: String(parts[1])),
      let length = UInt64(parts[2]), length <= UInt64(Limits.attachmentBytes)
    else { return nil }
    self.init(hash: hash, length: length)
  }

  /// The hash that a file is named after; nil for any other file.
  package static func hash(ofFile name: String) -> [UInt8]? {
    guard name.utf8.count == 2 * SHA256.byteCount else { return nil }
    return [UInt8](hexDigits: Array(name.utf8))
  }

  package static func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes.hexDigits, as: UTF8.self)
  }
}

/// The header of an attachment's file. The content follows in pieces of ``pieceBytes``, the last
/// one shorter. Behind each piece stands its checksum (u32, CRC-32C seeded with the numbers of
/// piece and file) or, in an encrypted file, the piece's tag and the salt of its nonce.
///
/// ```
///  0 u64 magic                        24 32 SHA-256 of the content
///  8 u16 major version, u16 minor     56 u64 number of the file, random
/// 12 u32 flags: bit 0 = encrypted,    64 with bit 0: 76 bytes, see FileSeal
///        bit 1 = released,            ... zeros
///        bit 2 = pieces have salts
/// 16 u64 length of the content       240 u64 of content that came in parts: when the last of
///                                        them came, in milliseconds since 1970; else 0
///                                    248 u64 XXH64 of the header with this field 0
/// ```
/// A *released* attachment has given its content up: its file ends behind the header.
package struct AttachmentHeader: Sendable, Hashable {
  private static let magic: UInt64 = 0x0a54_5441_4544_4954  // "TIDEATT\n"
  package static let byteCount = 256
  /// Bytes of content in every piece but the last.
  package static let pieceBytes = 64 << 10
  /// Where the seal begins, with the id of the user's key.
  static let keyOffset = 64
  private static let flagsOffset = 12
  private static let releasedFlag: UInt32 = 2
  private static let saltedFlag: UInt32 = 4
  private static let touchedOffset = 240
  private static let checksumOffset = 248

  package var id: AttachmentID
  /// Random, so that a piece of another file is not taken for one of this.
  package var number: UInt64
  package var isReleased = false
  /// When the last part of content that came in parts was written, in milliseconds since 1970.
  package var touched: UInt64 = 0
  package var seal: FileSeal?
  /// Whether a salt stands behind each piece of an encrypted file: earlier versions wrote none.
  private(set) var hasSalts = true

  package init(id: AttachmentID, number: UInt64) {
    self.id = id
    self.number = number
  }

  /// Bytes behind each piece.
  package var pieceOverhead: Int {
    AttachmentPieces.overhead(isEncrypted: seal != nil, hasSalts: hasSalts)
  }
  package var fileBytes: Int {
    isReleased ? Self.byteCount : Self.byteCount + Int(id.length) + pieces * pieceOverhead
  }

  var pieces: Int { (Int(id.length) + Self.pieceBytes - 1) / Self.pieceBytes }

  /// Bytes of content of a piece.
  func count(ofPiece number: Int) -> Int {
    min(Self.pieceBytes, Int(id.length) - number * Self.pieceBytes)
  }

  /// Whether the beginning of a file has the flag "released"; false for one that is too short.
  static func isReleased(_ head: [UInt8]) -> Bool {
    ((try? head.rawSpan.u32(at: flagsOffset)) ?? 0) & releasedFlag != 0
  }

  /// The header's bytes before the seal, which authenticates them.
  private func prefix(isEncrypted: Bool) -> ByteWriter {
    var writer = ByteWriter(capacity: Self.byteCount)
    writer.u64(Self.magic)
    writer.u16(FormatConstants.major)
    writer.u16(FormatConstants.minor)
    let sealFlags = FormatConstants.encryptionFeature | (hasSalts ? Self.saltedFlag : 0)
    writer.u32((isEncrypted ? sealFlags : 0) | (isReleased ? Self.releasedFlag : 0))
    writer.u64(id.length)
    writer.raw(id.hash)
    writer.u64(number)
    return writer
  }

  /// Seals the header, and with it the key of the file.
  package mutating func seal(with key: NewFileKey?) throws(FormatError) {
    guard let key else { return }
    seal = try key.seal(fileID: number, prefix: prefix(isEncrypted: true).bytes)
  }

  package func encoded() -> [UInt8] {
    var writer = prefix(isEncrypted: seal != nil)
    seal?.encode(into: &writer)
    writer.zeros(Self.byteCount - writer.count)
    writer.patch(u64: touched, at: Self.touchedOffset)
    writer.patch(u64: XXH64.hash(writer.bytes.rawSpan), at: Self.checksumOffset)
    return writer.bytes
  }

  /// Decodes a header and checks all that it says.
  package init(decoding bytes: [UInt8]) throws(FormatError) {
    guard bytes.count >= Self.byteCount else {
      throw FormatError("the file is shorter than its header")
    }
    var header = Array(bytes.prefix(Self.byteCount))
    guard try header.rawSpan.u64(at: 0) == Self.magic else {
      throw FormatError("no attachment's file")
    }
    let checksum = try header.rawSpan.u64(at: Self.checksumOffset)
    header.replaceSubrange(Self.checksumOffset..<Self.byteCount, with: repeatElement(0, count: 8))
    guard XXH64.hash(header.rawSpan) == checksum else {
      throw FormatError("the header's checksum is wrong")
    }
    guard try header.rawSpan.u16(at: 8) == FormatConstants.major else {
      throw FormatError("another version of the format")
    }
    let flags = try header.rawSpan.u32(at: Self.flagsOffset)
    let isEncrypted = flags & FormatConstants.encryptionFeature != 0
    hasSalts = flags & Self.saltedFlag != 0
    // Only encrypted pieces have salts. Any other flag means bytes that are unknown here.
    let known =
      FormatConstants.encryptionFeature | Self.releasedFlag | (isEncrypted ? Self.saltedFlag : 0)
    guard flags & ~known == 0 else { throw FormatError("unknown features") }
    let length = try header.rawSpan.u64(at: 16)
    guard length <= UInt64(Limits.attachmentBytes) else {
      throw FormatError("a length that is out of bounds")
    }
    var reader = ByteReader(header.rawSpan, at: 24)
    id = AttachmentID(hash: try reader.array(SHA256.byteCount), length: length)
    number = try reader.u64()
    touched = try header.rawSpan.u64(at: Self.touchedOffset)
    isReleased = flags & Self.releasedFlag != 0
    if isEncrypted { seal = try FileSeal(header.rawSpan, at: Self.keyOffset) }
  }

  /// The checksum of a piece that is not encrypted. Pieces are counted from 0.
  package static func checksum(of piece: RawSpan, _ index: Int, inFile file: UInt64) -> UInt32 {
    let place = CRC32C.checksum(UInt32(truncatingIfNeeded: index), file, seed: 0)
    return CRC32C.checksum(piece, seed: place)
  }
}
