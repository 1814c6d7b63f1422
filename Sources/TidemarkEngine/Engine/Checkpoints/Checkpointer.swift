/// The owner of checkpoints of the index: it writes runs, one at a time, so that an opening has
/// little of the log to read.
package final class Checkpointer: StateOwner {
  /// How much of the index a run takes the place of.
  package enum Extent: Sendable {
    /// The writes since the newest run, and as many of the newest runs as keeps them few.
    case asDue
    /// The same, by somebody who has little time.
    case brief
    /// Everything.
    case whole
  }

  package let store: StoreContext
  private let reader: Reader
  private let writer: LogWriter
  private let schedule = Monitor(RunSchedule())

  init(_ reader: Reader, _ writer: LogWriter) {
    store = reader.store
    self.reader = reader
    self.writer = writer
  }

  /// Writes a run of the index that covers everything committed so far, and takes it into use. If
  /// one that is merged turns out to be damaged, the index is made anew from the log first.
  ///
  /// Writers and readers go on meanwhile: they see the frozen delta and a fresh one above it.
  /// - Returns: what the run knows; nil when another one is being written, or the store is empty.
  @discardableResult
  package func writeRun(_ extent: Extent = .asDue) throws(TidemarkError) -> ImageInfo? {
    do throws(TidemarkError) { return try attempt(extent) } catch {
      guard let cause = error.cause as? IndexError, cause.voidsImage else { throw error }
      try writer.checkWritable()
      try reader.withAllInLog(mayCompress: true) { () throws(TidemarkError) in
        try reader.rebuildIndex(after: cause)
      }
    }
    return try attempt(extent)
  }

  private func attempt(_ extent: Extent) throws(TidemarkError) -> ImageInfo? {
    let logged = writer.loggedBytes
    guard schedule.withLock({ $0.begin(at: logged) }) else { return nil }
    defer { end() }
    // Keys change between runs.
    let keyID = try keys.current()
    let fileKey = try newFileKey(keyID)
    let begun = try writer.beginRun { id, sequence, manifest in
      reader.beginRun(
        RunPlan(id: id, sequence: sequence, manifest: manifest, fileKey: fileKey) { index in
          self.countToMerge(extent, index)
        })
    }
    guard let job = begun else { return nil }
    var row = Manifest.Image(id: job.info.imageID, sequence: job.info.sequence, length: 0)
    row.keyID = keyID
    do {
      // A run must never know an entry that a power cut could take back.
      if !PlantedBug.isOn(.imageAheadOfLog) { try writer.sync(through: row.sequence) }
      let (run, length) = try write(job, row)
      row.length = length
      try publish(run, job, row)
    } catch {
      writer.discard([StoreLayout.indexDirectory + "/" + row.fileName]) { manifest in
        manifest.images.contains { $0.id == row.id }
      }
      throw error
    }
    return job.info
  }

  private func end() {
    schedule.withLock { $0.end() }
    schedule.broadcast()
  }

  /// How many of the newest runs the next one takes the place of.
  private func countToMerge(_ extent: Extent, _ index: Index) -> Int {
    let least = configuration.smallRunKeys
    return switch extent {
    case .asDue: index.runs.countToMerge(with: index.frozenKeys, least: least, isBounded: false)
    case .brief: index.runs.countToMerge(with: index.frozenKeys, least: least, isBounded: true)
    case .whole: index.runs.runs.count
    }
  }

  private func write(
    _ job: RunJob, _ row: Manifest.Image
  ) throws(TidemarkError) -> (Image, length: Int) {
    let directory = path + "/" + StoreLayout.indexDirectory
    let path = directory + "/" + row.fileName
    do {
      if try fileSystem.kind(path) != nil { try fileSystem.remove(path) }
      let file = try fileSystem.open(path, .create)
      defer { file.close() }
      do throws(IndexError) {
        try ImageWriter.write(job.input, to: file, info: job.info)
      } catch { throw TidemarkError(error) }
      try file.sync()
      let length = try file.length()
      try fileSystem.syncDirectory(directory)
      let opened = try fileSystem.open(path, .read)
      do throws(IndexError) {
        return (try keys.image(opened), length)
      } catch {
        opened.close()
        throw TidemarkError(error)
      }
    } catch { throw TidemarkError(wrapping: error, while: "writing a run of the index") }
  }

  /// Lists the run in MANIFEST, and only those beneath it that are in use: what it was made of, and
  /// what was found damaged, goes.
  private func publish(
    _ run: Image, _ job: RunJob, _ row: Manifest.Image
  ) throws(TidemarkError) {
    var gone: [Manifest.Image] = []
    // Let go of when all locks are released: for many keys that takes a while.
    var discarded: Discarded?
    try writer.changeManifest({ (manifest) throws(TidemarkError) in
      let beneath = try reader.runsBeneath(job)
      gone = manifest.images.filter { !beneath.contains($0.id) }
      manifest.images.removeAll { !beneath.contains($0.id) }
      manifest.images.append(row)
      return true
    }) { (_) throws(TidemarkError) in
      discarded = try reader.publish(run, job)
    }
    discard(gone)
    _ = discarded
  }

  // MARK: Whole runs

  /// Writes runs until one is in use that is the whole index and has forgotten what was deleted up
  /// to a sequence, but for the deletes that stay: the index knows a delete exactly as long as the
  /// log has it.
  ///
  /// One that was begun before, by another thread or by one that failed, knows it still, and takes
  /// only so much into itself.
  func writeRun(forgetting limit: UInt64, but kept: Set<UInt64>) throws(TidemarkError) {
    if PlantedBug.isOn(.outdatedImageKept) { return }
    reader.forgetDeletes(through: limit, but: kept)
    // An empty store has no run.
    guard limit > 0 else { return }
    try writeWholeRun { info in
      info.sequence >= limit && info.dropTombstonesThrough == limit && info.keptDeletes == kept
    }
  }

  /// Writes a run that takes the place of all. An empty store has none.
  /// - Parameter serves: whether it is the one that is wanted; else another one is written.
  func writeWholeRun(if serves: (ImageInfo) -> Bool = { _ in true }) throws(TidemarkError) {
    guard reader.lastSequence > 0 else { return }
    for _ in 0..<Limits.imageAttempts {
      wait()
      if let info = try writeRun(.whole), serves(info) { return }
    }
    throw TidemarkError(
      .limitExceeded, "other runs were written all the while; try again later")
  }

  /// Rebuilds the index from the log alone and writes it as one run in the place of all others.
  func rebuild() throws(TidemarkError) {
    try betweenRuns { () throws(TidemarkError) in
      var gone: [Manifest.Image] = []
      try reader.withAllInLog(mayCompress: true) { () throws(TidemarkError) in
        try reader.rebuildIndex(ignoresRuns: true)
      }
      try writer.changeManifest { manifest in
        gone = manifest.images
        manifest.images = []
        return true
      }
      discard(gone)
    }
    try writeRun()
  }

  // MARK: Schedule

  /// Looks for uneven runs once more, since the log was read anew from the disk.
  func startOver() { schedule.withLock { $0.mayBeUneven = true } }

  /// Waits until no run is being written.
  func wait() { schedule.wait { !$0.isWriting } }

  /// Calls `body` while no run is written.
  func betweenRuns(_ body: () throws(TidemarkError) -> Void) throws(TidemarkError) {
    schedule.wait { $0.claim() }
    defer { end() }
    try body()
  }

  /// Writes a run if enough of the log has come since the last one.
  func writeRunIfDue() throws(TidemarkError) {
    let logged = writer.loggedBytes
    let hasWritten = writer.active != nil
    let (isDue, mayBeUneven) = schedule.withLock { schedule in
      (
        schedule.isDue(at: logged, every: configuration.imageEveryBytes),
        hasWritten && schedule.takeTurnToEven()
      )
    }
    let least = configuration.smallRunKeys
    if isDue || mayBeUneven && reader.hasUnevenRuns(least: least) { try writeRun() }
  }
}

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
