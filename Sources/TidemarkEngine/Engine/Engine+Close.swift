extension Engine {
  /// Closes the store: everything committed is made durable, the active segment is sealed, and
  /// MANIFEST says that all is well. Further calls do nothing.
  package func close() throws(TidemarkError) {
    var failure: TidemarkError?
    do { try finishWriting() } catch { failure = error }
    let lock: (any FileLock)? = writer.withLock { state in
      // What was acknowledged and could not be made durable must not go unsaid.
      if !state.isClosed, state.durable < state.sequence { failure = failure ?? state.poison }
      state.isClosed = true
      state.appender = nil
      defer { state.lock = nil }
      return state.lock
    }
    reading.withLock { read in
      read.isClosed = true
      read.segments = []
      read.staged = []
    }
    lock?.release()
    writer.broadcast()
    notifyObservers()
    if let failure { throw failure }
  }

  private func finishWriting() throws(TidemarkError) {
    let hasWritten = try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      guard !state.isClosed, state.canWrite, !state.manifest.isClosedCleanly, state.poison == nil
      else { return false }
      try writeStaged(&state, mayCompress: true)
      return true
    }
    guard hasWritten else { return }
    try flush()
    if configuration.writesImageOnClose, imageIsCheapOrDue() { try writeImage() }
    try mergeSmallSegments()
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      // Others may have written since the flush; what they wrote is sealed and synced with the
      // rest, and nobody writes after that.
      try writeStaged(&state, mayCompress: true)
      var manifest = state.manifest
      let emptied = state.appender.flatMap { $0.isEmpty ? $0.segment.fileName : nil }
      try manifests.reserve(for: manifest, current: manifest)
      try sealActive(&state, prepareSeal(state), in: &manifest)
      manifest.isClosedCleanly = true
      try commitManifest(manifest, &state)
      advanceDurable(to: state.written, &state)
      state.isClosed = true
      state.appender = nil
      if let emptied { try? environment.fileSystem.remove(path + "/" + emptied) }
    }
  }

  /// Whether an image on close pays: when what came since the last one would take longer to
  /// replay than an image of all keys takes to write.
  private func imageIsCheapOrDue() -> Bool {
    let since = writer.withLock { $0.bytesSinceImage }
    let (keys, covered, visible) = reading.withLock { read in
      (read.index.liveKeys, read.manifest.images.last?.sequence ?? 0, read.visible)
    }
    let entries = Int(clamping: visible - min(visible, covered))
    guard since > 0, entries > 0 else { return false }
    return entries >= Limits.imageOnCloseEntries && entries * 4 >= keys
  }
}
