/// Compresses and decompresses what stands in frames; one for every segment, since the
/// dictionary is the segment's.
package final class FrameCodecs: Sendable {
  /// Fast enough to stand in the way of a commit.
  package static let fastLevel: Int32 = 1
  /// For compaction, which has time.
  package static let denseLevel: Int32 = 6

  package let dictionary: ZstdDictionary?
  private let contexts: ZstdContexts

  package init(contexts: ZstdContexts, dictionary: ZstdDictionary? = nil) {
    self.contexts = contexts
    self.dictionary = dictionary
  }

  /// The raw bytes of something stored.
  package func decode(
    _ bytes: RawSpan, codec: Codec, rawLength: Int
  ) throws(FormatError) -> [UInt8] {
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
    // Less than a sixteenth gained does not pay for decoding.
    guard stored > bytes.byteCount - bytes.byteCount / 16 else { return codec }
    output.removeSubrange(start...)
    output.append(copying: bytes)
    return .raw
  }
}
