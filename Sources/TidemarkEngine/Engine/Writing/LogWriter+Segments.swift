extension LogWriter {
  /// Makes sure that there is an active segment with space on the disk for a batch.
  /// - Throws: `noSpace` and the like; then the batch has changed nothing.
  func makeRoom(for bytes: Int, _ state: inout WriterState) throws(TidemarkError) {
    // While closing or compaction uses the disk's last space, an ordinary write must not take it.
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
      // Twice the staged bytes: those are not in the appender's length yet.
      try state.appender?.reserve(bytes + state.stagedBytes * 2 + 4096)
    } catch { throw TidemarkError(error, while: "making space in the log") }
  }

  /// Whether the active segment is to be sealed before it gets so long.
  /// Sealing syncs while all writers wait. So the segment may grow by an eighth as long as a sync
  /// is under way, or so much is unsynced that the background thread is about to sync it.
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
  /// Callers have written what was staged: the new segment begins above `state.sequence`.
  /// Order: the new file with its header is synced, then its name, then the old segment is
  /// sealed and synced, then MANIFEST lists both. So a segment is listed before its first frame.
  /// An active segment without entries stays active: readers find entries by the first sequences
  /// of segments, so that no two may have the same.
  /// - Parameter isNewEpoch: whether a new epoch begins, as at the first write of an opening: a
  ///   random number, since sequences that a crash took back are given out again.
  func beginSegment(_ state: inout WriterState, isNewEpoch: Bool) throws(TidemarkError) {
    if let appender = state.appender, appender.isEmpty { return }
    var row = Manifest.Segment(
      id: state.manifest.nextSegmentID, state: .active, kind: .appended,
      salt: UInt32(truncatingIfNeeded: environment.random.next()),
      firstSequence: state.sequence + 1)
    row.lastSequence = state.sequence
    // Counted up even if this fails: a leftover file of the same name would be in the way.
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
      do { manifest.bootID = try environment.bootIdentifier() } catch { throw .system(error) }
      appender = try SegmentAppender(
        creating: row, storeID: manifest.storeID, storePath: path,
        fileSystem: environment.fileSystem, contexts: contexts, keys: keys, fileKey: fileKey,
        growth: state.limits.keepsReserve ? 0 : configuration.growthBytes)
    } catch { throw TidemarkError(error, while: "beginning a segment of the log") }
    let old = state.appender
    let start = store.eventStart()
    do throws(TidemarkError) {
      if !PlantedBug.isOn(.logDirectoryNotSynced) {
        do { try fileSystem.syncDirectory(path + "/" + StoreLayout.logDirectory) } catch {
          throw TidemarkError(error, while: "beginning a segment of the log")
        }
      }
      let sealed = try sealActive(&state, in: &manifest)
      manifest.segments.append(row)
      try updateManifest(manifest, &state)
      if let sealed, let old {
        old.segment.seal(length: sealed)
        let row = manifest.segments.first { $0.id == old.row.id }
        store.tell(
          .sealed, from: start,
          entries: row.map { Int(clamping: $0.lastSequence &- $0.firstSequence &+ 1) } ?? 0,
          bytes: sealed)
      }
    } catch {
      // Poisoned: MANIFEST may list the new file already, so the file must stay.
      if state.poison == nil { discard(appender.segment.fileName) }
      throw error
    }
    state.appender = appender
    reader.add(appender.segment)
    // Sealing has synced the old segment, which holds everything written so far.
    if old != nil { advanceDurable(to: state.written, &state) }
  }

  /// Seals the active segment and says so in a manifest that the caller writes next; a segment
  /// without entries goes from the list, and the caller removes its file.
  /// - Returns: the length for `Segment.seal`, after which readers use the locator in the file.
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
    // The trailer's space comes first: a full disk then is an error before anything is written.
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

  /// Writes both copies of MANIFEST and makes it the state of writer and readers.
  func updateManifest(_ manifest: Manifest, _ state: inout WriterState) throws(TidemarkError) {
    var manifest = manifest
    // A store may have been opened with another key for new files than it had before.
    manifest.keyID = try keys.current()
    let current = state.manifest
    try checkLock(&state)
    do { try manifests.reserve(for: manifest, current: current) } catch {
      // Only what both copies need is taken from the ballast (disk space held in reserve).
      let needed = 2 * manifest.encoded(sparing: 512).count
      guard error.code == .noSpace, ballast.file.release(needed) else { throw error }
      try manifests.reserve(for: manifest, current: current)
    }
    do { try manifests.advance(&manifest) } catch {
      // Before the first byte is written nothing has changed, so the writer goes on.
      guard error.hasBegun else { throw error.cause }
      throw poison(&state, error.cause, reason: "writing MANIFEST failed midway")
    }
    state.manifest = manifest
    reader.show(manifest)
  }

  /// Seals what was written so far, so that all of the log is in sealed segments.
  /// - Parameter isDue: gets the active segment's id and raw bytes, and says whether to seal it.
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

  /// Removes the active segment if it has no entries, so that the next write begins one with the
  /// new key. The file goes last: until MANIFEST is written it lists the segment.
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
