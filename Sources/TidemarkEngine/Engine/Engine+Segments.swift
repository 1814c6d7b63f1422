extension Engine {
  /// Makes sure that a batch has its place: a segment of this opening, space on the disk.
  /// - Throws: `noSpace` and the like; then nothing has changed.
  func makeRoom(for bytes: Int, _ state: inout WriterState) throws(TidemarkError) {
    if state.appender == nil {
      try beginSegment(&state, isNewEpoch: true)
    } else if let appender = state.appender, !appender.isEmpty || state.stagedBytes > 0,
      appender.length + bytes + state.stagedBytes > configuration.segmentBytes
    {
      try writeStaged(&state, mayCompress: true)
      if appender.length + bytes > configuration.segmentBytes {
        try beginSegment(&state, isNewEpoch: false)
      }
    }
    do {
      // What `async` has staged already was reserved for with its own batch, but its bytes are
      // not in `length` yet.
      try state.appender?.reserve(bytes + state.stagedBytes * 2 + 4096)
    } catch { throw TidemarkError(error, while: "making space in the log") }
  }

  /// Seals the active segment, if there is one, and begins the next.
  ///
  /// Order: the new file with its header is synced, then its name, then the old segment is
  /// sealed and synced, then MANIFEST says both. A segment is listed before its first frame.
  ///
  /// All space that this takes is set aside before anything changes: a full disk leaves the
  /// writer as it was.
  func beginSegment(_ state: inout WriterState, isNewEpoch: Bool) throws(TidemarkError) {
    var row = Manifest.Segment(
      id: state.manifest.nextSegmentID, state: .active, kind: .appended,
      salt: UInt32(truncatingIfNeeded: environment.random.next()),
      firstSequence: state.sequence + 1)
    row.lastSequence = state.sequence
    // An id is never used again, though what was begun with it may come to nothing.
    state.manifest.nextSegmentID += 1
    var manifest = state.manifest
    if isNewEpoch {
      manifest.epochs.append(
        Manifest.Epoch(epoch: environment.random.next(), firstSequence: state.sequence + 1))
      if manifest.epochs.count > Limits.epochs { manifest.epochs.removeFirst() }
      manifest.isClosedCleanly = false
    }
    let (appender, trailer) = try prepareSegment(row, &manifest, state)
    let old = state.appender
    try sealActive(&state, trailer, in: &manifest)
    manifest.segments.append(row)
    try commitManifest(manifest, &state)
    state.appender = appender
    reading.withLock { read in
      read.segments.append(appender.segment)
      read.usage.supersededBytes[row.id] = 0
    }
    if old != nil { advanceDurable(to: state.written, &state) }
  }

  /// Creates the file of the next segment, and sets space aside for sealing the present one.
  /// - Throws: nothing has changed then.
  private func prepareSegment(
    _ row: Manifest.Segment, _ manifest: inout Manifest, _ state: WriterState
  ) throws(TidemarkError) -> (SegmentAppender, trailer: [UInt8]) {
    var next = manifest
    next.segments.append(row)
    try manifests.reserve(for: next, current: state.manifest)
    let trailer = try prepareSeal(state)
    let directory = path + "/" + StoreLayout.logDirectory
    do throws(FileSystemError) {
      manifest.bootID = try environment.fileSystem.bootIdentifier()
      let appender = try SegmentAppender(
        creating: row, storeID: manifest.storeID, storePath: path,
        fileSystem: environment.fileSystem, contexts: contexts)
      do throws(FileSystemError) { try environment.fileSystem.syncDirectory(directory) } catch {
        try? environment.fileSystem.remove(directory + "/" + row.fileName)
        throw error
      }
      return (appender, trailer)
    } catch { throw TidemarkError(error, while: "beginning a segment of the log") }
  }

  /// What sealing the active segment will write, with space set aside for it.
  func prepareSeal(_ state: WriterState) throws(TidemarkError) -> [UInt8] {
    guard let appender = state.appender, !appender.isEmpty else { return [] }
    do { return try appender.prepareSeal() } catch {
      throw TidemarkError(error, while: "making space in the log")
    }
  }

  /// Seals the active segment in a manifest that is about to be written; an empty one goes.
  func sealActive(
    _ state: inout WriterState, _ trailer: [UInt8], in manifest: inout Manifest
  ) throws(TidemarkError) {
    guard let appender = state.appender else { return }
    manifest.latestCommitTime = state.commitTime.rawValue
    manifest.lastSequence = state.sequence
    guard !appender.isEmpty else {
      manifest.segments.removeAll { $0.id == appender.row.id }
      return
    }
    do {
      let sealed = try appender.seal(trailer)
      manifest.segments.removeAll { $0.id == sealed.id }
      manifest.segments.append(sealed)
      appender.segment.seal(length: sealed.length)
    } catch {
      throw poison(
        &state, TidemarkError(error, while: "sealing a segment"), reason: "a segment is half sealed"
      )
    }
  }

  /// Writes MANIFEST and takes it over.
  /// - Throws: `noSpace` with nothing changed; `unknownOutcome` when a write failed midway.
  func updateManifest(
    _ manifest: Manifest, _ state: inout WriterState
  ) throws(TidemarkError) {
    try manifests.reserve(for: manifest, current: state.manifest)
    try commitManifest(manifest, &state)
  }

  /// Writes MANIFEST, for which there is space, and takes it over.
  func commitManifest(
    _ manifest: Manifest, _ state: inout WriterState
  ) throws(TidemarkError) {
    var manifest = manifest
    do {
      try manifests.update(&manifest)
    } catch {
      throw poison(&state, error, reason: "writing MANIFEST failed midway")
    }
    state.manifest = manifest
    let shown = manifest
    reading.withLock { $0.manifest = shown }
  }

  /// Seals what was written so far, so that all of the log is in sealed segments.
  package func sealSegments() throws(TidemarkError) {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      guard let appender = state.appender else { return }
      try writeStaged(&state, mayCompress: true)
      if !appender.isEmpty { try beginSegment(&state, isNewEpoch: false) }
    }
  }
}
