// SAFETY: the spans point into `heads`, which never changes and is kept by the front.

/// A frame's front, decoded: what stands between its header and its values, which is the block
/// table and the heads, a header for each entry. Immutable: caches and threads share it.
package final class DecodedFront: Sendable {
  package let header: FrameHeader
  /// Where the frame stands in its segment.
  package let offset: Int
  package let blocks: [BlockEntry]
  /// Keys and attributes of `entries` lie in it.
  private let heads: ImmutableBytes
  package let entries: [EntryHead]
  /// Whether the heads are encrypted and the key is not known, so that there are no entries.
  package let isOpaque: Bool
  private let labelSets: [[[UInt8]]]

  /// Whether any entry is a record of the engine's own, or cannot be looked at.
  package var holdsRecords: Bool { isOpaque || entries.contains { $0.kind == .record } }

  /// Decodes a frame's front.
  /// - Parameter only: which heads to decode, in ascending order; `entries` has no others. Nil for
  ///   all.
  package init(
    _ front: RawSpan, header: FrameHeader, offset: Int, codecs: FrameCodecs, only: [Int]? = nil
  ) throws(FormatError) {
    let front = try front.slice(0, header.frontLength)
    guard PlantedBug.isOn(.headsChecksumIgnored) || XXH64.hash(front) == header.headsChecksum else {
      throw FormatError("block table and heads do not match their checksum")
    }
    var reader = ByteReader(front)
    blocks = try Self.blocks(&reader, header, codecs)
    self.header = header
    self.offset = offset
    isOpaque = codecs.isOpaque
    let decoded = try Self.decode(
      try front.slice(reader.offset, front.byteCount - reader.offset), header, codecs,
      place: offset + FormatConstants.frameHeaderBytes + reader.offset,
      table: try front.slice(0, reader.offset), only: only)
    heads = ImmutableBytes(copying: decoded.text)
    entries = decoded.entries
    labelSets = decoded.labelSets
    // With some heads only, the sum of the values' lengths cannot be checked. Heads that claim more
    // would make whoever collects values ask for any amount of memory.
    guard
      only != nil || isOpaque
        || entries.reduce(0, { $0 + $1.valueLength }) == blocks.reduce(0, { $0 + $1.rawLength })
    else { throw FormatError("values and blocks differ in length") }
  }

  private static func blocks(
    _ reader: inout ByteReader, _ header: FrameHeader, _ codecs: FrameCodecs
  ) throws(FormatError) -> [BlockEntry] {
    var blocks: [BlockEntry] = []
    blocks.reserveCapacity(header.blockCount)
    var stored = header.frontLength
    for _ in 0..<header.blockCount {
      let block = try BlockEntry(&reader, tagBytes: codecs.tagBytes)
      guard block.codec != .zstdDictionary || header.usesDictionary else {
        throw FormatError("a block asks for a dictionary that the frame does not name")
      }
      guard header.isHistory || block.rawLength <= Limits.blockBytes else {
        throw FormatError("block lengths out of bounds")
      }
      stored += block.storedLength
      blocks.append(block)
    }
    guard stored == header.storedLength else {
      throw FormatError("block lengths do not add up to the frame's")
    }
    return blocks
  }

  /// Decodes the heads, which stand behind the block table; none where they are opaque.
  private static func decode(
    _ stored: RawSpan, _ header: FrameHeader, _ codecs: FrameCodecs, place: Int, table: RawSpan,
    only: [Int]?
  ) throws(FormatError) -> HeadsDecoder.Decoded {
    guard !codecs.isOpaque else { return HeadsDecoder.Decoded() }
    guard codecs.tagBytes == 0 else {
      let opened = try codecs.open(
        stored, .heads(at: place),
        authenticating: header.associatedData + [UInt8](copying: table))
      return try decode(opened.rawSpan, header, codecs, only)
    }
    return try decode(stored, header, codecs, only)
  }

  private static func decode(
    _ heads: RawSpan, _ header: FrameHeader, _ codecs: FrameCodecs, _ only: [Int]?
  ) throws(FormatError) -> HeadsDecoder.Decoded {
    guard header.entryCount > 0 else {
      guard heads.isEmpty else { throw FormatError("heads of no entries") }
      return HeadsDecoder.Decoded()
    }
    let decoder = try HeadsDecoder(heads, header: header, codecs: codecs)
    return if let only { try decoder.some(only) } else { try decoder.all() }
  }

  /// A front of heads from several frames of a segment that carry their sequences. It has no
  /// blocks, so that no value can be read through it.
  /// - Parameters:
  ///   - entries: their places are those in `heads`, their label sets those in `labelSets`.
  ///   - frame: one of the frames.
  init(
    gathering entries: [EntryHead], heads: [UInt8], labelSets: [[[UInt8]]], from frame: DecodedFront
  ) {
    header = frame.header
    offset = frame.offset
    blocks = []
    self.heads = ImmutableBytes(copying: heads)
    self.entries = entries
    isOpaque = false
    self.labelSets = labelSets
  }

  /// About how many bytes of memory the front takes.
  package var memoryBytes: Int {
    heads.count + entries.count * MemoryLayout<EntryHead>.stride + blocks.count * 24 + 256
  }

  @_lifetime(borrow self)
  package func key(of entry: EntryHead) -> RawSpan { slice(entry.keyStart, entry.keyLength) }

  /// A part of the heads' text; the decoder has checked that an entry's parts lie within them.
  @_lifetime(borrow self)
  private func slice(_ start: Int, _ count: Int) -> RawSpan {
    let bytes = unsafe UnsafeRawBufferPointer(rebasing: heads.buffer[start..<(start + count)])
    let span = unsafe RawSpan(_unsafeBytes: bytes)
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// An entry's labels, in byte order.
  package func labels(of entry: EntryHead) -> [[UInt8]] {
    entry.labelSet < 0 ? [] : labelSets[entry.labelSet]
  }

  /// An entry's encoded attributes; empty for none.
  @_lifetime(borrow self)
  package func attributeBytes(of entry: EntryHead) -> RawSpan {
    slice(entry.attributesStart, entry.attributesLength)
  }

  package func attributes(of entry: EntryHead) throws(FormatError) -> EntryAttributes {
    guard entry.attributesLength > 0 else { return EntryAttributes() }
    return try EntryAttributes(decoding: attributeBytes(of: entry))
  }

  /// Whether an entry is marked as cached data, a copy of what a server has. A touch of cached data
  /// may lack the mark; a delete never is cached data.
  package func isCached(_ entry: EntryHead) -> Bool {
    entry.attributesLength > 0 && entry.kind != .delete
      && EntryAttributes.tellCached(attributeBytes(of: entry))
  }

  /// Where each entry's value begins (block and place in it), for the locator.
  package func places() throws(FormatError) -> [ValuePlace] {
    try LocatorTable.places(lengths: entries.map(\.valueLength), blocks: blocks)
  }
}

extension DecodedFront {
  /// From the least to the greatest sequence of the entries; nil for a frame without entries. Of a
  /// frame encrypted with an unknown key (`isOpaque`) only a header of dense sequences tells them.
  package var sequences: ClosedRange<UInt64>? {
    if isOpaque, !header.hasExplicitSequences, header.entryCount > 0 {
      return header.firstSequence...(header.nextSequence - 1)
    }
    guard let first = entries.first?.sequence else { return nil }
    guard header.hasExplicitSequences else { return first...(header.nextSequence - 1) }
    let all = entries.map(\.sequence)
    return (all.min() ?? first)...(all.max() ?? first)
  }
}
