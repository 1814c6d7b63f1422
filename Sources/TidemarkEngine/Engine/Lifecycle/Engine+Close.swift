extension Engine {
  /// Whether the store has let go of its files; see `suspend`.
  package var isSuspended: Bool { reading.withLock { $0.isSuspended } }

  /// Whether the store was closed.
  package var isClosed: Bool { reading.withLock { $0.isClosed } }

  /// Closes the store: everything committed is made durable, the active segment is sealed, and
  /// MANIFEST says that all is well. Further calls do nothing.
  /// A compaction under way fails with `closed`; what it has rewritten by then stays so.
  /// - Throws: why that failed, `unknownOutcome` also when an earlier write or sync in the
  ///   background had failed and what was written since the last sync may be lost. The store is
  ///   closed in any case.
  package func close() throws(TidemarkError) {
    defer { notifyObservers() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in try letGo(.closed) }
  }

  /// Closes the store until it is resumed. Reads and writes fail with `suspended` from then on, and
  /// so does a compaction, a run of the index or a backup under way. Further calls do nothing.
  /// - Throws: `closed`; what closing throws. The store is suspended all the same, and resuming
  ///   opens it as after the process was killed.
  package func suspend() throws(TidemarkError) {
    defer { notifyObservers() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in
      if isClosed { throw TidemarkError(.closed, "the store is closed") }
      guard !isSuspended else { return }
      try letGo(.suspended)
    }
  }

  private enum Ending {
    case closed, suspended
  }

  private func letGo(_ ending: Ending) throws(TidemarkError) {
    var failure: TidemarkError?
    stopAutomaticCompaction()
    repeat {
      do throws(TidemarkError) {
        try withBallast { () throws(TidemarkError) in try finishWriting() }
      } catch { failure = error }
    } while !refuseWrites(ending, hasFailed: failure != nil)
    if failure == nil || failure?.code == .noSpace { provideBallast() }
    waitForBallast()
    reading.withLock { read in
      read.isClosed = ending == .closed
      read.isSuspended = ending == .suspended
      isOpen.isSet = false
      read.segments = []
      read.leaveStaged()
    }
    writer.wait { !$0.isSyncing }
    // A rewrite of the log on another thread meets the refusal and clears up behind itself: while
    // the lock is held, since the names that it takes away may be those of the next opening.
    files.stopWriting(beneath: path)
    writer.wait { !$0.compactor.isRunning && !$0.runs.isWriting }
    let discarded = reading.withLock { $0.index.removeAll() }
    let lock: (any FileLock)? = writer.withLock { state in
      defer { state.lock = nil }
      return state.lock
    }
    hotCache.removeAll()
    objects.removeAll()
    switch ending {
    // A backup goes on: it has its files, and writes elsewhere.
    case .closed: packer?.stop()
    case .suspended:
      caches.removeAll()
      files.close()
    }
    lock?.release()
    writer.broadcast()
    _ = discarded
    if let failure { throw failure }
  }

  /// Refuses writes from now on.
  /// - Returns: false when something was written meanwhile, which is to be sealed first.
  private func refuseWrites(_ ending: Ending, hasFailed: Bool) -> Bool {
    writer.withLock { state in
      guard hasFailed || state.poison != nil || state.appender == nil else { return false }
      state.isClosed = ending == .closed
      state.isSuspended = ending == .suspended
      state.appender = nil
      return true
    }
  }

  /// Makes everything durable, seals it and says so in MANIFEST, if anything was written.
  private func finishWriting() throws(TidemarkError) {
    let hasWritten = try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      guard !state.isClosed, !state.isSuspended, state.canWrite else { return false }
      if let poison = state.poison {
        guard state.sequence > state.durable else { return false }
        throw poison
      }
      guard !state.manifest.isClosedCleanly else { return false }
      try writeStaged(&state, mayCompress: true)
      return true
    }
    guard hasWritten else { return }
    try flush()
    // Steps that only make the next opening faster must not stand in the way of a clean close.
    var optional: TidemarkError?
    do throws(TidemarkError) {
      if configuration.writesImageOnClose, runIsDue() { try writeRun(.brief) }
      try mergeSmallSegments()
    } catch { optional = error }
    if let optional, optional.code == .unknownOutcome { throw optional }
    try sealAll()
    // On a full disk the next opening takes longer; nothing is wrong with what was written.
    if let optional, optional.code != .noSpace { throw optional }
  }

  private func sealAll() throws(TidemarkError) {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      // Others may have written since the flush; what they wrote is sealed and synced with the
      // rest.
      try writeStaged(&state, mayCompress: true)
      var manifest = state.manifest
      let appender = state.appender
      let emptied = appender.flatMap { $0.isEmpty ? $0.segment.fileName : nil }
      let sealed = try sealActive(&state, in: &manifest)
      manifest.isClosedCleanly = true
      try updateManifest(manifest, &state)
      if let sealed { appender?.segment.seal(length: sealed) }
      advanceDurable(to: state.written, &state)
      state.appender = nil
      if let emptied { try? environment.fileSystem.remove(path + "/" + emptied) }
    }
  }

  /// Whether something came after the newest run: an opening should find nothing to replay.
  private func runIsDue() -> Bool {
    reading.withLock { $0.visible > $0.index.runs.sequence }
  }
}
