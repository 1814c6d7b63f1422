extension Engine {
  /// The state after the last write.
  enum Ending {
    case closed, suspended
  }

  /// Closes the store: everything committed is made durable, the active segment is sealed, and
  /// MANIFEST says that all is well. Further calls do nothing.
  /// A compaction under way fails with `closed`; what it has rewritten by then stays so.
  /// - Throws: why that failed, `unknownOutcome` also when an earlier write or sync in the
  ///   background had failed and what was written since the last sync may be lost. The store is
  ///   closed in any case.
  package func close() throws(TidemarkError) {
    defer { notifyObservers() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in try closeLocked() }
  }

  private func closeLocked() throws(TidemarkError) {
    var failure: TidemarkError?
    stopAutomaticCompaction()
    do throws(TidemarkError) {
      try withBallast { () throws(TidemarkError) in try finishWriting(.closed) }
    } catch { failure = error }
    if failure == nil || failure?.code == .noSpace { provideBallast() }
    waitForBallast()
    writer.withLock { state in
      state.isClosed = true
      state.appender = nil
    }
    reading.withLock { read in
      read.isClosed = true
      isOpen.isSet = false
      read.segments = []
      read.staged = []
      read.nextFrame = FrameBuilder()
      read.underWay = nil
    }
    // A rewrite of the log on another thread meets the refusal and clears up behind itself:
    // while the lock is held, since the names it takes away may be those of the next opening. A
    // backup goes on: it has its files, and writes elsewhere.
    files.refuseGrowth(beneath: path)
    writer.wait { !$0.compactor.isRunning && !$0.runs.isWriting }
    packer?.stop()
    let discarded = reading.withLock { $0.index.removeAll() }
    let lock: (any FileLock)? = writer.withLock { state in
      defer { state.lock = nil }
      return state.lock
    }
    hotCache.removeAll()
    objects.removeAll()
    lock?.release()
    writer.broadcast()
    _ = discarded
    if let failure { throw failure }
  }

  /// Makes everything durable, seals it and says so in MANIFEST, if anything was written.
  func finishWriting(_ ending: Ending) throws(TidemarkError) {
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
      // An engine that is put to sleep has little time, and keeps the index in memory.
      if ending == .closed {
        if configuration.writesImageOnClose, runIsDue() { try writeRun(.brief) }
        try mergeSmallSegments()
      }
    } catch { optional = error }
    if let optional, optional.code == .unknownOutcome { throw optional }
    try sealAll(ending)
    // On a full disk the next opening takes longer; nothing is wrong with what was written.
    if let optional, optional.code != .noSpace { throw optional }
  }

  private func sealAll(_ ending: Ending) throws(TidemarkError) {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      // Others may have written since the flush; what they wrote is sealed and synced with the
      // rest, and nobody writes after that.
      try writeStaged(&state, mayCompress: true)
      var manifest = state.manifest
      let appender = state.appender
      let emptied = appender.flatMap { $0.isEmpty ? $0.segment.fileName : nil }
      let sealed = try sealActive(&state, in: &manifest)
      manifest.isClosedCleanly = true
      try updateManifest(manifest, &state)
      if let sealed { appender?.segment.seal(length: sealed) }
      advanceDurable(to: state.written, &state)
      switch ending {
      case .closed: state.isClosed = true
      case .suspended: state.isSuspended = true
      }
      state.appender = nil
      if let emptied { try? environment.fileSystem.remove(path + "/" + emptied) }
    }
  }

  /// Whether something came after the newest run: an opening should find nothing to replay.
  private func runIsDue() -> Bool {
    reading.withLock { $0.visible > $0.index.runs.sequence }
  }
}
