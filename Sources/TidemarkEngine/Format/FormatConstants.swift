/// The numbers of the on-disk format, version 4.0. `FileFormat.md` in the documentation
/// describes the same bytes in words and tables; a change here is a change there.
package enum FormatConstants {
  /// A file of another major version is refused; a higher minor one is read.
  package static let major: UInt16 = 4
  package static let minor: UInt16 = 0
  /// Features that this version knows; a file with others in its mask is refused.
  package static let knownIncompatibleFeatures: UInt32 = encryptionFeature
  /// Incompatible: the file, or for MANIFEST some file that it lists, is encrypted.
  package static let encryptionFeature: UInt32 = 1
  /// Features without which a file may be read but not written.
  package static let knownReadOnlyFeatures: UInt32 = 0

  package static let segmentMagic: UInt64 = 0x0a47_4553_4544_4954  // "TIDESEG\n"
  package static let footerMagic: UInt64 = 0x0a43_4f4c_4544_4954  // "TIDELOC\n"
  package static let manifestMagic: UInt64 = 0x0a4e_414d_4544_4954  // "TIDEMAN\n"

  package static let segmentHeaderPageBytes = 4096
  /// Two copies of the header page. Frames begin here, or behind the segment's dictionary.
  package static let segmentHeaderBytes = 8192
  package static let frameHeaderBytes = 64
  package static let frameAlignment = 8
  package static let frameSync: UInt32 = 0x4d41_5246  // "FRAM"
  /// The shortest row of a block table.
  package static let leastBlockEntryBytes = 2
  /// The checksum behind a value block.
  package static let blockChecksumBytes = 4
  package static let segmentFooterBytes = 128

  /// Payload of a chunk of a locator (a segment's table of where entries stand): a multiple of the
  /// sizes of records, so that none crosses a chunk.
  package static let locatorChunkPayloadBytes = 16_320
  /// A locator chunk with its checksum behind it.
  package static let locatorChunkBytes = 16_328
}

/// How bytes are stored.
package enum Codec: UInt8, Sendable {
  case raw = 0
  case zstd = 1
  /// zstd with the segment's dictionary.
  case zstdDictionary = 2
}

/// The operation of an entry.
package enum EntryKind: UInt8, Sendable {
  case put = 1
  case delete = 2
  /// Renews the validity of the key's value without writing the value again.
  case touch = 3
  /// A note of the engine's own, such as how far a peer has read. In no scan, count or history.
  case record = 4
  /// Gives up a cached value (a copy of what a server has); not a delete, which is replicated.
  case evict = 5

  /// Whether the key reads as absent after this entry.
  package var removes: Bool { self == .delete || self == .evict }
}
