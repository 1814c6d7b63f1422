/// Where a value stands in the frame that holds it.
package struct ValuePlace: Sendable, Hashable {
  /// Block within the frame.
  package var block: UInt32
  /// Position within the raw block.
  package var position: UInt32
}

/// Collects entries and turns them into the bytes of one frame.
package struct FrameBuilder: Sendable {
  package private(set) var entryCount = 0
  package private(set) var firstSequence: UInt64 = 0
  package private(set) var lastSequence: UInt64 = 0
  private let hasExplicitSequences: Bool
  private let isHistory: Bool
  /// A block is closed once it holds this many raw bytes.
  private let blockTarget: Int
  /// A longer value has blocks of its own.
  private let mostInBlock: Int
  private var heads = ByteWriter()
  private var labelSets = ByteWriter()
  private var labelSetCount = 0
  /// Sets already in the table, by the id that the caller knows them by.
  private var labelSetIndex: [UInt32: Int] = [:]
  private var baseCommitTime: UInt64 = 0
  private var lastCommitTime: UInt64 = 0
  private var lastHeadSequence: UInt64 = 0
  package private(set) var values: [UInt8] = []
  /// Where each entry's value ends in `values`.
  private var valueEnds: [UInt32] = []
  /// Raw length of every finished block.
  package private(set) var blockLengths: [Int] = []
  private var openBlock = 0
  package private(set) var places: [ValuePlace] = []

  /// - Parameters:
  ///   - hasExplicitSequences: whether it is for a compacted segment.
  ///   - isHistory: whether what it holds is packed as densely as can be.
  ///   - blockTarget: a block is closed once it holds this many raw bytes.
  package init(
    hasExplicitSequences: Bool = false, isHistory: Bool = false,
    blockTarget: Int = Limits.blockBytes
  ) {
    self.hasExplicitSequences = hasExplicitSequences
    self.isHistory = isHistory
    mostInBlock = isHistory ? Limits.historyBlockBytes : Limits.blockBytes
    self.blockTarget = min(blockTarget, mostInBlock)
  }

  package var isEmpty: Bool { entryCount == 0 }
  /// Raw bytes of everything in it.
  package var rawBytes: Int { heads.count + labelSets.count + values.count }
  /// Whether the next entry should go into another frame.
  package var isFull: Bool {
    let headsTarget = isHistory ? Limits.historyHeadsTarget : Limits.frameHeadsTarget
    return heads.count + labelSets.count >= headsTarget
      || values.count >= Limits.frameValuesTarget || entryCount >= Limits.frameEntries - 1
  }

  /// Whether a value of so many bytes should go into another frame: history fills whole blocks.
  package func isFull(expecting length: Int) -> Bool {
    isFull || (isHistory && !isEmpty && values.count + length > blockTarget)
  }

  /// An entry's fields, as the builder takes them.
  package struct Entry {
    package var kind: EntryKind
    package var endsBatch: Bool
    package var sequence: UInt64
    /// Known to the caller by this id; 0 is the empty set.
    package var labelSetID: UInt32 = 0
    package var previous: UInt64 = 0
    package var valueSequence: UInt64 = 0
    package var commitTime: UInt64
    package var created: UInt64 = 0

    package init(kind: EntryKind, endsBatch: Bool, sequence: UInt64, commitTime: UInt64) {
      self.kind = kind
      self.endsBatch = endsBatch
      self.sequence = sequence
      self.commitTime = commitTime
    }
  }

  /// Adds an entry.
  /// - Parameters:
  ///   - entry: its fixed fields.
  ///   - key: its key.
  ///   - value: its value; nil for none.
  ///   - attributes: its encoded attributes; empty for none.
  ///   - labels: asked for the labels when the frame has not seen the set's id yet.
  package mutating func add<E: Error>(
    _ entry: Entry, key: RawSpan, value: RawSpan?, attributes: RawSpan,
    labels: (UInt32) throws(E) -> [[UInt8]]
  ) throws(E) {
    let labelSet = try index(ofLabelSet: entry.labelSetID, labels)
    if entryCount == 0 {
      firstSequence = entry.sequence
      lastHeadSequence = entry.sequence
      baseCommitTime = entry.commitTime
      lastCommitTime = entry.commitTime
    }
    let base = hasExplicitSequences ? baseCommitTime : lastCommitTime
    var fields: EntryFields = []
    if labelSet != nil { fields.insert(.labels) }
    if value != nil { fields.insert(.value) }
    if entry.previous != 0 { fields.insert(.previous) }
    if entry.commitTime != base { fields.insert(.commitTime) }
    if entry.valueSequence != 0 { fields.insert(.valueSequence) }
    if entry.created != 0 { fields.insert(.created) }
    if !attributes.isEmpty { fields.insert(.attributes) }
    heads.u8(entry.kind.rawValue | (entry.endsBatch ? 0x10 : 0))
    heads.u8(fields.rawValue)
    if hasExplicitSequences {
      heads.zigzag(Int64(bitPattern: entry.sequence &- lastHeadSequence))
      lastHeadSequence = entry.sequence
    }
    heads.varint(key.byteCount)
    heads.raw(key)
    if let labelSet { heads.varint(labelSet) }
    if let value { heads.varint(value.byteCount) }
    if entry.previous != 0 { heads.varint(entry.sequence - entry.previous) }
    if fields.contains(.commitTime) { heads.zigzag(Int64(bitPattern: entry.commitTime &- base)) }
    if entry.valueSequence != 0 { heads.varint(entry.sequence - entry.valueSequence) }
    if entry.created != 0 { heads.u64(entry.created) }
    if !attributes.isEmpty {
      heads.varint(attributes.byteCount)
      heads.raw(attributes)
    }
    lastCommitTime = entry.commitTime
    lastSequence = max(lastSequence, entry.sequence)
    entryCount += 1
    place(value)
  }

  private mutating func index<E: Error>(
    ofLabelSet id: UInt32, _ labels: (UInt32) throws(E) -> [[UInt8]]
  ) throws(E) -> Int? {
    guard id != 0 else { return nil }
    if let known = labelSetIndex[id] { return known }
    let set = try labels(id)
    labelSets.varint(set.count)
    for label in set {
      labelSets.varint(label.count)
      labelSets.raw(label)
    }
    labelSetIndex[id] = labelSetCount
    labelSetCount += 1
    return labelSetCount - 1
  }

  /// Where the value of the n-th entry stands in `values`.
  package func valueRange(of entry: Int) -> Range<Int> {
    (entry == 0 ? 0 : Int(valueEnds[entry - 1]))..<Int(valueEnds[entry])
  }

  /// Appends a value to the stream and cuts blocks: a value lies in one block, unless it is
  /// longer than a block; then it has a run of blocks of its own.
  private mutating func place(_ value: RawSpan?) {
    let length = value?.byteCount ?? 0
    // An empty value stays behind the last one, as `LocatorTable.places` works it out.
    if length > 0, openBlock > 0, openBlock + length > blockTarget { closeBlock() }
    places.append(
      ValuePlace(block: UInt32(blockLengths.count), position: UInt32(truncatingIfNeeded: openBlock))
    )
    valueEnds.append(UInt32(values.count + length))
    guard let value, length > 0 else { return }
    values.append(copying: value)
    openBlock += length
    guard openBlock > mostInBlock else { return }
    while openBlock > 0 {
      let part = min(openBlock, mostInBlock)
      blockLengths.append(part)
      openBlock -= part
    }
  }

  private mutating func closeBlock() {
    guard openBlock > 0 else { return }
    blockLengths.append(openBlock)
    openBlock = 0
  }
}

/// A frame's bytes, and what a locator needs to know of them.
package struct BuiltFrame: Sendable {
  package var header: FrameHeader
  package var blocks: [BlockEntry]
  package var places: [ValuePlace]
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
    if level == nil, codecs.tagBytes == 0, !hasExplicitSequences {
      return try finishRaw(
        appendingTo: &output, offset: offset, salt: salt, durableThrough: durableThrough)
    }
    var raw = ByteWriter(capacity: labelSets.count + heads.count + 16)
    raw.varint(labelSetCount)
    raw.raw(labelSets.bytes)
    raw.u64(baseCommitTime)
    raw.raw(heads.bytes)
    // Where blocks stand follows from the length of the heads, and encryption needs to know it.
    var storedHeads: [UInt8] = []
    var headsCodec = Codec.raw
    if let level {
      headsCodec = try codecs.encode(raw.bytes.rawSpan, level: level, appendingTo: &storedHeads)
    } else {
      storedHeads = raw.bytes
    }
    var body: [UInt8] = []
    var blocks = try compressBlocks(into: &body, level: level, codecs: codecs)
    let tableLength = try tableLength(blocks)
    let frontLength = tableLength + storedHeads.count + codecs.tagBytes
    let frontStart = offset + FormatConstants.frameHeaderBytes
    try finish(
      &blocks, in: &body, at: frontStart + frontLength, salt: salt, sealer: codecs.sealer)
    var front = ByteWriter(capacity: frontLength)
    for block in blocks { block.encode(into: &front) }
    let usesDictionary =
      headsCodec == .zstdDictionary || blocks.contains { $0.codec == .zstdDictionary }
    var header = FrameHeader(
      storedLength: frontLength + body.count, headsRawLength: raw.count,
      firstSequence: firstSequence, durableThrough: durableThrough, entryCount: entryCount,
      blockCount: blocks.count, headsChecksum: 0,
      headsCodec: headsCodec, hasExplicitSequences: hasExplicitSequences, isHistory: isHistory,
      usesDictionary: usesDictionary, frontLength: frontLength)
    if let sealer = codecs.sealer {
      try sealer.seal(
        &storedHeads, from: 0, .heads(at: frontStart + tableLength),
        authenticating: header.associatedData + front.bytes)
    }
    front.raw(storedHeads)
    header.headsChecksum = XXH64.hash(front.bytes.rawSpan)
    output.append(contentsOf: header.encoded(salt: salt, offset: offset))
    output.append(contentsOf: front.bytes)
    output.append(contentsOf: body)
    let padding = header.totalLength - FormatConstants.frameHeaderBytes - header.storedLength
    output.append(contentsOf: repeatElement(0, count: padding))
    return BuiltFrame(header: header, blocks: blocks, places: places)
  }

  /// The same where nothing is compressed or encrypted: every byte goes to its place at once.
  private func finishRaw(
    appendingTo output: inout [UInt8], offset: Int, salt: UInt32, durableThrough: UInt64
  ) throws(FormatError) -> BuiltFrame {
    let start = output.count
    let tableStart = start + FormatConstants.frameHeaderBytes
    let headsStart = tableStart + blockLengths.count * FormatConstants.blockEntryBytes
    output.reserveCapacity(headsStart + labelSets.count + heads.count + values.count + 32)
    output.append(contentsOf: repeatElement(0, count: headsStart - start))
    var writer = ByteWriter()
    swap(&writer.bytes, &output)
    writer.varint(labelSetCount)
    writer.raw(labelSets.bytes)
    writer.u64(baseCommitTime)
    writer.raw(heads.bytes)
    swap(&writer.bytes, &output)
    let bodyStart = output.count
    output.append(contentsOf: values)
    var blocks: [BlockEntry] = []
    blocks.reserveCapacity(blockLengths.count)
    var position = bodyStart
    for length in blockLengths {
      let checksum = CRC32C.checksum(try output.rawSpan.slice(position, length))
      let block = BlockEntry(
        storedLength: length, rawLength: length, checksum: checksum, codec: .raw)
      let place = tableStart + blocks.count * FormatConstants.blockEntryBytes
      output.withMutableRawSpan { block.encode(into: &$0, at: place) }
      blocks.append(block)
      position += length
    }
    let frontLength = bodyStart - tableStart
    let header = FrameHeader(
      storedLength: frontLength + values.count, headsRawLength: bodyStart - headsStart,
      firstSequence: firstSequence, durableThrough: durableThrough, entryCount: entryCount,
      blockCount: blocks.count,
      headsChecksum: XXH64.hash(output.rawSpan.extracting(tableStart..<bodyStart)),
      headsCodec: .raw, hasExplicitSequences: hasExplicitSequences, usesDictionary: false,
      frontLength: frontLength)
    header.encode(into: &output, at: start, salt: salt, offset: offset)
    output.append(contentsOf: repeatElement(0, count: start + header.totalLength - output.count))
    return BuiltFrame(header: header, blocks: blocks, places: places)
  }

  /// Appends the blocks, compressed, one behind the other.
  private func compressBlocks(
    into body: inout [UInt8], level: Int32?, codecs: FrameCodecs
  ) throws(FormatError) -> [BlockEntry] {
    var blocks: [BlockEntry] = []
    blocks.reserveCapacity(blockLengths.count)
    let added =
      codecs.tagBytes + (hasExplicitSequences ? FormatConstants.blockChecksumBytes : 0)
    var start = 0
    for length in blockLengths {
      let raw = try values.rawSpan.slice(start, length)
      start += length
      let storedStart = body.count
      var codec = Codec.raw
      if let level {
        codec = try codecs.encode(raw, level: level, appendingTo: &body)
      } else {
        body.append(copying: raw)
      }
      blocks.append(
        BlockEntry(
          storedLength: body.count - storedStart + added, rawLength: length,
          checksum: hasExplicitSequences ? nil : 0, codec: codec))
    }
    return blocks
  }

  private func tableLength(_ blocks: [BlockEntry]) throws(FormatError) -> Int {
    guard hasExplicitSequences else { return blocks.count * FormatConstants.blockEntryBytes }
    var table = ByteWriter(capacity: blocks.count * 4)
    for block in blocks { block.encode(into: &table) }
    return table.count
  }

  /// Encrypts compressed blocks, where that is asked for, and adds their checksums.
  /// - Parameter offset: where in the file the first one will stand.
  private func finish(
    _ blocks: inout [BlockEntry], in body: inout [UInt8], at offset: Int, salt: UInt32,
    sealer: BlockSealer?
  ) throws(FormatError) {
    let growth =
      (sealer == nil ? 0 : BlockSealer.tagBytes)
      + (hasExplicitSequences ? FormatConstants.blockChecksumBytes : 0)
    var packed: [UInt8] = []
    if growth > 0 {
      swap(&packed, &body)
      body.reserveCapacity(packed.count + growth * blocks.count)
    }
    var start = 0
    for number in blocks.indices {
      let count = blocks[number].storedLength - growth
      let stored = growth > 0 ? body.count : start
      if growth > 0 { body.append(copying: try packed.rawSpan.slice(start, count)) }
      start += count
      let place = offset + stored
      if let sealer {
        try sealer.seal(
          &body, from: stored, .block(at: place),
          authenticating: blocks[number].associatedData)
      }
      if hasExplicitSequences {
        let checksum = BlockEntry.checksum(
          body.rawSpan.extracting(stored..<body.count), salt: salt, at: place)
        for shift: UInt32 in [0, 8, 16, 24] {
          body.append(UInt8(truncatingIfNeeded: checksum >> shift))
        }
      } else {
        blocks[number].checksum = CRC32C.checksum(
          try body.rawSpan.slice(stored, blocks[number].storedLength))
      }
    }
  }

  /// A frame without entries, which only carries `durableThrough` forward.
  package static func empty(
    nextSequence: UInt64, durableThrough: UInt64, offset: Int, salt: UInt32, codecs: FrameCodecs,
    appendingTo output: inout [UInt8]
  ) throws(FormatError) -> BuiltFrame {
    var builder = FrameBuilder()
    builder.firstSequence = nextSequence
    return try builder.finish(
      appendingTo: &output, offset: offset, salt: salt, durableThrough: durableThrough,
      level: nil, codecs: codecs)
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
