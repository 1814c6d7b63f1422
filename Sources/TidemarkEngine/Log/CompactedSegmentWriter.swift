/// How a segment that is written anew packs its values.
package struct SegmentLayout: Sendable, Hashable {
  /// A block is closed once it holds this many raw bytes; at most `Limits.blockBytes`.
  package var blockTarget: Int
  /// zstd's level; nil stores everything raw.
  package var level: Int32?
  /// A trained dictionary that everything in the segment is compressed with.
  package var dictionary: [UInt8]?

  package init(
    blockTarget: Int = Limits.blockBytes, level: Int32? = FrameCodecs.compactionLevel,
    dictionary: [UInt8]? = nil
  ) {
    self.blockTarget = blockTarget
    self.level = level
    self.dictionary = dictionary
  }
}

/// Writes a compacted segment: entries sorted by (key, sequence), each with its sequence.
///
/// Nothing refers to the file before MANIFEST lists the row that `finish` gives; the caller
/// syncs the directory in between.
package struct CompactedSegmentWriter {
  /// What is collected before it is written.
  private static let writeBytes = 1 << 20

  private let row: Manifest.Segment
  private let path: String
  private let fileSystem: any FileSystem
  private let file: any File
  private let codecs: FrameCodecs
  private let layout: SegmentLayout
  private var builder: FrameBuilder
  /// Sequences of the entries in `builder`.
  private var sequences: [UInt64] = []
  private var output: [UInt8] = []
  /// Bytes of the file before `output`.
  private var written: Int
  private var table = LocatorTable()
  private var chain: UInt64 = 0
  /// Label sets met so far; the id that a frame knows a set by is its place here, less one.
  private var labelSets: [[[UInt8]]] = []
  private var labelSetIDs: [[[UInt8]]: UInt32] = [:]
  package private(set) var entryCount = 0
  /// Raw bytes of the entries so far, counted the way that commits count them.
  package private(set) var rawBytes = 0

  /// Creates the file and collects its header.
  /// - Parameters:
  ///   - row: of kind `compacted`; its first sequence is the first that the segment covers.
  ///   - storePath: the store's directory.
  ///   - layout: how values are packed.
  ///   - fileKey: drawn for this segment; nil when it is not to be encrypted.
  package init(
    creating row: Manifest.Segment, storeID: [UInt8], storePath: String,
    fileSystem: any FileSystem, contexts: ZstdContexts, layout: SegmentLayout,
    fileKey: NewFileKey? = nil
  ) throws(LogReadError) {
    var header = SegmentHeader(
      storeID: storeID, segmentID: row.id, baseSequence: row.firstSequence, salt: row.salt,
      kind: .compacted)
    let dictionary = Self.dictionary(layout)
    let sealer = fileKey?.sealer(fileID: row.id)
    var stored: [UInt8] = []
    do {
      if let dictionary {
        stored = dictionary.bytes
        try sealer?.seal(&stored, from: 0, .dictionary)
        header.place(dictionary: stored)
      }
      try header.seal(with: fileKey)
    } catch { throw .format(error) }
    output = header.encoded()
    if let placed = header.dictionary {
      for offset in placed.offsets {
        output.append(contentsOf: repeatElement(0, count: offset - output.count))
        output.append(contentsOf: stored)
      }
      output.append(contentsOf: repeatElement(0, count: header.firstFrame - output.count))
    }
    path = storePath + "/" + StoreLayout.logDirectory + "/" + row.fileName
    do { file = try fileSystem.open(path, .create) } catch { throw .system(error) }
    self.row = row
    self.fileSystem = fileSystem
    self.layout = layout
    codecs = FrameCodecs(contexts: contexts, dictionary: dictionary, sealer: sealer)
    builder = FrameBuilder(hasExplicitSequences: true, blockTarget: layout.blockTarget)
    written = 0
  }

  /// The dictionary without zeros at its end: should the header ever be lost, the zeros behind
  /// it tell how long it is. One that is of no use is left out.
  private static func dictionary(_ layout: SegmentLayout) -> ZstdDictionary? {
    guard var bytes = layout.dictionary else { return nil }
    while bytes.last == 0 { bytes.removeLast() }
    return try? ZstdDictionary(bytes, level: layout.level)
  }

  /// About how long the file will be, without locator and footer.
  package var length: Int { written + output.count + builder.rawBytes }

  /// The id by which `add` takes a set of labels; good for this writer only.
  /// - Parameter labels: in byte order, without repetition.
  package mutating func labelSetID(for labels: [[UInt8]]) -> UInt32 {
    guard !labels.isEmpty else { return 0 }
    if let known = labelSetIDs[labels] { return known }
    labelSets.append(labels)
    let id = UInt32(labelSets.count)
    labelSetIDs[labels] = id
    return id
  }

  /// Adds an entry, which must sort behind the one before it by key, then sequence.
  /// - Parameters:
  ///   - entry: its fixed fields; its `labelSetID` comes from ``labelSetID(for:)``.
  ///   - key: its key.
  ///   - value: its value; nil for none.
  ///   - attributes: its encoded attributes; empty for none.
  package mutating func add(
    _ entry: FrameBuilder.Entry, key: RawSpan, value: RawSpan?, attributes: RawSpan
  ) throws(LogReadError) {
    guard entry.sequence >= row.firstSequence,
      entry.sequence - row.firstSequence <= UInt64(UInt32.max)
    else { throw .format(FormatError("a sequence is too far from the segment's first")) }
    let blocks = (value?.byteCount ?? 0) / Limits.blockBytes + 2
    if builder.isFull || builder.blockLengths.count + blocks >= Limits.frameBlocks {
      try closeFrame()
    }
    let sets = labelSets
    builder.add(entry, key: key, value: value, attributes: attributes) { id in
      id > 0 && Int(id) <= sets.count ? sets[Int(id) - 1] : []
    }
    sequences.append(entry.sequence)
    entryCount += 1
    rawBytes += key.byteCount + (value?.byteCount ?? 0) + attributes.byteCount + 16
  }

  /// Adds an entry with its labels, in byte order and without repetition.
  package mutating func add(
    _ entry: FrameBuilder.Entry, key: RawSpan, value: RawSpan?, attributes: RawSpan,
    labels: [[UInt8]]
  ) throws(LogReadError) {
    var entry = entry
    entry.labelSetID = labelSetID(for: labels)
    try add(entry, key: key, value: value, attributes: attributes)
  }

  private mutating func closeFrame() throws(LogReadError) {
    guard !builder.isEmpty else { return }
    let offset = written + output.count
    // What is not compressed takes its own length, and each block a tag and a row of the table.
    let most = builder.rawBytes + (builder.blockLengths.count + 2) * 64
    guard offset + most < Int(UInt32.max) else {
      throw .format(FormatError("a segment would get longer than places in it can say"))
    }
    let frame: BuiltFrame
    do {
      frame = try builder.finish(
        appendingTo: &output, offset: offset, salt: row.salt, durableThrough: 0,
        level: layout.level, codecs: codecs)
    } catch { throw .format(error) }
    table.append(
      header: frame.header, offset: offset, blocks: frame.blocks, places: frame.places,
      sequences: sequences)
    let header = frame.header.encoded(salt: row.salt, offset: offset)
    chain = XXH64.hash(header.rawSpan, seed: chain)
    builder = FrameBuilder(hasExplicitSequences: true, blockTarget: layout.blockTarget)
    sequences.removeAll(keepingCapacity: true)
    if output.count >= Self.writeBytes { try writeOut() }
  }

  private mutating func writeOut() throws(LogReadError) {
    do { try file.writeFully(output.rawSpan, at: written) } catch { throw .system(error) }
    written += output.count
    output.removeAll(keepingCapacity: true)
  }

  /// Writes and syncs the frames so far: for who is slow, so that no long sync comes at the end.
  package mutating func syncSoFar() throws(LogReadError) {
    try writeOut()
    try sync()
  }

  /// Writes the last frame, locator and footer, syncs the file and closes it.
  /// - Parameters:
  ///   - lastSequence: the last sequence that the segment covers, whether or not it holds it.
  ///   - latestTime: the latest own time (commit time where there is none) of everything that
  ///     was ever in the range.
  ///   - latestCommitTime: the latest commit time likewise.
  /// - Returns: the row for MANIFEST.
  package mutating func finish(
    lastSequence: UInt64, latestTime: Timestamp?, latestCommitTime: UInt64
  ) throws(LogReadError) -> Manifest.Segment {
    try closeFrame()
    let locatorOffset = written + output.count
    do {
      output.append(
        contentsOf: try table.encoded(
          segmentID: row.id, firstSequence: row.firstSequence, at: locatorOffset,
          sealer: codecs.sealer))
    } catch { throw .format(error) }
    let footer = SegmentFooter(
      segmentID: row.id, firstSequence: row.firstSequence, lastSequence: lastSequence,
      locatorOffset: locatorOffset, blockCount: table.blocks.count,
      slotCount: table.slots.count, frameCount: table.frames.count,
      sequenceCount: table.sequences.count, chain: chain, latestTime: latestTime,
      rawBytes: rawBytes, latestCommitTime: latestCommitTime)
    output.append(contentsOf: footer.encoded(salt: row.salt))
    try writeOut()
    try sync()
    file.close()
    var sealed = row
    sealed.state = .sealed
    sealed.kind = .compacted
    sealed.lastSequence = lastSequence
    sealed.length = written
    sealed.entryCount = entryCount
    sealed.rawBytes = rawBytes
    sealed.chain = chain
    sealed.latestTime = latestTime
    return sealed
  }

  private func sync() throws(LogReadError) {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.compactedSegmentNotSynced) { return }
    #endif
    do { try file.sync() } catch { throw .system(error) }
  }

  /// Closes and removes the file, after an error or when it is not wanted any more.
  package mutating func discard() {
    file.close()
    try? fileSystem.remove(path)
  }
}

extension SegmentHeader {
  /// Makes room for two copies of a dictionary, in pages of their own, before the first frame.
  fileprivate mutating func place(dictionary bytes: [UInt8]) {
    let page = FormatConstants.segmentHeaderPageBytes
    let alignment = FormatConstants.frameAlignment
    let first = FormatConstants.segmentHeaderBytes
    let second = (first + bytes.count + page - 1) / page * page
    dictionary = Dictionary(
      offsets: [first, second], length: bytes.count, checksum: XXH64.hash(bytes.rawSpan))
    firstFrame = (second + bytes.count + alignment - 1) / alignment * alignment
  }
}
