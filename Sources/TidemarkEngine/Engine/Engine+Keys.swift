extension KeyRing {
  /// Opens an image with the key that its header names.
  func image(_ file: any File) throws(IndexError) -> Image {
    try Image(file: file) { (id) throws(FormatError) in
      do throws(TidemarkError) { return try key(id) } catch {
        throw FormatError(error.message)
      }
    }
  }
}

extension Engine {
  /// Begins a change of keys: from here on everything new is encrypted with another key.
  ///
  /// MANIFEST lists both keys until nothing is left that needs the old one, so that a crash
  /// leaves a store which opens with both, and the change can be begun again.
  func adopt(_ encryption: Encryption) throws(TidemarkError) {
    try betweenRuns { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      try writeStaged(&state, mayCompress: true)
      let former = try keys.adopt(encryption)
      do throws(TidemarkError) { try updateManifest(state.manifest, &state) } catch {
        if state.poison == nil { keys.abandon(for: former) }
        throw error
      }
      try retireEmptySegment(&state)
    }
    // The quarantine's files were encrypted with the old key or not at all.
    try Quarantine(environment.fileSystem, storePath: path).removeAll()
  }

  /// Calls `body` with the writer's lock while no run of the index is being written.
  /// - Throws: what `body` throws; `busy` when runs are written all the while.
  func betweenRuns(
    _ body: (inout WriterState) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    for _ in 0..<Limits.imageAttempts {
      writer.wait { !$0.runs.isWriting }
      let isDone = try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
        guard !state.runs.isWriting else { return false }
        try body(&state)
        return true
      }
      if isDone { return }
    }
    throw TidemarkError(.busy, "runs of the index were written all the while; try again later")
  }

  /// Gives up the active segment when nothing is in it, since it has the old key.
  private func retireEmptySegment(_ state: inout WriterState) throws(TidemarkError) {
    guard let appender = state.appender, appender.isEmpty else { return }
    var manifest = state.manifest
    manifest.segments.removeAll { $0.id == appender.row.id }
    try updateManifest(manifest, &state)
    state.appender = nil
    reading.withLock { read in
      read.segments.removeAll { $0.id == appender.row.id }
      read.usage.rows[appender.row.id] = nil
    }
    try? environment.fileSystem.remove(path + "/" + appender.segment.fileName)
  }

  /// Ends a change of keys, after the log was rewritten: images of the old key go.
  func finishChangeOfKeys() throws(TidemarkError) {
    let current = try keys.current()
    guard reading.withLock({ $0.manifest.images.contains { $0.keyID != current } }) else {
      return
    }
    for _ in 0..<Limits.imageAttempts {
      writer.wait { !$0.runs.isWriting }
      // It takes the place of all runs, those of the old key among them.
      if try writeRun(.whole) != nil { return }
    }
    throw TidemarkError(
      .limitExceeded, "runs of the index were written all the while; try again later")
  }
}
