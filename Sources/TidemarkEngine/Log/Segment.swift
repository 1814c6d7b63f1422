/// A segment file of the log, for reading on any thread; opened on first use. While it is the
/// active segment its ``SegmentAppender`` adds to the locator in memory what it has written.
///
/// Readers hold on to it: a segment that compaction has replaced and unlinked stays readable until
/// the last of them lets go. If it was not opened before, its reads fail as `damaged`; a reader
/// then sees that the segment is not in the log any more and looks for its entry in the new one.
package final class Segment: Sendable {
  package let id: UInt64
  package let firstSequence: UInt64
  package let salt: UInt32
  package let kind: SegmentHeader.Kind
  /// Relative to the store's directory.
  package let fileName: String
  private let fileSystem: any FileSystem
  private let path: String
  private let storeID: [UInt8]
  private let contexts: ZstdContexts
  /// The user's key with which the segment is encrypted; nil when it is not.
  package let keyID: Encryption.KeyID?
  private let keys: KeyRing
  /// Not reentrant: what gets a `State` must not call what locks, as `file()` and `range` do.
  private let state: Lock<State>
  /// Locator of the sealed file, and codecs: set by the first reader, then read without the lock.
  private let sealed = OnceReference<SealedLocator>()
  private let readyCodecs = OnceReference<FrameCodecs>()
  /// Bytes that reads of single values have decompressed and not returned, for an appended segment:
  /// what decides whether automatic compaction rewrites it in smaller blocks.
  let decodedBytes = AtomicCounter()

  private struct State {
    var file: (any File)?
    /// The locator while the segment is appended to; nil once it is sealed.
    var table: LocatorTable?
    var sealedLength: Int?
    var lastSequence: UInt64
  }

  package init(
    _ row: Manifest.Segment, storeID: [UInt8], storePath: String, fileSystem: any FileSystem,
    contexts: ZstdContexts, keys: KeyRing, file: (any File)? = nil
  ) {
    id = row.id
    firstSequence = row.firstSequence
    salt = row.salt
    kind = row.kind
    fileName = StoreLayout.logDirectory + "/" + row.fileName
    path = storePath + "/" + fileName
    self.fileSystem = fileSystem
    self.storeID = storeID
    self.contexts = contexts
    self.keys = keys
    keyID = row.keyID
    state = Lock(
      State(
        file: file, table: row.state == .active ? LocatorTable() : nil,
        sealedLength: row.state == .sealed ? row.length : nil,
        lastSequence: row.lastSequence))
  }

  deinit { state.withLock { $0.file?.close() } }

  /// The highest sequence that the segment covers; below `firstSequence` when there is none.
  package var lastSequence: UInt64 { state.withLock { $0.lastSequence } }

  package var isSealed: Bool { state.withLock { $0.sealedLength != nil } }

  /// Bytes of the locator in memory.
  package var memoryBytes: Int {
    state.withLock { $0.table?.memoryBytes } ?? sealed.object?.memoryBytes ?? 0
  }

  package func file() throws(TidemarkError) -> any File {
    try state.withLock { (state: inout State) throws(TidemarkError) in try open(&state) }
  }

  /// The decoder of this segment's frames.
  package func codecs() throws(TidemarkError) -> FrameCodecs {
    if let codecs = readyCodecs.object { return codecs }
    return try state.withLock { (state: inout State) throws(TidemarkError) in try codecs(&state) }
  }

  private func codecs(_ state: inout State) throws(TidemarkError) -> FrameCodecs {
    if let codecs = readyCodecs.object { return codecs }
    let file = try open(&state)
    let key = try keyID.map { (id) throws(TidemarkError) in try keys.key(id) }
    do throws(LogReadError) {
      let header = try SegmentReader.header(file)
      guard header.storeID == storeID, header.segmentID == id, header.salt == salt,
        header.seal?.keyID == keyID
      else { throw LogReadError.format(FormatError("header of another segment")) }
      let sealer: BlockSealer?
      do throws(FormatError) {
        sealer = try key.flatMap { (key) throws(FormatError) in
          try header.seal?.sealer(key: key, fileID: id)
        }
      } catch { throw .format(error) }
      let codecs = try SegmentReader.codecs(
        file, header: header, contexts: contexts, sealer: sealer)
      return readyCodecs.set(codecs)
    } catch { throw damage(error, offset: 0, sequences: range(state)) }
  }

  private func open(_ state: inout State) throws(TidemarkError) -> any File {
    if let file = state.file { return file }
    do {
      let file = try fileSystem.open(path, .read)
      state.file = file
      return file
    } catch {
      if error.number == ErrorNumber.noEntry {
        throw TidemarkError(
          .damaged, "a file of the log is missing; repair what is left into a new store",
          file: fileName, offset: 0, sequences: range(state), cause: error)
      }
      throw TidemarkError(error, while: "opening the log")
    }
  }

  /// The sequences that the segment covers, for messages.
  package var range: ClosedRange<UInt64> { state.withLock { range($0) } }

  /// Like `range`, for callers that hold the lock.
  private func range(_ state: State) -> ClosedRange<UInt64> {
    firstSequence...max(firstSequence, state.lastSequence)
  }

  /// Turns what a read met into an error that says where.
  /// - Parameter sequences: those concerned; nil for all, which takes the lock.
  package func damage(
    _ error: LogReadError, offset: Int, sequences: ClosedRange<UInt64>? = nil
  ) -> TidemarkError {
    switch error {
    case .system(let error): TidemarkError(error, while: "reading the log")
    case .format(let error):
      TidemarkError(
        error.isNewer ? .formatTooNew : .damaged,
        error.isNewer
          ? "the log was written by a later version (\(error.reason)); use that or a newer one"
          : "damage in the log: \(error.reason); run verify, then repair into a new store",
        file: fileName, offset: offset, sequences: sequences ?? range)
    }
  }

  /// Adds frames to the locator in memory. They are in the file already: readers may come at once.
  package func append(_ frames: [(BuiltFrame, offset: Int)], lastSequence: UInt64) {
    state.withLock { state in
      for (frame, offset) in frames {
        state.table?.append(
          header: frame.header, offset: offset, blocks: frame.blocks, places: frame.places,
          holdsRecords: frame.holdsRecords)
      }
      state.lastSequence = max(state.lastSequence, lastSequence)
    }
  }

  /// Like ``append(_:lastSequence:)``, for a frame of one entry.
  func append(_ frame: borrowing SingleFrame, offset: Int) {
    let (header, block) = (frame.header, frame.block)
    state.withLock { state in
      state.table?.append(single: header, offset: offset, block: block)
      state.lastSequence = max(state.lastSequence, header.firstSequence)
    }
  }

  /// Takes over the locator that recovery has worked out.
  package func adopt(_ table: LocatorTable, lastSequence: UInt64) {
    state.withLock { state in
      state.table = table
      state.lastSequence = lastSequence
    }
  }

  /// The locator in memory, for sealing.
  package func table() -> LocatorTable? { state.withLock { $0.table } }

  /// Switches from the locator in memory to the one in the file, once MANIFEST calls it sealed.
  package func seal(length: Int) {
    state.withLock { state in
      state.sealedLength = length
      state.table = nil
    }
  }

  /// Bytes of the file in use: of an active segment but for the heads of a frame without values.
  package func usedLength() -> Int {
    state.withLock { state in
      if let sealed = state.sealedLength { return sealed }
      guard let frame = state.table?.frames.last else { return FormatConstants.segmentHeaderBytes }
      guard let last = state.table?.blocks.last else {
        return Int(frame.offset) + FormatConstants.frameHeaderBytes
      }
      return max(Int(last.offset) + Int(last.storedLength), Int(frame.offset))
    }
  }

  /// Calls one of two bodies with the locator, whichever kind it is.
  /// - Parameter active: runs while the lock is held, so that it must not call the segment.
  @inline(__always)
  package func withLocator<R>(
    active: (LocatorTable) throws(TidemarkError) -> R,
    sealed: (SealedLocator) throws(LogReadError) -> R
  ) throws(TidemarkError) -> R {
    var locator = self.sealed.object
    if locator == nil {
      // In one hold of the lock: the table is gone as soon as the segment is sealed.
      let answer = try state.withLock { (state: inout State) throws(TidemarkError) -> R? in
        if let table = state.table { return try active(table) }
        locator = try self.locator(&state)
        return nil
      }
      if let answer { return answer }
    }
    guard let locator else { throw damage(.format(FormatError("no locator")), offset: 0) }
    do throws(LogReadError) { return try sealed(locator) } catch {
      throw damage(error, offset: locator.footer.locatorOffset)
    }
  }

  private func locator(_ state: inout State) throws(TidemarkError) -> SealedLocator {
    if let sealed = sealed.object { return sealed }
    let file = try open(&state)
    // A locator that is not encrypted needs nothing of the header.
    let codecs = keyID == nil ? FrameCodecs(contexts: contexts) : try codecs(&state)
    do throws(LogReadError) {
      let locator = try SegmentReader.locator(
        file, segment: self, length: state.sealedLength ?? 0, codecs: codecs)
      return sealed.set(locator)
    } catch {
      throw damage(error, offset: max(0, (state.sealedLength ?? 0) - 1), sequences: range(state))
    }
  }
}

extension [Segment] {
  /// The last segment, of those in order, that begins at or before a sequence; nil where none does.
  /// It need not hold the sequence, which a compaction may have dropped.
  func covering(_ sequence: UInt64) -> Segment? {
    // Every read comes by here: a generic search allocates where nothing specializes it.
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].firstSequence <= sequence { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : self[low - 1]
  }
}
