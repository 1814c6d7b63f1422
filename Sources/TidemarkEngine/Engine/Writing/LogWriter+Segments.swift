extension LogWriter {
  /// Makes sure that a batch has its place: a segment of this opening, space on the disk.
  /// - Throws: `noSpace` and the like; then nothing has changed.
  func makeRoom(for bytes: Int, _ state: inout WriterState) throws(TidemarkError) {
    guard !ballast.isInUse.isSet else {
      throw TidemarkError(
        .noSpace,
        "the disk is full, and its last space is needed to close or compact the store; free "
          + "space, or try again later")
    }
    if state.appender == nil {
      try beginSegment(&state, isNewEpoch: true)
    } else if let appender = state.appender, !appender.isEmpty || state.stagedBytes > 0,
      isFull(appender.length + bytes + state.stagedBytes, state)
    {
      try writeStaged(&state, mayCompress: true)
      if appender.length + bytes > segmentBytes(state) {
        try beginSegment(&state, isNewEpoch: false)
      }
    }
    do {
      // Batches that `async` has staged already were reserved for, but their bytes are not in
      // `length` yet.
      try state.appender?.reserve(bytes + state.stagedBytes * 2 + 4096)
    } catch { throw TidemarkError(error, while: "making space in the log") }
  }

  /// Whether the active segment is to be sealed before it gets so long.
  ///
  /// Sealing syncs it, while all who write wait. So a little more goes into it as long as a sync is
  /// under way or much is not synced yet, which the background sees to.
  private func isFull(_ length: Int, _ state: WriterState) -> Bool {
    let full = segmentBytes(state)
    guard length > full else { return false }
    guard state.isSyncing || state.unsyncedBytes > Limits.unsyncedBytesAtSealing else {
      return true
    }
    return length > full + full / 8
  }

  /// Length in bytes at which the active segment is sealed. Where puts keep free space for
  /// compaction, it is no longer than that space, so that rewriting any segment succeeds.
  func segmentBytes(_ state: borrowing WriterState) -> Int {
    min(
      configuration.segmentBytes, state.limits.segmentBytes,
      state.limits.keepsReserve ? Limits.cacheReserveBytes : .max)
  }

  /// Seals the active segment, if there is one, and begins the next.
  ///
  /// Order: the new file with its header is synced, then its name, then the old segment is
  /// sealed and synced, then MANIFEST says both. A segment is listed before its first frame.
  /// One that has none yet goes on: readers find entries by the first sequences of segments, so
  /// that no two may have the same.
  func beginSegment(_ state: inout WriterState, isNewEpoch: Bool) throws(TidemarkError) {
    if let appender = state.appender, appender.isEmpty { return }
    var row = Manifest.Segment(
      id: state.manifest.nextSegmentID, state: .active, kind: .appended,
      salt: UInt32(truncatingIfNeeded: environment.random.next()),
      firstSequence: state.sequence + 1)
    row.lastSequence = state.sequence
    // Counted up whatever comes, since a file that is left over would be in the next one's way.
    state.manifest.nextSegmentID += 1
    var manifest = state.manifest
    row.keyID = try keys.current()
    let fileKey = try newFileKey(row.keyID)
    if isNewEpoch {
      manifest.epochs.append(
        Manifest.Epoch(epoch: environment.random.next(), firstSequence: state.sequence + 1))
      if manifest.epochs.count > Limits.epochs { manifest.epochs.removeFirst() }
      manifest.isClosedCleanly = false
    }
    var next = manifest
    next.segments.append(row)
    try manifests.reserve(for: next, current: state.manifest)
    let appender: SegmentAppender
    do throws(LogReadError) {
      do { manifest.bootID = try environment.fileSystem.bootIdentifier() } catch {
        throw .system(error)
      }
      appender = try SegmentAppender(
        creating: row, storeID: manifest.storeID, storePath: path,
        fileSystem: environment.fileSystem, contexts: contexts, keys: keys, fileKey: fileKey,
        growth: state.limits.keepsReserve ? 0 : configuration.growthBytes)
    } catch { throw TidemarkError(error, while: "beginning a segment of the log") }
    let old = state.appender
    do throws(TidemarkError) {
      try syncLogDirectory()
      let sealed = try sealActive(&state, in: &manifest)
      manifest.segments.append(row)
      try updateManifest(manifest, &state)
      if let sealed { old?.segment.seal(length: sealed) }
    } catch {
      // MANIFEST may list it by now if its update stopped midway; then the file must stay.
      if state.poison == nil {
        discard(appender.segment.fileName)
      }
      throw error
    }
    state.appender = appender
    reader.add(appender.segment)
    if old != nil { advanceDurable(to: state.written, &state) }
  }

  /// Makes the names of segments durable.
  private func syncLogDirectory() throws(TidemarkError) {
    if PlantedBug.isOn(.logDirectoryNotSynced) { return }
    do { try environment.fileSystem.syncDirectory(path + "/" + StoreLayout.logDirectory) } catch {
      throw TidemarkError(error, while: "beginning a segment of the log")
    }
  }

  /// Seals the active segment in a manifest that is about to be written; an empty one goes.
  /// - Returns: its length, to be told to the segment once MANIFEST is written.
  func sealActive(
    _ state: inout WriterState, in manifest: inout Manifest
  ) throws(TidemarkError) -> Int? {
    guard let appender = state.appender else { return nil }
    try checkLock(&state)
    manifest.latestCommitTime = state.commitTime.rawValue
    manifest.lastSequence = state.sequence
    guard !appender.isEmpty else {
      manifest.segments.removeAll { $0.id == appender.row.id }
      return nil
    }
    // While nothing is written yet a full disk is only that.
    let trailer: [UInt8]
    do { trailer = try appender.reserveTrailer() } catch {
      throw TidemarkError(error, while: "making space to seal a segment")
    }
    do {
      let sealed = try appender.seal(trailer)
      manifest.segments.removeAll { $0.id == sealed.id }
      manifest.segments.append(sealed)
      return sealed.length
    } catch {
      throw poison(
        &state, TidemarkError(error, while: "sealing a segment"), reason: "a segment is half sealed"
      )
    }
  }

  /// Writes MANIFEST and takes it over.
  func updateManifest(
    _ manifest: Manifest, _ state: inout WriterState
  ) throws(TidemarkError) {
    var manifest = manifest
    // A store may have been opened with another key for new files than it had before.
    manifest.keyID = try keys.current()
    let current = state.manifest
    try checkLock(&state)
    do { try manifests.reserve(for: manifest, current: current) } catch {
      // Both copies take little, so that the rest of the ballast stays what it is.
      let needed = 2 * manifest.encoded(sparing: 512).count
      guard error.code == .noSpace, ballast.release(needed) else { throw error }
      try manifests.reserve(for: manifest, current: current)
    }
    do {
      try manifests.advance(&manifest)
    } catch {
      // Before its first byte nothing has changed: a full disk is only that.
      guard error.hasBegun else { throw error.cause }
      throw poison(&state, error.cause, reason: "writing MANIFEST failed midway")
    }
    state.manifest = manifest
    reader.show(manifest)
  }

  /// Seals what was written so far, so that all of the log is in sealed segments.
  /// - Parameter isDue: whether to do that, for the segment that is appended to and its raw bytes.
  package func sealSegments(
    if isDue: (UInt64, Int) -> Bool = { _, _ in true }
  ) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      guard let appender = state.appender, isDue(appender.row.id, appender.rawBytes) else { return }
      try writeStaged(&state, mayCompress: true)
      try beginSegment(&state, isNewEpoch: false)
    }
  }

  /// Gives up the active segment when nothing is in it, since it has the old key.
  func retireEmptySegment(_ state: inout WriterState) throws(TidemarkError) {
    guard let appender = state.appender, appender.isEmpty else { return }
    var manifest = state.manifest
    manifest.segments.removeAll { $0.id == appender.row.id }
    try updateManifest(manifest, &state)
    state.appender = nil
    reader.remove(appender.segment)
    discard(appender.segment.fileName)
  }
}
