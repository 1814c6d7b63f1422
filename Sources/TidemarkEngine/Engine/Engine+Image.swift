extension Engine {
  /// How much of the index a run takes the place of.
  enum RunExtent {
    /// The writes since the newest run, and as many of the newest runs as keeps them few.
    case asDue
    /// The same, by somebody who has little time.
    case brief
    /// Everything.
    case whole
  }

  /// Writes a run of the index that covers everything committed so far, and takes it into use.
  ///
  /// Writers and readers go on meanwhile: they see the frozen delta and a fresh one above it.
  /// - Returns: what the run knows; nil when another one is being written, or the store is empty.
  @discardableResult
  package func writeImage() throws(TidemarkError) -> ImageInfo? { try writeRun(.asDue) }

  /// Writes a run, see ``writeImage()``. If one that is merged turns out to be damaged, the index
  /// is made anew from the log first.
  @discardableResult
  func writeRun(_ extent: RunExtent) throws(TidemarkError) -> ImageInfo? {
    do throws(TidemarkError) { return try attemptRun(extent) } catch {
      guard let cause = error.cause as? IndexError, cause.voidsImage else { throw error }
      try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
        try checkWritable(state)
        try writeStaged(&state, mayCompress: true)
        try rebuildIndex(after: cause)
      }
    }
    return try attemptRun(extent)
  }

  private func attemptRun(_ extent: RunExtent) throws(TidemarkError) -> ImageInfo? {
    guard let job = try beginRun(extent) else { return nil }
    do {
      try syncLog(for: job)
      let (run, length) = try write(job)
      try publish(run, length: length, job)
    } catch {
      writer.withLock { state in
        // If MANIFEST stopped midway it may list the run by now; then the file must stay. Once
        // the store is closed the name may be that of a run of the next opening.
        let mayBeListed =
          state.poison != nil || state.manifest.images.contains { $0.id == job.row.id }
        if !mayBeListed, !state.isClosed { try? environment.fileSystem.remove(job.path) }
        state.runs.end()
      }
      writer.broadcast()
      throw error
    }
    writer.broadcast()
    return job.info
  }

  /// Writes runs until one is in use that is the whole index and has forgotten what was deleted up
  /// to a sequence, but for the deletes that stay: the index knows a delete exactly as long as the
  /// log has it.
  ///
  /// One that was begun before, by another thread or by one that failed, knows it still, and takes
  /// only so much into itself.
  func writeImage(forgetting limit: UInt64, but kept: Set<UInt64>) throws(TidemarkError) {
    if PlantedBug.isOn(.outdatedImageKept) { return }
    reading.withLock { $0.nextRun.forgetDeletes(through: limit, but: kept) }
    // An empty store has no run.
    guard limit > 0 else { return }
    for _ in 0..<Limits.imageAttempts {
      writer.wait { !$0.runs.isWriting }
      guard let info = try writeRun(.whole) else { continue }
      if info.sequence >= limit, info.dropTombstonesThrough == limit, info.keptDeletes == kept {
        return
      }
    }
    throw TidemarkError(
      .limitExceeded, "other runs were written all the while; compact again later")
  }

  /// A run must never know an entry that a power cut could take back.
  private func syncLog(for job: RunJob) throws(TidemarkError) {
    if PlantedBug.isOn(.imageAheadOfLog) { return }
    try sync(through: job.info.sequence)
  }

  private struct RunJob {
    var info: ImageInfo
    var input: MergeInput
    /// How many of the newest runs go.
    var taken: Int
    var path: String
    var row: Manifest.Image
    var generation: Int
  }

  private func beginRun(_ extent: RunExtent) throws(TidemarkError) -> RunJob? {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) -> RunJob? in
      try checkWritable(state)
      guard !state.runs.isWriting, state.sequence > 0 else { return nil }
      try writeStaged(&state, mayCompress: true)
      let keyID = try keys.current()
      let fileKey = try newFileKey(keyID)
      let id = state.manifest.nextImageID
      let sequence = state.sequence
      let manifest = state.manifest
      let job = reading.withLock { read -> RunJob in
        if read.nextRun.frozen == nil { read.index.freeze() }
        var info = read.nextRun.begin(
          id, historyFrom: manifest.historyFrom,
          else: ImageInfo(
            storeID: manifest.storeID, imageID: id, sequence: sequence,
            userInfo: read.usage.encoded(), dropTombstonesThrough: 0, keepFormerMembers: true))
        info.fileKey = fileKey
        info.forgetsEvictionsThrough = neededFloor(read)
        var row = Manifest.Image(id: id, sequence: info.sequence, length: 0)
        row.keyID = keyID
        let taken = runsToMerge(extent, read.index)
        return RunJob(
          info: info, input: read.index.mergeInput(taking: taken), taken: taken,
          path: path + "/" + StoreLayout.indexDirectory + "/" + row.fileName, row: row,
          generation: read.nextRun.generation)
      }
      state.manifest.nextImageID += 1
      state.runs.begin()
      return job
    }
  }

  /// How many of the newest runs the next one takes the place of.
  private func runsToMerge(_ extent: RunExtent, _ index: Index) -> Int {
    let least = configuration.smallRunKeys
    return switch extent {
    case .asDue: index.runs.countToMerge(with: index.frozenKeys, least: least, isBounded: false)
    case .brief: index.runs.countToMerge(with: index.frozenKeys, least: least, isBounded: true)
    case .whole: index.runs.runs.count
    }
  }

  private func write(_ job: RunJob) throws(TidemarkError) -> (Image, length: Int) {
    let directory = path + "/" + StoreLayout.indexDirectory
    do {
      if try environment.fileSystem.kind(job.path) != nil {
        try environment.fileSystem.remove(job.path)
      }
      let file = try environment.fileSystem.open(job.path, .create)
      defer { file.close() }
      do throws(IndexError) {
        try ImageWriter.write(job.input, to: file, info: job.info)
      } catch { throw describe(error) }
      try file.sync()
      let length = try file.length()
      try environment.fileSystem.syncDirectory(directory)
      let opened = try environment.fileSystem.open(job.path, .read)
      do throws(IndexError) {
        return (try keys.image(opened), length)
      } catch {
        opened.close()
        throw describe(error)
      }
    } catch let error as TidemarkError {
      throw error
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "writing a run of the index")
    } catch {
      throw TidemarkError(.inputOutput, "a run of the index cannot be written", cause: error)
    }
  }

  /// Lists the run in MANIFEST, and only those beneath it that are in use: what it was made of, and
  /// what was found damaged, goes.
  private func publish(
    _ run: Image, length: Int, _ job: RunJob
  ) throws(TidemarkError) {
    var gone: [Manifest.Image] = []
    // Freed when all locks are released: for many keys that takes a while.
    var discarded: Discarded?
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      let beneath = reading.withLock { read -> Set<UInt64>? in
        guard read.nextRun.generation == job.generation else { return nil }
        return Set(read.index.runs.runs.dropFirst(job.taken).map(\.header.imageID))
      }
      guard let beneath else {
        throw TidemarkError(.inputOutput, "the index was made anew meanwhile; try again")
      }
      var manifest = state.manifest
      var row = job.row
      row.length = length
      gone = manifest.images.filter { !beneath.contains($0.id) }
      manifest.images.removeAll { !beneath.contains($0.id) }
      manifest.images.append(row)
      try updateManifest(manifest, &state)
      state.runs.end()
      try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
        do throws(IndexError) { discarded = try read.index.publish(run, taking: job.taken) } catch {
          throw describe(error)
        }
        read.nextRun.end()
      }
    }
    removeFiles(of: gone)
    _ = discarded
  }

  /// Removes the files of runs that MANIFEST names no more. One that cannot be removed now is a
  /// leftover, which the next opening clears away.
  func removeFiles(of runs: [Manifest.Image]) {
    for run in runs {
      try? environment.fileSystem.remove(
        path + "/" + StoreLayout.indexDirectory + "/" + run.fileName)
    }
  }
}
