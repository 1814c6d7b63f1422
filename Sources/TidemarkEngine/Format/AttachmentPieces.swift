/// Codes the pieces of an attachment's file: the content, and behind it a checksum or, in encrypted
/// files, the tag and the salt of the nonce.
///
/// A nonce must never serve two contents under one key. A piece may be sealed twice with different
/// bytes (sent again, or in a copied store), so each time a new random salt goes into the nonce.
struct AttachmentPieces: Sendable {
  /// Random bytes in the nonce of a piece.
  static let saltBytes = 8

  /// Of the file.
  let number: UInt64
  /// Nil where the file is not encrypted.
  let sealer: BlockSealer?
  /// False in encrypted files of earlier versions.
  var hasSalts = true

  /// Bytes behind each piece.
  static func overhead(isEncrypted: Bool, hasSalts: Bool) -> Int {
    isEncrypted ? BlockSealer.tagBytes + (hasSalts ? saltBytes : 0) : 4
  }

  var overhead: Int { Self.overhead(isEncrypted: sealer != nil, hasSalts: hasSalts) }

  /// Where a piece begins; they are counted from 0.
  func offset(of piece: Int) -> Int {
    AttachmentHeader.byteCount + piece * (AttachmentHeader.pieceBytes + overhead)
  }

  /// Makes the stored form of a piece.
  /// - Parameter random: gives as many unpredictable bytes as it is asked for.
  func encode(_ bytes: inout [UInt8], _ piece: Int, random: (Int) -> [UInt8]) throws(FormatError) {
    guard let sealer else {
      var writer = ByteWriter(capacity: 4)
      writer.u32(AttachmentHeader.checksum(of: bytes.rawSpan, piece, inFile: number))
      return bytes += writer.bytes
    }
    let salt = hasSalts ? random(Self.saltBytes) : []
    try sealer.seal(&bytes, from: 0, try Self.nonce(piece, salt))
    bytes += salt
  }

  /// The content of a piece, if it is as it was written.
  /// - Parameter stored: a whole piece, with what stands behind it.
  func decode(_ stored: [UInt8], _ piece: Int) throws(FormatError) -> [UInt8] {
    let count = stored.count - overhead
    guard count >= 0 else { throw FormatError("a piece is cut short") }
    guard let sealer else {
      let content = stored.rawSpan.extracting(0..<count)
      let checksum = AttachmentHeader.checksum(of: content, piece, inFile: number)
      guard try stored.rawSpan.u32(at: count) == checksum else {
        throw FormatError("a piece's checksum is wrong")
      }
      return Array(stored.prefix(count))
    }
    let end = count + BlockSealer.tagBytes
    return try sealer.open(
      stored.rawSpan.extracting(0..<end), try Self.nonce(piece, Array(stored[end...])))
  }

  private static func nonce(_ piece: Int, _ salt: [UInt8]) throws(FormatError) -> BlockSealer.Nonce
  {
    // Kind 6 tells pieces from all other sealed parts of files, see `BlockSealer.Nonce.block(at:)`.
    guard !salt.isEmpty else { return BlockSealer.Nonce(kind: 6 << 24, place: piece) }
    // An attachment has at most 2^24 pieces, so the number fits beside the kind.
    var nonce = BlockSealer.Nonce(kind: 6 << 24 | UInt32(truncatingIfNeeded: piece), place: 0)
    nonce.place = try salt.rawSpan.u64(at: 0)
    return nonce
  }
}
