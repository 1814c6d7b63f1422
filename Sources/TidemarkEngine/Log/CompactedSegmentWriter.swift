/// Writes a compacted segment: entries sorted by (key, sequence), each with its sequence.
///
/// Superseded entries (history) stand in frames of their own, between the others: the versions of a
/// key are compressed together there, and reads of the newest ones pass these frames over. The
/// frames of each kind are sorted. Readers of all entries read history first, so that a key's
/// entries in frames of history must be older than its entries in the others.
///
/// Nothing refers to the file before MANIFEST lists the row that `finish` gives; the caller syncs
/// the directory in between. After an error the owner must call `discard`.
package struct CompactedSegmentWriter {
  /// The bytes that are collected before they are written.
  private static let writeBytes = 1 << 20
  /// Frames of so many raw bytes are compressed together, by two threads.
  private static let waitingBytes = 4 << 20
  /// The share of `waitingBytes` that the calling thread compresses; it assembles frames as well.
  private static let ownShare = 0.45

  private let row: Manifest.Segment
  private let path: String
  private let fileSystem: any FileSystem
  private let file: any File
  private let layout: SegmentLayout
  private let usesThread: Bool
  /// The frames of both kinds; `newest` and `history` are their places here.
  private var streams: [Stream]
  private static let newest = 0
  private static let history = 1
  /// The last key of which the stream of the newest versions has got an entry.
  private var newestKey: [UInt8] = []
  private var output: [UInt8] = []
  /// Bytes in the file; `output` follows them.
  private var written: Int
  private var table = LocatorTable()
  private var chain: UInt64 = 0
  /// Frames that are complete, and not compressed yet.
  private var waiting: [Waiting] = []
  /// Raw bytes of the waiting frames.
  private var waitingBytes = 0
  /// Frames that another thread compresses. They come before those in `waiting`.
  private var underWay: UnderWay?
  /// Label sets met so far; a set's id is its place here plus one, since 0 is the empty set.
  private var labelSets: [[[UInt8]]] = []
  private var labelSetIDs: [[[UInt8]]: UInt32] = [:]
  package private(set) var entryCount = 0
  /// Raw bytes of the entries so far, counted the way that commits count them.
  package private(set) var rawBytes = 0

  /// A frame that is complete, and not compressed.
  private struct Waiting {
    var builder: FrameBuilder
    var sequences: [UInt64]
    /// The place in `streams` of its kind.
    var kind: Int
  }

  private typealias Packed = Result<[PackedFrame], FormatError>

  private struct UnderWay {
    var frames: ArraySlice<Waiting>
    /// Raw bytes of the frames.
    var bytes: Int
    var packed: Deferred<Packed>
    /// Compresses the same frames on the thread that calls.
    var packHere: @Sendable () -> Packed
  }

  /// The frames of one kind, of which one is being filled.
  private struct Stream {
    let codecs: FrameCodecs
    let level: Int32?
    /// Every frame begins as this one.
    let empty: FrameBuilder
    var builder: FrameBuilder
    var sequences: [UInt64] = []

    init(_ codecs: FrameCodecs, level: Int32?, isHistory: Bool, blockTarget: Int) {
      self.codecs = codecs
      self.level = level
      empty = FrameBuilder(
        hasExplicitSequences: true, isHistory: isHistory, blockTarget: blockTarget)
      builder = empty
    }

    mutating func clear() {
      builder = empty
      sequences.removeAll(keepingCapacity: true)
    }

    /// Whether a value should go into the next frame.
    func isFull(expecting length: Int) -> Bool {
      builder.isFull(expecting: length)
        || builder.blockLengths.count + length / Limits.blockBytes + 2 >= Limits.frameBlocks
    }
  }

  /// Creates the file and collects its header.
  /// - Parameters:
  ///   - row: of kind `compacted`; its first sequence is the first that the segment covers.
  ///   - fileKey: drawn for this segment; nil when it is not to be encrypted.
  ///   - usesThread: whether another thread compresses about half of the frames.
  package init(
    creating row: Manifest.Segment, storeID: [UInt8], storePath: String,
    fileSystem: any FileSystem, contexts: ZstdContexts, layout: SegmentLayout,
    fileKey: NewFileKey? = nil, usesThread: Bool = false
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
    self.usesThread = usesThread
    streams = [
      Stream(
        FrameCodecs(contexts: contexts, dictionary: dictionary, sealer: sealer),
        level: layout.level, isHistory: false, blockTarget: layout.blockTarget),
      Stream(
        FrameCodecs(contexts: contexts, sealer: sealer), level: layout.historyLevel,
        isHistory: true, blockTarget: layout.historyTarget),
    ]
    written = 0
  }

  /// The dictionary without zeros at its end: should the header ever be lost, the zeros behind
  /// the dictionary tell how long it is. One that zstd refuses is left out.
  private static func dictionary(_ layout: SegmentLayout) -> ZstdDictionary? {
    guard var bytes = layout.dictionary else { return nil }
    while bytes.last == 0 { bytes.removeLast() }
    return try? ZstdDictionary(bytes, level: layout.level)
  }

  /// About how long the file will be, without locator and footer.
  package var length: Int {
    written + output.count + waitingBytes + (underWay?.bytes ?? 0)
      + streams.reduce(0) { $0 + $1.builder.rawBytes }
  }

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
  ///   - labels: in byte order, without repetition; none where the entry has a `labelSetID` from
  ///     ``labelSetID(for:)``.
  ///   - isSuperseded: whether no read of the newest state needs it.
  package mutating func add(
    _ entry: FrameBuilder.Entry, key: RawSpan, value: RawSpan?, attributes: RawSpan,
    labels: [[UInt8]] = [], isSuperseded: Bool = false
  ) throws(LogReadError) {
    var entry = entry
    if !labels.isEmpty { entry.labelSetID = labelSetID(for: labels) }
    guard entry.sequence >= row.firstSequence else {
      throw .format(FormatError("a sequence before the segment's first"))
    }
    // Once a key has an entry in the other frames, its later entries must follow it there.
    let isHistory = isSuperseded && !newestKey.rawSpan.isEqual(to: key)
    let kind = isHistory ? Self.history : Self.newest
    if streams[kind].isFull(expecting: value?.byteCount ?? 0) { try closeFrame(kind) }
    if !isHistory {
      newestKey.removeAll(keepingCapacity: true)
      newestKey.append(copying: key)
    }
    let sets = labelSets
    streams[kind].builder.add(entry, key: key, value: value, attributes: attributes) { id in
      id > 0 && Int(id) <= sets.count ? sets[Int(id) - 1] : []
    }
    streams[kind].sequences.append(entry.sequence)
    entryCount += 1
    rawBytes +=
      key.byteCount + (value?.byteCount ?? 0) + attributes.byteCount + Limits.entryOverheadBytes
  }

  private mutating func closeFrame(_ kind: Int) throws(LogReadError) {
    guard !streams[kind].builder.isEmpty else { return }
    streams[kind].builder.closeBlock()
    let stream = streams[kind]
    waitingBytes += stream.builder.rawBytes
    waiting.append(Waiting(builder: stream.builder, sequences: stream.sequences, kind: kind))
    streams[kind].clear()
    // A thread is worth starting for many frames.
    if !usesThread || waitingBytes >= Self.waitingBytes { try writeFrames() }
  }

  /// Compresses the frames that are complete and appends them, in the order of their closing.
  ///
  /// With `usesThread` another thread compresses the last of them while this one goes on, and the
  /// next call appends them first: to wait at once would leave each thread idle in turn.
  private mutating func writeFrames() throws(LogReadError) {
    let frames = waiting
    waiting.removeAll()
    let ownBytes = usesThread ? Int(Double(waitingBytes) * Self.ownShare) : waitingBytes
    var middle = 0
    var bytes = 0
    while middle < frames.count, bytes < ownBytes {
      bytes += frames[middle].builder.rawBytes
      middle += 1
    }
    let streams = streams
    @Sendable func pack(_ frames: ArraySlice<Waiting>) -> Packed {
      var packed: [PackedFrame] = []
      do throws(FormatError) {
        for frame in frames {
          let stream = streams[frame.kind]
          packed.append(try frame.builder.packed(level: stream.level, codecs: stream.codecs))
        }
      } catch { return .failure(error) }
      return .success(packed)
    }
    let (first, second) = (frames[..<middle], frames[middle...])
    let before = underWay
    // Set before anything can fail, so that `discard` waits for the new thread.
    underWay =
      second.isEmpty
      ? nil
      : UnderWay(
        frames: second, bytes: waitingBytes - bytes,
        packed: Deferred(name: "tidemark-blocks", usesThread: true) { pack(second) },
        packHere: { pack(second) })
    waitingBytes = 0
    let own = pack(first)
    if let before {
      // Where the thread ended early, which is all that `value` throws for, this one does its work.
      try append(before.frames, (try? before.packed.value()) ?? before.packHere())
    }
    try append(first, own)
  }

  private mutating func append(
    _ frames: ArraySlice<Waiting>, _ result: Packed
  ) throws(LogReadError) {
    let packed: [PackedFrame]
    do { packed = try result.get() } catch { throw .format(error) }
    for (frame, packed) in zip(frames, packed) { try append(frame, packed) }
  }

  private mutating func append(_ frame: Waiting, _ packed: PackedFrame) throws(LogReadError) {
    let offset = written + output.count
    // The most that the frame may take, with a checksum, a tag and a row of the table per block.
    let most = frame.builder.rawBytes + (frame.builder.blockLengths.count + 2) * 64
    guard offset + most < Int(UInt32.max) else {
      throw .format(FormatError("a segment would get longer than places in it can say"))
    }
    let built: BuiltFrame
    do {
      built = try frame.builder.finish(
        packed, appendingTo: &output, offset: offset, salt: row.salt, durableThrough: 0,
        codecs: streams[frame.kind].codecs)
    } catch { throw .format(error) }
    table.append(
      header: built.header, offset: offset, blocks: built.blocks, places: built.places,
      sequences: frame.sequences, holdsRecords: built.holdsRecords)
    let header = built.header.encoded(salt: row.salt, offset: offset)
    chain = XXH64.hash(header.rawSpan, seed: chain)
    if output.count >= Self.writeBytes { try writeOut() }
  }

  private mutating func writeOut() throws(LogReadError) {
    do { try file.writeFully(output.rawSpan, at: written) } catch { throw .system(error) }
    written += output.count
    output.removeAll(keepingCapacity: true)
  }

  /// Writes the complete frames to the file and its dirty pages to the drive: a slow compaction
  /// calls it now and then, so that its sync at the end is short.
  package mutating func writeBack() throws(LogReadError) {
    try writeFrames()
    // What another thread compresses.
    try writeFrames()
    try writeOut()
    if PlantedBug.isOn(.compactedSegmentNotSynced) { return }
    do { try file.writeBack() } catch { throw .system(error) }
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
    for kind in streams.indices { try closeFrame(kind) }
    try writeFrames()
    // What another thread compresses.
    try writeFrames()
    var footer = SegmentFooter(
      segmentID: row.id, firstSequence: row.firstSequence, lastSequence: lastSequence,
      locatorOffset: written + output.count, chain: chain, latestTime: latestTime,
      rawBytes: rawBytes, latestCommitTime: latestCommitTime)
    let locator: [UInt8]
    let sealer = streams[Self.newest].codecs.sealer
    do { (locator, footer) = try table.encoded(footer, sealer: sealer) } catch {
      throw .format(error)
    }
    output.append(contentsOf: locator)
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
    if PlantedBug.isOn(.compactedSegmentNotSynced) { return }
    do { try file.sync() } catch { throw .system(error) }
  }

  /// Closes and removes the file, after an error or when it is not wanted any more, also after
  /// `finish`. A file that cannot be removed is cleared away by the next opening.
  package mutating func discard() {
    _ = try? underWay?.packed.value()
    underWay = nil
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
