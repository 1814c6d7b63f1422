/// What a segment's locator, its table of where entries stand, needs to know of a finished frame.
package struct BuiltFrame: Sendable {
  package var header: FrameHeader
  package var blocks: [BlockEntry]
  package var places: [ValuePlace]
  /// Whether any entry is a record of the engine's own.
  package var holdsRecords: Bool
}

/// A frame whose heads and blocks are compressed, and not encrypted yet.
package struct PackedFrame: Sendable {
  fileprivate var heads: [UInt8] = []
  fileprivate var usesDictionary = false
  fileprivate var blocks: [BlockEntry] = []
  fileprivate var body: [UInt8] = []
}

extension FrameBuilder {
  /// Appends the frame to `output`: header, payload and padding.
  /// - Parameters:
  ///   - offset: where in the file the frame will stand.
  ///   - level: zstd's level; nil stores raw.
  package mutating func finish(
    appendingTo output: inout [UInt8], offset: Int, salt: UInt32, durableThrough: UInt64,
    level: Int32?, codecs: FrameCodecs
  ) throws(FormatError) -> BuiltFrame {
    closeBlock()
    // A helper thread has compressed blocks while the batch was staged, see ``BlockPacker``. They
    // are of use only for the same level and without a dictionary.
    let packing = level == BlockPacker.level && codecs.dictionary == nil ? packing : nil
    // The helper may finish its last block while this thread compresses the heads below.
    try packing?.complete()
    return try finish(
      try packed(level: level, codecs: codecs, packing), appendingTo: &output, offset: offset,
      salt: salt, durableThrough: durableThrough, codecs: codecs)
  }

  /// Compresses the frame, whose last block is closed. The result does not depend on the frame's
  /// place in a file, so that frames can be compressed side by side.
  func packed(
    level: Int32?, codecs: FrameCodecs, _ packing: FramePacking? = nil
  ) throws(FormatError) -> PackedFrame {
    var frame = PackedFrame()
    var writer = ByteWriter(capacity: heads.mostBytes)
    frame.usesDictionary = try heads.encode(into: &writer, level: level, codecs: codecs)
    frame.heads = writer.bytes
    frame.blocks = try compressBlocks(into: &frame.body, level: level, codecs: codecs, packing)
    return frame
  }

  /// Appends a frame that was compressed to `output`: encrypts it and adds checksums, which depend
  /// on the frame's place.
  package func finish(
    _ packed: PackedFrame, appendingTo output: inout [UInt8], offset: Int, salt: UInt32,
    durableThrough: UInt64, codecs: FrameCodecs
  ) throws(FormatError) -> BuiltFrame {
    let start = output.count
    let blocks = packed.blocks
    let stored = blocks.reduce(0) { $0 + $1.storedLength }
    // For the first frame only: an exact reservation for each would move all bytes each time.
    if output.isEmpty {
      let front = blocks.count * 8 + packed.heads.count + codecs.tagBytes
      output.reserveCapacity(FormatConstants.frameHeaderBytes + front + stored + 8)
    }
    // Table and heads go straight to their place, behind room for the header.
    var writer = ByteWriter()
    swap(&writer.bytes, &output)
    writer.zeros(FormatConstants.frameHeaderBytes)
    let tableStart = writer.count
    for block in blocks { block.encode(into: &writer) }
    let headsStart = writer.count
    writer.raw(packed.heads)
    swap(&writer.bytes, &output)
    let frontLength = output.count - tableStart + codecs.tagBytes
    let usesDictionary =
      packed.usesDictionary || blocks.contains { $0.codec == .zstdDictionary }
    var header = FrameHeader(
      storedLength: frontLength + stored, headsRawLength: heads.textBytes,
      firstSequence: firstSequence, durableThrough: durableThrough, entryCount: entryCount,
      blockCount: blocks.count, headsChecksum: 0, hasExplicitSequences: hasExplicitSequences,
      isHistory: isHistory, usesDictionary: usesDictionary, frontLength: frontLength)
    if let sealer = codecs.sealer {
      // `associatedData` leaves the checksum out: that is one of the encrypted heads.
      let authenticated = header.associatedData + output[tableStart..<headsStart]
      try sealer.seal(
        &output, from: headsStart, .heads(at: offset + headsStart - start),
        authenticating: authenticated)
    }
    header.headsChecksum = XXH64.hash(output.rawSpan.extracting(tableStart..<output.count))
    // A block's place goes into its checksum and its nonce.
    try appendBlocks(
      of: packed, to: &output, at: offset + output.count - start, salt: salt,
      sealer: codecs.sealer)
    header.encode(into: &output, at: start, salt: salt, offset: offset)
    output.append(contentsOf: repeatElement(0, count: start + header.totalLength - output.count))
    return BuiltFrame(header: header, blocks: blocks, places: places, holdsRecords: holdsRecords)
  }

  /// Gives the blocks, compressed, one behind the other.
  private func compressBlocks(
    into body: inout [UInt8], level: Int32?, codecs: FrameCodecs, _ packing: FramePacking?
  ) throws(FormatError) -> [BlockEntry] {
    let added = codecs.tagBytes + FormatConstants.blockChecksumBytes
    guard let level else {
      // The values themselves, which are not copied for it.
      body = values
      return blockLengths.map {
        BlockEntry(storedLength: $0 + added, rawLength: $0, codec: .raw)
      }
    }
    var blocks: [BlockEntry] = []
    blocks.reserveCapacity(blockLengths.count)
    var start = 0
    for length in blockLengths {
      let raw = try values.rawSpan.slice(start, length)
      start += length
      let storedStart = body.count
      var codec = Codec.raw
      if let packed = packing?.fetch(blocks.count) {
        codec = packed.codec
        if codec == .raw { body.append(copying: raw) } else { body += packed.bytes }
      } else {
        codec = try codecs.encode(raw, level: level, appendingTo: &body)
      }
      blocks.append(
        BlockEntry(storedLength: body.count - storedStart + added, rawLength: length, codec: codec))
    }
    return blocks
  }

  /// Appends the blocks as they are stored: encrypted if there is a sealer, and with checksums.
  /// - Parameter offset: where in the file the first one will stand.
  private func appendBlocks(
    of packed: PackedFrame, to output: inout [UInt8], at offset: Int, salt: UInt32,
    sealer: BlockSealer?
  ) throws(FormatError) {
    let tagBytes = sealer == nil ? 0 : BlockSealer.tagBytes
    var (start, place) = (0, offset)
    for block in packed.blocks {
      let count = block.storedLength - tagBytes - FormatConstants.blockChecksumBytes
      let stored = output.count
      output.append(copying: try packed.body.rawSpan.slice(start, count))
      if let sealer {
        try sealer.seal(
          &output, from: stored, .block(at: place), authenticating: block.associatedData)
      }
      let checksum = BlockEntry.checksum(
        output.rawSpan.extracting(stored..<output.count), salt: salt, at: place)
      output.append(UInt64(checksum), bytes: FormatConstants.blockChecksumBytes)
      start += count
      place += block.storedLength
    }
  }
}

extension FrameBuilder.Entry {
  /// An entry that was read from the log, to be written again; its labels are given apart.
  package init(rewriting head: EntryHead) {
    self.init(
      kind: head.kind, endsBatch: head.endsBatch, sequence: head.sequence,
      commitTime: head.commitTime)
    previous = head.previous
    valueSequence = head.valueSequence
    created = head.created
  }
}
