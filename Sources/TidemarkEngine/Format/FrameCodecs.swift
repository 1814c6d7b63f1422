/// Compresses and decompresses the heads and blocks of frames. Each segment has one, with the
/// dictionary and the key of the segment. The levels are zstd's.
package final class FrameCodecs: Sendable {
  /// For commits, which wait for the compression.
  package static let fastLevel: Int32 = 1
  /// For compaction, which has time.
  package static let compactionLevel: Int32 = 5
  /// For automatic compaction, whose output is often merged again: a compaction at this level takes
  /// a seventh less processor time than at `compactionLevel`, and its output 4 % more space.
  package static let automaticLevel: Int32 = 3
  /// For history (older versions) in a compaction: blocks of it are large and alike.
  package static let historyLevel: Int32 = 6
  /// For history in a compaction that is asked for least space.
  package static let denseHistoryLevel: Int32 = 19
  /// For compaction that is asked for least space, and may take several times as long.
  package static let denseLevel: Int32 = 14

  package let dictionary: ZstdDictionary?
  /// Encrypts and decrypts; nil in a segment that is not encrypted, or whose key is not known.
  package let sealer: BlockSealer?
  /// Whether the segment is encrypted and its key is not known: then only checksums can be checked.
  package let isOpaque: Bool
  /// The bytes that encryption adds to blocks, heads and the like.
  package let tagBytes: Int
  private let contexts: ZstdContexts

  package init(
    contexts: ZstdContexts, dictionary: ZstdDictionary? = nil, sealer: BlockSealer? = nil,
    isOpaque: Bool = false
  ) {
    self.contexts = contexts
    self.dictionary = dictionary
    self.sealer = sealer
    self.isOpaque = isOpaque
    tagBytes = sealer != nil || isOpaque ? BlockSealer.tagBytes : 0
  }

  /// The raw bytes of a value block, whose checksum is compared first.
  func decodeChecked(
    _ stored: RawSpan, block: BlockEntry, salt: UInt32, at offset: Int
  ) throws(FormatError) -> [UInt8] {
    if PlantedBug.isOn(.blockChecksumIgnored) {  // A bug that tests switch on.
      return try decode(try block.contents(stored), block: block, at: offset)
    }
    return try decode(try block.checked(stored, salt: salt, at: offset), block: block, at: offset)
  }

  /// The raw bytes of a value block.
  /// - Parameter bytes: as stored, without a checksum behind them.
  package func decode(
    _ bytes: RawSpan, block: BlockEntry, at offset: Int
  ) throws(FormatError) -> [UInt8] {
    guard tagBytes > 0 else {
      return try decode(bytes, codec: block.codec, rawLength: block.rawLength)
    }
    let opened = try open(bytes, .block(at: offset), authenticating: block.associatedData)
    if block.codec == .raw, opened.count == block.rawLength { return opened }
    return try decode(opened.rawSpan, codec: block.codec, rawLength: block.rawLength)
  }

  /// Decrypts something of an encrypted segment.
  package func open(
    _ bytes: RawSpan, _ nonce: BlockSealer.Nonce, authenticating more: [UInt8]
  ) throws(FormatError) -> [UInt8] {
    guard let sealer else { throw FormatError("encrypted, and the key is not known") }
    return try sealer.open(bytes, nonce, authenticating: more)
  }

  /// The raw bytes of something stored and not encrypted, or decrypted already.
  package func decode(_ bytes: RawSpan, codec: Codec, rawLength: Int) throws(FormatError) -> [UInt8]
  {
    switch codec {
    case .raw:
      guard bytes.byteCount == rawLength else { throw FormatError("raw lengths differ") }
      return [UInt8](copying: bytes)
    case .zstd, .zstdDictionary:
      if codec == .zstdDictionary, dictionary == nil {
        throw FormatError("the segment has no dictionary")
      }
      var raw: [UInt8] = []
      try contexts.withDecompressor { (context) throws(FormatError) in
        try context.decompress(
          bytes, into: &raw, rawCount: rawLength, dictionary: codec == .zstd ? nil : dictionary)
      }
      return raw
    }
  }

  /// Appends bytes to `output`, compressed where that is worth it.
  /// - Returns: how they are stored.
  package func encode(
    _ bytes: RawSpan, level: Int32, appendingTo output: inout [UInt8]
  ) throws(FormatError) -> Codec {
    let start = output.count
    let codec: Codec = dictionary == nil ? .zstd : .zstdDictionary
    let stored = try contexts.withCompressor(level: level, dictionary: dictionary) {
      (context) throws(FormatError) in try context.compress(bytes, appendingTo: &output)
    }
    // A gain of less than a sixteenth does not pay for decompressing at each read.
    guard stored > bytes.byteCount - bytes.byteCount / 16 else { return codec }
    output.removeSubrange(start...)
    output.append(copying: bytes)
    return .raw
  }
}
