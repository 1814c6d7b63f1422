extension Engine {
  /// Makes sure that a batch has its place: a segment of this opening, space on the disk.
  /// - Throws: `noSpace` and the like; then nothing has changed.
  func makeRoom(for bytes: Int, _ state: inout WriterState) throws(TidemarkError) {
    guard !state.ballast.isInUse else {
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
      configuration.segmentBytes, state.compactor.bound?.segmentBytes ?? .max,
      state.compactor.keepsReserve ? Limits.cacheReserveBytes : .max)
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
        growth: state.compactor.keepsReserve ? 0 : configuration.growthBytes)
    } catch { throw describe(error, while: "beginning a segment of the log") }
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
        try? environment.fileSystem.remove(path + "/" + appender.segment.fileName)
      }
      throw error
    }
    state.appender = appender
    reading.withLock { read in
      read.segments.append(appender.segment)
      read.usage.rows[row.id] = SpaceUsage.Row()
    }
    if old != nil { advanceDurable(to: state.written, &state) }
    lookAtCaches(&state)
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
      throw describe(error, while: "making space to seal a segment")
    }
    do {
      let sealed = try appender.seal(trailer)
      manifest.segments.removeAll { $0.id == sealed.id }
      manifest.segments.append(sealed)
      return sealed.length
    } catch {
      throw poison(
        &state, describe(error, while: "sealing a segment"), reason: "a segment is half sealed"
      )
    }
  }

  /// Draws a key for a new file.
  /// - Parameter id: the user's key that wraps it; nil for a file that is not encrypted.
  func newFileKey(_ id: Encryption.KeyID?) throws(TidemarkError) -> NewFileKey? {
    try keys.newFileKey(id, random: environment.randomBytes)
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
    let shown = manifest
    reading.withLock { $0.manifest = shown }
  }

  /// Seals what was written so far, so that all of the log is in sealed segments.
  package func sealSegments() throws(TidemarkError) {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      guard state.appender != nil else { return }
      try writeStaged(&state, mayCompress: true)
      try beginSegment(&state, isNewEpoch: false)
    }
  }
}
