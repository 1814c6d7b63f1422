/// Appends frames to the active segment and seals it. Its owner, the log's writer, makes one call
/// at a time, under its lock; only ``sync()`` may run beside others.
package final class SegmentAppender {
  package let segment: Segment
  package let row: Manifest.Segment
  private let file: any File
  private let codecs: FrameCodecs
  /// Where the next frame goes.
  package private(set) var length: Int
  /// Up to here the file has space on the disk.
  private var allocated: Int
  private var growth: Int
  /// The first failure of a sync; none is believed after it.
  private let syncFailure = Lock<FileSystemError?>(nil)
  /// Chained checksum of the frame headers, for the footer.
  private var chain: UInt64 = 0
  private var entryCount = 0
  /// The raw length of the segment's entries, with those that are still to be written.
  private(set) var rawBytes = 0
  private var latestTime: Timestamp?
  private var latestCommitTime: UInt64 = 0
  package private(set) var lastSequence: UInt64
  /// The frame of a put or delete that is written by itself; its memory is used again.
  private var single = SingleFrame()

  /// Creates the file of a new segment, with its header, and syncs it; MANIFEST must list the
  /// segment, and the directory be synced, before the first frame.
  /// - Parameters:
  ///   - row: what MANIFEST will say of it.
  ///   - fileKey: drawn for this segment; nil when it is not to be encrypted.
  ///   - growth: bytes by which the file's space grows at first.
  package init(
    creating row: Manifest.Segment, storeID: [UInt8], storePath: String,
    fileSystem: any FileSystem, contexts: ZstdContexts, keys: KeyRing, fileKey: NewFileKey?,
    growth: Int
  ) throws(LogReadError) {
    self.row = row
    self.growth = growth
    var header = SegmentHeader(
      storeID: storeID, segmentID: row.id, baseSequence: row.firstSequence, salt: row.salt,
      kind: .appended)
    do { try header.seal(with: fileKey) } catch { throw .format(error) }
    let path = storePath + "/" + StoreLayout.logDirectory + "/" + row.fileName
    let file: any File
    do { file = try fileSystem.open(path, .create) } catch { throw .system(error) }
    do {
      try file.allocate(to: FormatConstants.segmentHeaderBytes)
      try file.writeFully(header.encoded().rawSpan, at: 0)
      try file.sync()
    } catch {
      file.close()
      try? fileSystem.remove(path)
      throw .system(error)
    }
    self.file = file
    codecs = FrameCodecs(contexts: contexts, sealer: fileKey?.sealer(fileID: row.id))
    length = FormatConstants.segmentHeaderBytes
    allocated = length
    lastSequence = row.firstSequence - 1
    segment = Segment(
      row, storeID: storeID, storePath: storePath, fileSystem: fileSystem, contexts: contexts,
      keys: keys, file: file)
  }

  /// Takes up a segment that recovery has walked, in order to seal it.
  package init(
    recovered tail: RecoveredTail, row: Manifest.Segment, segment: Segment, file: any File,
    codecs: FrameCodecs
  ) {
    self.row = row
    self.segment = segment
    self.file = file
    self.codecs = codecs
    length = tail.end
    allocated = tail.end
    growth = Limits.firstGrowthBytes
    chain = tail.chain
    entryCount = tail.entryCount
    rawBytes = tail.rawBytes
    latestTime = tail.latestTime
    latestCommitTime = tail.latestCommitTime
    lastSequence = tail.lastSequence
  }

  package var isEmpty: Bool { entryCount == 0 }

  /// Makes sure that `count` more bytes fit on the disk.
  /// - Throws: `ENOSPC` and its like; then nothing has changed.
  package func reserve(_ count: Int) throws(FileSystemError) {
    let needed = length + count
    guard needed > allocated else { return }
    let target = max(needed, allocated + growth)
    do {
      try file.allocate(to: target)
      allocated = target
    } catch {
      // The last bytes of a full disk still take what is needed and no more.
      guard target > needed else { throw error }
      try file.allocate(to: needed)
      allocated = needed
    }
    // Growth stays little beside what is there: a small disk may have room for no more.
    growth = min(growth * 2, max(Limits.firstGrowthBytes, allocated / 8), Limits.growthBytes)
  }

  /// Notes what the frames written next carry, for the segment's statistics.
  package func note(rawBytes more: Int, time: Timestamp?, commitTime: UInt64) {
    rawBytes += more
    if let time { latestTime = max(latestTime ?? time, time) }
    latestCommitTime = max(latestCommitTime, commitTime)
  }

  /// Writes frames behind each other with one call, at the end of the segment.
  /// - Parameter level: zstd's level; nil stores raw.
  /// - Throws: nothing counts as written then, but the file may hold a part: write no more to it.
  package func write(
    _ builders: [FrameBuilder], durableThrough: UInt64, level: Int32?
  ) throws(LogReadError) {
    var output: [UInt8] = []
    var frames: [(BuiltFrame, offset: Int)] = []
    var newChain = chain
    var last = lastSequence
    do {
      for var builder in builders where !builder.isEmpty {
        let offset = length + output.count
        let frame = try builder.finish(
          appendingTo: &output, offset: offset, salt: row.salt, durableThrough: durableThrough,
          level: level, codecs: codecs)
        let header = offset - length..<offset - length + FormatConstants.frameHeaderBytes
        newChain = XXH64.hash(output.rawSpan.extracting(header), seed: newChain)
        last = builder.lastSequence
        frames.append((frame, offset))
      }
    } catch { throw .format(error) }
    do { try file.writeFully(output.rawSpan, at: length) } catch { throw .system(error) }
    length += output.count
    chain = newChain
    lastSequence = last
    entryCount += frames.reduce(0) { $0 + $1.0.header.entryCount }
    segment.append(frames, lastSequence: last)
  }

  /// Whether ``fillSingle`` may be used: a frame of one entry is never encrypted.
  var takesSingleFrames: Bool { codecs.tagBytes == 0 }

  /// Puts together the frame of one entry; ``writeSingle()`` comes next.
  /// - Returns: the value in the frame, to be let go once it is written.
  func fillSingle(
    _ kind: EntryKind, sequence: UInt64, previous: UInt64, commitTime: UInt64,
    durableThrough: UInt64, key: RawSpan, labels: [[UInt8]], value: RawSpan?
  ) -> ArraySlice<UInt8> {
    single.fill(
      kind, sequence: sequence, previous: previous, commitTime: commitTime, key: key,
      labels: labels, value: value)
    single.finish(offset: length, salt: row.salt, durableThrough: durableThrough)
    return single.value
  }

  /// Writes the frame that was put together, at the end of the segment.
  func writeSingle() throws(LogReadError) {
    do { try single.write(to: file, at: length) } catch { throw .system(error) }
    chain = single.chain(from: chain)
    segment.append(single, offset: length)
    length += single.length
    lastSequence = single.header.firstSequence
    entryCount += 1
  }

  /// Writes a frame without entries, which carries `durableThrough` forward.
  package func writeEmptyFrame(durableThrough: UInt64) throws(LogReadError) {
    var output: [UInt8] = []
    var frame = FrameBuilder(nextSequence: lastSequence + 1)
    do {
      _ = try frame.finish(
        appendingTo: &output, offset: length, salt: row.salt, durableThrough: durableThrough,
        level: nil, codecs: codecs)
    } catch { throw .format(error) }
    do {
      try reserve(output.count)
      try file.writeFully(output.rawSpan, at: length)
    } catch { throw .system(error) }
    let header = output.rawSpan.extracting(0..<FormatConstants.frameHeaderBytes)
    chain = XXH64.hash(header, seed: chain)
    length += output.count
  }

  /// Makes everything written so far durable.
  ///
  /// The kernel tells of a failure once: a sync beside or after the one that heard of it would be
  /// told that all is well. So syncs go one at a time, and after a failed one all of them fail.
  package func sync() throws(FileSystemError) {
    if PlantedBug.isOn(.segmentNotSynced) { return }
    try syncFailure.withLock { (failure: inout FileSystemError?) throws(FileSystemError) in
      if let failure { throw failure }
      do throws(FileSystemError) { try file.sync() } catch {
        if PlantedBug.isOn(.failedSyncRetried) { return try file.sync() }
        failure = error
        throw error
      }
    }
  }

  /// Makes sure that locator and footer of what was written so far fit on the disk.
  /// - Returns: both, for ``seal(_:)``.
  /// - Throws: `ENOSPC` and its like; then nothing has changed.
  package func reserveTrailer() throws(LogReadError) -> [UInt8] {
    let counts = SegmentFooter(
      segmentID: row.id, firstSequence: row.firstSequence, lastSequence: lastSequence,
      locatorOffset: length, chain: chain, latestTime: latestTime, rawBytes: rawBytes,
      latestCommitTime: latestCommitTime)
    let trailer: [UInt8]
    do {
      let (locator, footer) = try (segment.table() ?? LocatorTable()).encoded(
        counts, sealer: codecs.sealer)
      trailer = locator + footer.encoded(salt: row.salt)
    } catch { throw .format(error) }
    do { try reserve(trailer.count) } catch { throw .system(error) }
    return trailer
  }

  /// Writes bytes again that are there already, before a sync that must be believed: a failed
  /// sync may have left clean pages that never reached the disk.
  package func rewrite(from start: Int) throws(FileSystemError) {
    var offset = start
    while offset < length {
      let bytes = try file.read(min(1 << 20, length - offset), at: offset)
      guard !bytes.isEmpty else { break }
      try file.writeFully(bytes.rawSpan, at: offset)
      offset += bytes.count
    }
    try sync()
  }

  /// Writes locator and footer, trims the file and syncs it. Readers go on with the locator in
  /// memory until MANIFEST has the row and ``Segment/seal(length:)`` is called.
  /// - Parameter reserved: what ``reserveTrailer()`` gave; nil to call it now.
  /// - Returns: the row for MANIFEST.
  package func seal(_ reserved: [UInt8]? = nil) throws(LogReadError) -> Manifest.Segment {
    let trailer = if let reserved { reserved } else { try reserveTrailer() }
    let sealedLength = length + trailer.count
    do {
      try file.writeFully(trailer.rawSpan, at: length)
      try file.truncate(to: sealedLength)
      allocated = sealedLength
      try sync()
    } catch { throw .system(error) }
    var sealed = row
    sealed.state = .sealed
    sealed.lastSequence = lastSequence
    sealed.length = sealedLength
    sealed.entryCount = entryCount
    sealed.rawBytes = rawBytes
    sealed.chain = chain
    sealed.latestTime = latestTime
    if PlantedBug.isOn(.lastEntryLostAtSealing), entryCount > 1 { sealed.lastSequence -= 1 }
    return sealed
  }
}
