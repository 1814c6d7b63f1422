extension Engine {
  /// Writes an index image that covers everything committed so far, and takes it into use.
  ///
  /// Writers and readers go on meanwhile: they see the frozen delta and a fresh one above it.
  /// - Returns: what the image knows; nil when another one is being written, or the store is empty.
  @discardableResult
  package func writeImage() throws(TidemarkError) -> ImageInfo? {
    guard let job = try beginImage() else { return nil }
    do {
      try syncLog(for: job)
      let (image, length) = try write(job)
      try install(image, length: length, job)
    } catch {
      reading.withLock { $0.index.abandonMerge() }
      writer.withLock { state in
        // If MANIFEST stopped midway it may list the image by now; then the file must stay. Once
        // the store is closed the name may be that of an image of the next opening.
        let mayBeListed =
          state.poison != nil || state.manifest.images.contains { $0.id == job.row.id }
        if !mayBeListed, !state.isClosed { try? environment.fileSystem.remove(job.path) }
        state.isWritingImage = false
      }
      writer.broadcast()
      throw error
    }
    writer.broadcast()
    return job.info
  }

  /// Writes images until one is in use that has forgotten what was deleted up to a sequence, but
  /// for the deletes that stay: the index knows a delete exactly as long as the log has it.
  ///
  /// One that was begun before, by another thread or by one that failed, knows it still, and takes
  /// only so much into itself.
  func writeImage(forgetting limit: UInt64, but kept: Set<UInt64>) throws(TidemarkError) {
    reading.withLock { read in
      read.forgetsDeletesThrough = limit
      read.keptDeletes = kept
    }
    // Of an empty store there is no image.
    guard limit > 0 else { return }
    for _ in 0..<Limits.imageAttempts {
      writer.wait { !$0.isWritingImage }
      guard let info = try writeImage() else { continue }
      if info.sequence >= limit, info.dropTombstonesThrough == limit, info.keptDeletes == kept {
        return
      }
    }
    throw TidemarkError(
      .limitExceeded, "other images were written all the while; compact again later")
  }

  /// An image must never know an entry that a power cut could take back.
  private func syncLog(for job: ImageJob) throws(TidemarkError) {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.imageAheadOfLog) { return }
    #endif
    try sync(through: job.info.sequence)
  }

  private struct ImageJob {
    var info: ImageInfo
    var input: MergeInput
    var path: String
    var row: Manifest.Image
    var generation: Int
  }

  private func beginImage() throws(TidemarkError) -> ImageJob? {
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) -> ImageJob? in
      try checkWritable(state)
      guard !state.isWritingImage, state.sequence > 0 else { return nil }
      try writeStaged(&state, mayCompress: true)
      let keyID = try keys.current()
      let fileKey = try newFileKey(keyID)
      let id = state.manifest.nextImageID
      let sequence = state.sequence
      let manifest = state.manifest
      let job = reading.withLock { read -> ImageJob in
        // What was frozen for an image that could not be written comes first.
        var info =
          read.frozen
          ?? ImageInfo(
            storeID: manifest.storeID, imageID: id, sequence: sequence,
            userInfo: read.usage.encoded(), dropTombstonesThrough: 0, keepFormerMembers: true)
        info.imageID = id
        info.dropTombstonesThrough = read.forgetsDeletesThrough
        info.keptDeletes = read.keptDeletes
        info.keepFormerMembers = manifest.historyFrom < info.sequence
        if read.frozen == nil { read.index.freeze() }
        read.frozen = info
        info.fileKey = fileKey
        var row = Manifest.Image(id: id, sequence: info.sequence, length: 0)
        row.keyID = keyID
        return ImageJob(
          info: info, input: read.index.mergeInput(),
          path: path + "/" + StoreLayout.indexDirectory + "/" + row.fileName, row: row,
          generation: read.indexGeneration)
      }
      state.manifest.nextImageID += 1
      state.isWritingImage = true
      state.bytesSinceImage = 0
      return job
    }
  }

  private func write(_ job: ImageJob) throws(TidemarkError) -> (Image, length: Int) {
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
      throw TidemarkError(error, while: "writing the index image")
    } catch {
      throw TidemarkError(.inputOutput, "the index image cannot be written", cause: error)
    }
  }

  /// Looks up what was written meanwhile in the new image, a few keys at a time, so that nobody
  /// waits for long when it is installed.
  private func prepare(_ image: Image, _ job: ImageJob) throws(TidemarkError) {
    for _ in 0..<Limits.installSteps {
      let isDone = try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
        guard read.indexGeneration == job.generation else { return true }
        do throws(IndexError) {
          return try read.index.prepareInstall(image, limit: Limits.installStepKeys)
        } catch { throw describe(error) }
      }
      if isDone { return }
    }
  }

  /// Lists the image in MANIFEST and lets the oldest go.
  private func install(
    _ image: Image, length: Int, _ job: ImageJob
  ) throws(TidemarkError) {
    var gone: [Manifest.Image] = []
    try prepare(image, job)
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      guard reading.withLock({ $0.indexGeneration == job.generation }) else {
        throw TidemarkError(.inputOutput, "the index was made anew meanwhile; try again")
      }
      var manifest = state.manifest
      var row = job.row
      row.length = length
      manifest.images.append(row)
      while manifest.images.count > 2 { gone.append(manifest.images.removeFirst()) }
      try updateManifest(manifest, &state)
      state.isWritingImage = false
      try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
        do throws(IndexError) { try read.index.install(image) } catch { throw describe(error) }
        read.frozen = nil
      }
    }
    removeFiles(of: gone)
  }
}
