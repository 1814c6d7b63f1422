package import TidemarkEngine

/// A hash of 128 bits over a key and what it holds. Both sides of a comparison by digest compute it
/// for each of their keys, and compare sums of them.
///
/// Two XXH64 hashes with seeds of their own over
/// ```
/// varint  length of the key, the key
/// varint  count of labels; per label, in byte order: varint length, bytes
/// u8      class: 0 owned, 1 cache; plus 2 with an attachment
/// 32      its SHA-256, and a varint of its length, where there is one
/// ```
/// and each of the two is the seed of another one over the value. It is not cryptographic: a writer
/// can make collisions among its own values.
package struct ContentFingerprint: Sendable, Hashable {
  package var bits: UInt128

  private static let lowSeed: UInt64 = 0x5449_4445_4d41_524b
  private static let highSeed: UInt64 = 0x4449_4745_5354_3132
  private static let keySeed: UInt64 = 0x4b45_5948_4153_4831

  /// The fingerprint of a key and what it holds.
  /// - Parameter labels: in byte order, each once.
  package init(
    key: RawSpan, value: RawSpan, labels: [[UInt8]], attachment: AttachmentID? = nil,
    isCache: Bool = false
  ) {
    var writer = ByteWriter(capacity: key.byteCount + 16)
    writer.varint(key.byteCount)
    writer.raw(key)
    writer.varint(labels.count)
    for label in labels {
      writer.blob(label)
    }
    writer.u8((isCache ? 1 : 0) | (attachment == nil ? 0 : 2))
    if let attachment {
      writer.raw(attachment.hash)
      writer.varint(attachment.length)
    }
    let head = writer.bytes.rawSpan
    let low = XXH64.hash(value, seed: XXH64.hash(head, seed: Self.lowSeed))
    let high = XXH64.hash(value, seed: XXH64.hash(head, seed: Self.highSeed))
    bits = UInt128(high) << 64 | UInt128(low)
  }

  package init(bits: UInt128) { self.bits = bits }

  /// The hash of a key, whose bytes, highest first, are the key's path in a digest.
  package static func keyHash(_ key: RawSpan) -> UInt64 { XXH64.hash(key, seed: keySeed) }
}
