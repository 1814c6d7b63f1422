// SAFETY: the spans point into `heads`, which never changes and is kept by the front.

/// A frame's front, decoded: what stands between its header and its values, which is the block
/// table and the heads, a header for each entry. Immutable: caches and threads share it.
package final class DecodedFront: Sendable {
  package let header: FrameHeader
  /// Where the frame stands in its segment.
  package let offset: Int
  package let blocks: [BlockEntry]
  /// Raw heads; keys and attributes of `entries` lie in it.
  private let heads: ImmutableBytes
  package let entries: [EntryHead]
  /// Whether the heads are encrypted and the key is not known, so that there are no entries.
  package let isOpaque: Bool
  private let labelSets: [[[UInt8]]]

  /// Whether any entry is a record of the engine's own, or cannot be looked at.
  package var holdsRecords: Bool { isOpaque || entries.contains { $0.kind == .record } }

  /// Decodes a frame's front.
  /// - Parameters:
  ///   - front: the stored block table and heads.
  ///   - header: the frame's header.
  ///   - offset: where the frame stands.
  ///   - codecs: the segment's.
  ///   - only: which heads to decode, in ascending order; `entries` has no others. Nil for all.
  package init(
    _ front: RawSpan, header: FrameHeader, offset: Int, codecs: FrameCodecs, only: [Int]? = nil
  ) throws(FormatError) {
    let front = try front.slice(0, header.frontLength)
    try Self.check(front, header)
    var reader = ByteReader(front)
    blocks = try Self.blocks(&reader, header, codecs)
    let raw = try Self.heads(of: front, from: reader.offset, header, at: offset, codecs)
    self.header = header
    self.offset = offset
    heads = ImmutableBytes(copying: raw)
    isOpaque = codecs.isOpaque
    guard !codecs.isOpaque else {
      entries = []
      labelSets = []
      return
    }
    // With some heads only, the sum of the values' lengths below cannot be checked.
    var decoder = try HeadsDecoder(raw.rawSpan, header: header)
    if let only {
      (entries, labelSets) = try Self.decode(only, &decoder)
      return
    }
    var entries: [EntryHead] = []
    entries.reserveCapacity(header.entryCount)
    while let entry = try decoder.next() { entries.append(entry) }
    // Heads that claim more would make whoever collects values ask for any amount of memory.
    guard decoder.valueBytes == blocks.reduce(0, { $0 + $1.rawLength }) else {
      throw FormatError("values and blocks differ in length")
    }
    self.entries = entries
    var sets: [[[UInt8]]] = []
    for set in decoder.labelSetOffsets.indices { sets.append(try decoder.labels(ofSet: set)) }
    labelSets = sets
  }

  private static func check(_ front: RawSpan, _ header: FrameHeader) throws(FormatError) {
    if PlantedBug.isOn(.headsChecksumIgnored) { return }
    guard XXH64.hash(front) == header.headsChecksum else {
      throw FormatError("block table and heads do not match their checksum")
    }
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

  /// The raw heads, which stand behind the block table; none where they are opaque.
  private static func heads(
    of front: RawSpan, from table: Int, _ header: FrameHeader, at offset: Int,
    _ codecs: FrameCodecs
  ) throws(FormatError) -> [UInt8] {
    guard !codecs.isOpaque else { return [] }
    let stored = try front.slice(table, header.frontLength - table)
    guard codecs.tagBytes > 0 else {
      return try codecs.decode(stored, codec: header.headsCodec, rawLength: header.headsRawLength)
    }
    let opened = try codecs.open(
      stored, .heads(at: offset + FormatConstants.frameHeaderBytes + table),
      authenticating: header.associatedData + [UInt8](copying: try front.slice(0, table)))
    return try codecs.decode(
      opened.rawSpan, codec: header.headsCodec, rawLength: header.headsRawLength)
  }

  /// Decodes some heads and passes over the others; sets of labels that these name are left out.
  private static func decode(
    _ wanted: [Int], _ decoder: inout HeadsDecoder
  ) throws(FormatError) -> ([EntryHead], labelSets: [[[UInt8]]]) {
    var entries: [EntryHead] = []
    var labelSets: [[[UInt8]]] = []
    var places: [Int: Int] = [:]
    var passed = 0
    for index in wanted {
      try decoder.skip(index - passed)
      guard var entry = try decoder.next() else { throw FormatError("fewer entries than said") }
      passed = index + 1
      if entry.labelSet >= 0 {
        if places[entry.labelSet] == nil {
          places[entry.labelSet] = labelSets.count
          labelSets.append(try decoder.labels(ofSet: entry.labelSet))
        }
        entry.labelSet = places[entry.labelSet] ?? -1
      }
      entries.append(entry)
    }
    return (entries, labelSets)
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

  /// A part of the raw heads; the decoder has checked that an entry's parts lie within them.
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
