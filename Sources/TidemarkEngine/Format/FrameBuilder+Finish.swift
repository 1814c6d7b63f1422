/// A frame's bytes, and what a locator needs to know of them.
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
  fileprivate var headsRawLength: Int
  fileprivate var headsCodec = Codec.raw
  fileprivate var blocks: [BlockEntry] = []
  fileprivate var body: [UInt8] = []

  fileprivate init(headsRawLength: Int) { self.headsRawLength = headsRawLength }
}

extension FrameBuilder {
  /// Appends the frame to `output`.
  /// - Parameters:
  ///   - output: gets header, payload and padding.
  ///   - offset: where in the file the frame will stand.
  ///   - salt: the segment's salt.
  ///   - durableThrough: the highest sequence known to be synced.
  ///   - level: zstd's level; nil stores raw.
  ///   - codecs: the segment's.
  package mutating func finish(
    appendingTo output: inout [UInt8], offset: Int, salt: UInt32, durableThrough: UInt64,
    level: Int32?, codecs: FrameCodecs
  ) throws(FormatError) -> BuiltFrame {
    closeBlock()
    // Frames with explicit sequences may be history, which the header of the raw path cannot say.
    if level == nil, codecs.tagBytes == 0, !hasExplicitSequences {
      return try finishRaw(
        appendingTo: &output, offset: offset, salt: salt, durableThrough: durableThrough)
    }
    // Blocks that a helper thread compresses while the batch is staged, see ``BlockPacker``. At
    // another level, or with a dictionary, they are left to it and compressed anew here.
    let packing = level == BlockPacker.level && codecs.dictionary == nil ? packing : nil
    // While this thread then compresses the heads, the helper finishes the block that it is at.
    try packing?.complete()
    return try finish(
      try packed(level: level, codecs: codecs, packing), appendingTo: &output, offset: offset,
      salt: salt, durableThrough: durableThrough, codecs: codecs)
  }

  /// Compresses the frame, whose last block is closed. Where in a file it will stand does not
  /// matter yet, so that frames can be compressed side by side.
  func packed(
    level: Int32?, codecs: FrameCodecs, _ packing: FramePacking? = nil
  ) throws(FormatError) -> PackedFrame {
    var raw = ByteWriter(capacity: labelSets.count + heads.count + 16)
    writeHeads(into: &raw)
    var frame = PackedFrame(headsRawLength: raw.count)
    if let level {
      frame.headsCodec = try codecs.encode(
        raw.bytes.rawSpan, level: level, appendingTo: &frame.heads)
    } else {
      frame.heads = raw.bytes
    }
    frame.blocks = try compressBlocks(into: &frame.body, level: level, codecs: codecs, packing)
    return frame
  }

  /// Writes the raw heads, see ``HeadsDecoder``.
  private func writeHeads(into writer: inout ByteWriter) {
    writer.varint(labelSetCount)
    writer.raw(labelSets.bytes)
    writer.u64(baseCommitTime)
    writer.raw(heads.bytes)
  }

  /// Appends the frame, which was compressed, to `output`; see the other form.
  package func finish(
    _ packed: PackedFrame, appendingTo output: inout [UInt8], offset: Int, salt: UInt32,
    durableThrough: UInt64, codecs: FrameCodecs
  ) throws(FormatError) -> BuiltFrame {
    var storedHeads = packed.heads
    let blocks = packed.blocks
    var front = ByteWriter(capacity: blocks.count * 8 + storedHeads.count + codecs.tagBytes)
    for block in blocks { block.encode(into: &front) }
    let tableLength = front.count
    let frontLength = tableLength + storedHeads.count + codecs.tagBytes
    let frontStart = offset + FormatConstants.frameHeaderBytes
    let usesDictionary =
      packed.headsCodec == .zstdDictionary || blocks.contains { $0.codec == .zstdDictionary }
    var header = FrameHeader(
      storedLength: blocks.reduce(frontLength) { $0 + $1.storedLength },
      headsRawLength: packed.headsRawLength,
      firstSequence: firstSequence, durableThrough: durableThrough, entryCount: entryCount,
      blockCount: blocks.count, headsChecksum: 0,
      headsCodec: packed.headsCodec, hasExplicitSequences: hasExplicitSequences,
      isHistory: isHistory,
      usesDictionary: usesDictionary, frontLength: frontLength)
    if let sealer = codecs.sealer {
      // The checksum, of the encrypted heads, is not known yet: `associatedData` leaves it out.
      try sealer.seal(
        &storedHeads, from: 0, .heads(at: frontStart + tableLength),
        authenticating: header.associatedData + front.bytes)
    }
    front.raw(storedHeads)
    header.headsChecksum = XXH64.hash(front.bytes.rawSpan)
    // Room is made once: reserved for each of many frames, it would be moved for each.
    if output.isEmpty { output.reserveCapacity(header.totalLength) }
    output.append(contentsOf: header.encoded(salt: salt, offset: offset))
    output.append(contentsOf: front.bytes)
    // Where a block stands is part of its checksum, and of what it is encrypted with.
    try appendBlocks(
      of: packed, to: &output, at: frontStart + frontLength, salt: salt, sealer: codecs.sealer)
    let padding = header.totalLength - FormatConstants.frameHeaderBytes - header.storedLength
    output.append(contentsOf: repeatElement(0, count: padding))
    return BuiltFrame(
      header: header, blocks: blocks, places: places, holdsRecords: holdsRecords)
  }

  /// The same where nothing is compressed or encrypted: every byte goes to its place at once.
  private func finishRaw(
    appendingTo output: inout [UInt8], offset: Int, salt: UInt32, durableThrough: UInt64
  ) throws(FormatError) -> BuiltFrame {
    let start = output.count
    let tableStart = start + FormatConstants.frameHeaderBytes
    let blocks = blockLengths.map { BlockEntry(rawLength: $0) }
    output.reserveCapacity(
      tableStart + rawBytes + blocks.count * (FormatConstants.blockChecksumBytes + 8) + 32)
    output.append(contentsOf: repeatElement(0, count: tableStart - start))
    var writer = ByteWriter()
    swap(&writer.bytes, &output)
    for block in blocks { block.encode(into: &writer) }
    let headsStart = writer.count
    writeHeads(into: &writer)
    swap(&writer.bytes, &output)
    let bodyStart = output.count
    var position = 0
    for block in blocks {
      let stored = output.count
      output.append(copying: try values.rawSpan.slice(position, block.rawLength))
      appendChecksum(ofBlockAt: stored, to: &output, salt: salt, at: offset + stored - start)
      position += block.rawLength
    }
    let frontLength = bodyStart - tableStart
    let header = FrameHeader(
      storedLength: output.count - tableStart, headsRawLength: bodyStart - headsStart,
      firstSequence: firstSequence, durableThrough: durableThrough, entryCount: entryCount,
      blockCount: blocks.count,
      headsChecksum: XXH64.hash(output.rawSpan.extracting(tableStart..<bodyStart)),
      headsCodec: .raw, hasExplicitSequences: hasExplicitSequences, usesDictionary: false,
      frontLength: frontLength)
    header.encode(into: &output, at: start, salt: salt, offset: offset)
    output.append(contentsOf: repeatElement(0, count: start + header.totalLength - output.count))
    return BuiltFrame(
      header: header, blocks: blocks, places: places, holdsRecords: holdsRecords)
  }

  /// Appends the blocks, compressed, one behind the other.
  private func compressBlocks(
    into body: inout [UInt8], level: Int32?, codecs: FrameCodecs, _ packing: FramePacking?
  ) throws(FormatError) -> [BlockEntry] {
    var blocks: [BlockEntry] = []
    blocks.reserveCapacity(blockLengths.count)
    let added = codecs.tagBytes + FormatConstants.blockChecksumBytes
    var start = 0
    for length in blockLengths {
      let raw = try values.rawSpan.slice(start, length)
      start += length
      let storedStart = body.count
      var codec = Codec.raw
      if let packed = packing?.fetch(blocks.count) {
        codec = packed.codec
        if codec == .raw { body.append(copying: raw) } else { body += packed.bytes }
      } else if let level {
        codec = try codecs.encode(raw, level: level, appendingTo: &body)
      } else {
        body.append(copying: raw)
      }
      blocks.append(
        BlockEntry(
          storedLength: body.count - storedStart + added, rawLength: length, codec: codec))
    }
    return blocks
  }

  /// Appends the blocks as they are stored: encrypted, where that is asked for, and with their
  /// checksums.
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
      appendChecksum(ofBlockAt: stored, to: &output, salt: salt, at: place)
      start += count
      place += block.storedLength
    }
  }

  /// Adds the checksum of the block that ends `output`.
  private func appendChecksum(
    ofBlockAt start: Int, to output: inout [UInt8], salt: UInt32, at place: Int
  ) {
    let checksum = BlockEntry.checksum(
      output.rawSpan.extracting(start..<output.count), salt: salt, at: place)
    output.append(UInt64(checksum), bytes: FormatConstants.blockChecksumBytes)
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
