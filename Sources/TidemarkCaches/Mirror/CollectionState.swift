internal import TidemarkEngine

/// The facts about the generation that a cache shows, which change in the commit that switches.
///
/// ```
/// u8      version, 1
/// u8      1 where it came with the program, else 0
/// varint  length of the collection's hash, the hash
/// varint  items
/// varint  items that could not be fetched
/// ```
package struct CollectionState: Sendable, Hashable {
  private static let version: UInt8 = 1

  /// Whether it came with the program.
  package var isPrefilled = false
  /// The hash of the collection.
  package var hash: [UInt8]
  /// How many items there are.
  package var items = 0
  /// How many of them could not be fetched.
  package var outstanding = 0

  package init(hash: [UInt8], isPrefilled: Bool = false) {
    self.hash = hash
    self.isPrefilled = isPrefilled
  }

  package var encoded: [UInt8] {
    var writer = ByteWriter(capacity: 24 + hash.count)
    writer.u8(Self.version)
    writer.u8(isPrefilled ? 1 : 0)
    writer.blob(hash)
    writer.varint(items)
    writer.varint(outstanding)
    return writer.bytes
  }

  /// - Returns: nil for bytes that are none: then the list is asked for again.
  package init?(decoding bytes: RawSpan) {
    do {
      var reader = ByteReader(bytes)
      guard try reader.u8() == Self.version else { return nil }
      isPrefilled = try reader.u8() == 1
      hash = try reader.blob(atMost: Limits.hashBytes)
      items = try reader.varint(atMost: Limits.collectionItems)
      outstanding = try reader.varint(atMost: Limits.collectionItems)
    } catch { return nil }
  }
}
