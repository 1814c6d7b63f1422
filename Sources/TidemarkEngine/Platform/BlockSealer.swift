#if canImport(CryptoKit)
  internal import CryptoKit
#elseif Encryption
  internal import Crypto
#endif

// SAFETY: the buffers that are passed to the cipher are those of spans, which outlive the call;
// what comes back is copied into storage of the caller's, whose length is checked first.

/// Encrypts and authenticates pieces of one file, each with a nonce of its own.
///
/// AES-256-GCM, by CryptoKit on Apple's systems, elsewhere by swift-crypto where the trait
/// `Encryption` is on; without it nothing can be sealed or opened. The caller makes sure that no
/// two pieces under one key get the same nonce.
@safe
package final class BlockSealer: Sendable {
  /// The bytes that sealing adds to a piece's length: the tag behind it.
  package static let tagBytes = 16
  package static let nonceBytes = 12

  /// Tells the pieces of a file apart.
  package struct Nonce: Sendable, Hashable {
    /// The kind of piece in the highest byte; below it some kinds have a number.
    package var kind: UInt32
    /// Where the piece stands, or its number.
    package var place: UInt64

    package init(kind: UInt32, place: Int) {
      self.kind = kind
      self.place = UInt64(place)
    }

    fileprivate var bytes: [UInt8] {
      var writer = ByteWriter(capacity: BlockSealer.nonceBytes)
      writer.u32(kind)
      writer.u64(place)
      return writer.bytes
    }
  }

  /// The file's number, which is authenticated with every piece.
  package let fileID: UInt64

  #if canImport(CryptoKit) || Encryption
    private let key: SymmetricKey
  #endif

  package static var isAvailable: Bool {
    #if canImport(CryptoKit) || Encryption
      true
    #else
      false
    #endif
  }

  /// - Parameters:
  ///   - key: 32 bytes.
  ///   - fileID: the number of the file that the key is for.
  package init(key: [UInt8], fileID: UInt64) {
    self.fileID = fileID
    #if canImport(CryptoKit) || Encryption
      self.key = SymmetricKey(data: key)
    #endif
  }

  /// Encrypts what stands in an array from `start` to its end, and appends the tag.
  /// - Parameters:
  ///   - nonce: used for this piece and no other.
  ///   - more: authenticated besides the file's number.
  package func seal(
    _ bytes: inout [UInt8], from start: Int, _ nonce: Nonce, authenticating more: [UInt8] = []
  ) throws(FormatError) {
    let sealed = try sealed(
      bytes.rawSpan.extracting(start..<bytes.count), nonce.bytes,
      authenticating: associated(more))
    bytes.removeSubrange(start...)
    bytes.append(contentsOf: sealed)
  }

  /// Decrypts a piece and its tag.
  /// - Throws: when `stored`, `nonce` or `more` differs from what was sealed.
  package func open(
    _ stored: RawSpan, _ nonce: Nonce, authenticating more: [UInt8] = []
  ) throws(FormatError) -> [UInt8] {
    try opened(stored, nonce.bytes, authenticating: associated(more))
  }

  private func associated(_ more: [UInt8]) -> [UInt8] {
    var writer = ByteWriter(capacity: 8 + more.count)
    writer.u64(fileID)
    writer.raw(more)
    return writer.bytes
  }

  #if canImport(CryptoKit) || Encryption
    /// Encrypts a piece with exactly this associated data; ``seal`` adds the file's number to it.
    /// - Returns: the encrypted piece and its tag.
    package func sealed(
      _ piece: RawSpan, _ nonce: [UInt8], authenticating associated: [UInt8]
    ) throws(FormatError) -> [UInt8] {
      let key = key
      do {
        let nonce = try AES.GCM.Nonce(data: nonce)
        let box = try unsafe piece.withUnsafeBytes { bytes in
          try unsafe AES.GCM.seal(bytes, using: key, nonce: nonce, authenticating: associated)
        }
        var sealed: [UInt8] = []
        sealed.reserveCapacity(piece.byteCount + Self.tagBytes)
        sealed.append(contentsOf: box.ciphertext)
        sealed.append(contentsOf: box.tag)
        return sealed
      } catch { throw FormatError("encryption failed") }
    }

    /// Decrypts what ``sealed`` gave.
    /// - Throws: when piece, nonce or associated data are not those that were sealed.
    package func opened(
      _ stored: RawSpan, _ nonce: [UInt8], authenticating associated: [UInt8]
    ) throws(FormatError) -> [UInt8] {
      let count = stored.byteCount - Self.tagBytes
      guard count >= 0 else { throw FormatError("encrypted bytes cut short") }
      let key = key
      do {
        let nonce = try AES.GCM.Nonce(data: nonce)
        return try unsafe stored.withUnsafeBytes { bytes in
          let box = try unsafe AES.GCM.SealedBox(
            nonce: nonce, ciphertext: UnsafeRawBufferPointer(rebasing: bytes[..<count]),
            tag: UnsafeRawBufferPointer(rebasing: bytes[count...]))
          return [UInt8](try AES.GCM.open(box, using: key, authenticating: associated))
        }
      } catch { throw FormatError("encrypted bytes are not authentic") }
    }

    /// 16 bytes that name a key and tell nothing about it.
    package static func fingerprint(of key: [UInt8]) -> [UInt8] {
      let named = Array("tidemark key id".utf8) + key
      return Array(SHA256.hash(named.rawSpan).prefix(16))
    }
  #else
    package func sealed(
      _ piece: RawSpan, _ nonce: [UInt8], authenticating associated: [UInt8]
    ) throws(FormatError) -> [UInt8] { throw FormatError("this build has no encryption") }

    package func opened(
      _ stored: RawSpan, _ nonce: [UInt8], authenticating associated: [UInt8]
    ) throws(FormatError) -> [UInt8] { throw FormatError("this build has no encryption") }

    package static func fingerprint(of key: [UInt8]) -> [UInt8] { [] }
  #endif
}
