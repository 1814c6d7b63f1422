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
  }

  /// Brings what is beside the log to the key for new files: first, while the files of the log
  /// still tell that a former key is needed.
  /// - Parameter isAsked: whether somebody has asked for the compaction. Others look only while
  ///   files of the log are left.
  func changeKeyBesideLog(isAsked: Bool) throws(TidemarkError) {
    guard try keys.current() != nil,
      isAsked || reading.withLock({ $0.manifest.filesToRewrite > 0 })
    else { return }
    // Which key its pieces have is not known, and without their files nobody can read them.
    try Quarantine(environment.fileSystem, storePath: path).removeAll()
    _ = try attachments.rewriteWithCurrentKey()
  }

  /// The keys of what is beside log and index and does not have the key for new files; nil for a
  /// file that is not encrypted.
  func otherKeysBesideLog() throws(TidemarkError) -> [Encryption.KeyID?] {
    guard let key = reading.withLock({ $0.manifest.keyID }) else { return [] }
    let hints = try HintFile.files(of: self, withoutKey: key).map(\.key)
    return try attachments.keys(otherThan: key) + hints
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

  /// Ends a change of keys, after the log was rewritten: images and hints of other keys go, and
  /// files that could not be removed when they were replaced.
  func finishChangeOfKeys() throws(TidemarkError) {
    try replaceImagesOfOtherKeys()
    try removeReplaced(and: HintFile.files(of: self, withoutKey: try keys.current()).map(\.path))
  }

  /// Removes files of log and index that are listed no more: those that could not be removed when
  /// they were replaced.
  /// - Parameter others: files that go as well.
  func removeReplaced(and others: [String] = []) throws(TidemarkError) {
    try betweenRuns { (state: inout WriterState) throws(TidemarkError) in
      let listed = Set(
        (state.manifest.segments.map(\.fileName) + state.manifest.images.map(\.fileName)))
      let fileSystem = environment.fileSystem
      do throws(FileSystemError) {
        for path in others { try fileSystem.remove(path) }
        for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
          for name in try fileSystem.list(path + "/" + folder) where !listed.contains(name) {
            try fileSystem.remove(path + "/" + folder + "/" + name)
          }
        }
      } catch { throw TidemarkError(error, while: "removing what a compaction has replaced") }
    }
  }

  private func replaceImagesOfOtherKeys() throws(TidemarkError) {
    let current = try keys.current()
    guard reading.withLock({ $0.manifest.images.contains { $0.keyID != current } }) else {
      return
    }
    try writeWholeRun()
  }
}
