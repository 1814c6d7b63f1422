/// Appends frames to the active segment and seals it.
package final class SegmentAppender {
  package let segment: Segment
  package let row: Manifest.Segment
  private let file: any File
  private let codecs: FrameCodecs
  /// Where the next frame goes.
  package private(set) var length: Int
  /// Up to here the file has space on the disk.
  private var allocated: Int
  private var growth = 256 << 10
  private var chain: UInt64 = 0
  private var entryCount = 0
  /// Of the entries that it holds, those still to be written among them.
  private(set) var rawBytes = 0
  private var latestTime: Timestamp?
  private var latestCommitTime: UInt64 = 0
  package private(set) var lastSequence: UInt64

  /// Creates the file of a new segment, with its header, and syncs it; MANIFEST must list the
  /// segment, and the directory be synced, before the first frame.
  package init(
    creating row: Manifest.Segment, storeID: [UInt8], storePath: String,
    fileSystem: any FileSystem, contexts: ZstdContexts
  ) throws(FileSystemError) {
    self.row = row
    let path = storePath + "/" + StoreLayout.logDirectory + "/" + row.fileName
    let file = try fileSystem.open(path, .create)
    let header = SegmentHeader(
      storeID: storeID, segmentID: row.id, baseSequence: row.firstSequence, salt: row.salt,
      kind: .appended)
    do {
      try file.allocate(to: FormatConstants.segmentHeaderBytes)
      try file.writeFully(header.encoded().rawSpan, at: 0)
      try file.sync()
    } catch {
      file.close()
      try? fileSystem.remove(path)
      throw error
    }
    self.file = file
    codecs = FrameCodecs(contexts: contexts)
    length = FormatConstants.segmentHeaderBytes
    allocated = length
    lastSequence = row.firstSequence - 1
    segment = Segment(
      row, storeID: storeID, storePath: storePath, fileSystem: fileSystem, contexts: contexts,
      file: file)
  }

  /// Takes up a segment that recovery has walked, in order to seal it.
  package init(
    recovered tail: RecoveredTail, row: Manifest.Segment, segment: Segment, file: any File,
    contexts: ZstdContexts
  ) {
    self.row = row
    self.segment = segment
    self.file = file
    codecs = FrameCodecs(contexts: contexts)
    length = tail.end
    allocated = tail.end
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
    growth = min(growth * 2, 8 << 20)
  }

  /// Notes what the frames written next carry, for the segment's statistics.
  package func note(rawBytes more: Int, time: Timestamp?, commitTime: UInt64) {
    rawBytes += more
    if let time { latestTime = max(latestTime ?? time, time) }
    latestCommitTime = max(latestCommitTime, commitTime)
  }

  /// Writes frames behind each other with one call, at the end of the segment.
  /// - Parameters:
  ///   - builders: the frames.
  ///   - durableThrough: the highest sequence known to be synced.
  ///   - level: zstd's level; nil stores raw.
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
        newChain = chained(frame.header, offset: offset, newChain)
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

  /// Writes a frame without entries, which carries `durableThrough` forward.
  package func writeEmptyFrame(durableThrough: UInt64) throws(LogReadError) {
    var output: [UInt8] = []
    let frame: BuiltFrame
    do {
      frame = try FrameBuilder.empty(
        nextSequence: lastSequence + 1, durableThrough: durableThrough, offset: length,
        salt: row.salt, codecs: codecs, appendingTo: &output)
    } catch { throw .format(error) }
    do {
      try reserve(output.count)
      try file.writeFully(output.rawSpan, at: length)
    } catch { throw .system(error) }
    chain = chained(frame.header, offset: length, chain)
    length += output.count
  }

  private func chained(_ header: FrameHeader, offset: Int, _ chain: UInt64) -> UInt64 {
    XXH64.hash(header.encoded(salt: row.salt, offset: offset).rawSpan, seed: chain)
  }

  package func sync() throws(FileSystemError) { try file.sync() }

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
    try file.sync()
  }

  /// Makes locator and footer, and space for them.
  /// - Returns: what ``seal(_:)`` is to write.
  package func prepareSeal() throws(FileSystemError) -> [UInt8] {
    let table = segment.table() ?? LocatorTable()
    var output = table.encoded(segmentID: row.id, firstSequence: row.firstSequence)
    let footer = SegmentFooter(
      segmentID: row.id, firstSequence: row.firstSequence, lastSequence: lastSequence,
      locatorOffset: length, blockCount: table.blocks.count, slotCount: table.slots.count,
      frameCount: table.frames.count, sequenceCount: 0, chain: chain, latestTime: latestTime,
      rawBytes: rawBytes, latestCommitTime: latestCommitTime)
    output.append(contentsOf: footer.encoded(salt: row.salt))
    try reserve(output.count)
    return output
  }

  /// Writes locator and footer, trims the file and syncs it.
  /// - Parameter trailer: from ``prepareSeal()``, with nothing written in between.
  /// - Returns: the row for MANIFEST.
  package func seal(_ trailer: [UInt8]) throws(FileSystemError) -> Manifest.Segment {
    try file.writeFully(trailer.rawSpan, at: length)
    let sealedLength = length + trailer.count
    try file.truncate(to: sealedLength)
    try file.sync()
    var sealed = row
    sealed.state = .sealed
    sealed.lastSequence = lastSequence
    sealed.length = sealedLength
    sealed.entryCount = entryCount
    sealed.rawBytes = rawBytes
    sealed.chain = chain
    sealed.latestTime = latestTime
    return sealed
  }
}
