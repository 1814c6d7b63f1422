/// The key of an encrypted file as the file's header holds it: encrypted (wrapped) with the user's
/// key. So a file can be read with the user's key alone, and each file has a key of its own.
///
/// ```
///  0 16  id of the user's key
/// 16 12  nonce, random
/// 28 32  the file's key, encrypted with AES-256-GCM
/// 60 16  tag; it authenticates the header's bytes before the nonce too
/// ```
package struct FileSeal: Sendable, Hashable {
  package static let byteCount = 76

  package var keyID: Encryption.KeyID
  package var nonce: [UInt8]
  /// The encrypted file key and its tag.
  package var wrapped: [UInt8]
  /// The header's bytes before the nonce, which are authenticated with the key.
  package var header: [UInt8]

  package func encode(into writer: inout ByteWriter) {
    writer.raw(keyID.bytes)
    writer.raw(nonce)
    writer.raw(wrapped)
  }
}

extension FileSeal {
  /// Decodes what stands at an offset of a header.
  package init(_ header: RawSpan, at offset: Int) throws(FormatError) {
    self.header = [UInt8](copying: try header.slice(0, offset + 16))
    var reader = ByteReader(header, at: offset)
    guard let keyID = Encryption.KeyID(try reader.array(16)) else {
      throw FormatError("an encrypted file names no key")
    }
    self.keyID = keyID
    nonce = try reader.array(BlockSealer.nonceBytes)
    wrapped = try reader.array(Encryption.keyBytes + BlockSealer.tagBytes)
  }

  /// The cipher for the file's parts, from the user's key.
  /// - Parameter key: the one that `keyID` names.
  package func sealer(key: [UInt8], fileID: UInt64) throws(FormatError) -> BlockSealer {
    let wrapper = BlockSealer(key: key, fileID: fileID)
    let fileKey: [UInt8]
    do {
      fileKey = try wrapper.opened(wrapped.rawSpan, nonce, authenticating: header)
    } catch { throw FormatError("the key in the header of an encrypted file is not authentic") }
    return BlockSealer(key: fileKey, fileID: fileID)
  }
}

/// A random key for one file about to be written, so a nonce need only be unique within the file.
package struct NewFileKey: Sendable {
  package let keyID: Encryption.KeyID
  package let nonce: [UInt8]
  private let userKey: [UInt8]
  private let fileKey: [UInt8]

  /// - Parameter random: unpredictable bytes, as many as `randomBytes`.
  package init(keyID: Encryption.KeyID, userKey: [UInt8], random: [UInt8]) {
    self.keyID = keyID
    self.userKey = userKey
    nonce = Array(random.prefix(BlockSealer.nonceBytes))
    fileKey = Array(random.dropFirst(BlockSealer.nonceBytes))
  }

  package static let randomBytes = BlockSealer.nonceBytes + Encryption.keyBytes

  package func sealer(fileID: UInt64) -> BlockSealer { BlockSealer(key: fileKey, fileID: fileID) }

  /// The seal for the file's header.
  /// - Parameter prefix: the header's bytes before the key's id.
  package func seal(fileID: UInt64, prefix: [UInt8]) throws(FormatError) -> FileSeal {
    let wrapper = BlockSealer(key: userKey, fileID: fileID)
    let header = prefix + keyID.bytes
    return FileSeal(
      keyID: keyID, nonce: nonce,
      wrapped: try wrapper.sealed(fileKey.rawSpan, nonce, authenticating: header), header: header)
  }
}

/// One nonce for each part of a file: the high byte of `kind` tells the sort of part, the rest and
/// `place` which of them. No two parts of a file may have the same nonce. Hint files make theirs
/// with the byte 5, and pieces of attachments with the byte 6.
extension BlockSealer.Nonce {
  /// A value block that stands at an offset of a segment.
  package static func block(at offset: Int) -> Self { Self(kind: 0, place: offset) }
  /// A frame's heads.
  package static func heads(at offset: Int) -> Self { Self(kind: 1 << 24, place: offset) }
  /// A chunk of the locator that begins at `offset`. A locator that was half written and cut off
  /// may have had a chunk in the same place, but none with both this number and this beginning.
  package static func locator(at offset: Int, chunk: Int) -> Self {
    Self(kind: 2 << 24 | UInt32(truncatingIfNeeded: chunk), place: offset)
  }
  /// A segment's dictionary.
  package static let dictionary = Self(kind: 3 << 24, place: 0)
  /// A chunk of a sorted run of the index.
  package static func run(chunk: Int) -> Self { Self(kind: 4 << 24, place: chunk) }
}
