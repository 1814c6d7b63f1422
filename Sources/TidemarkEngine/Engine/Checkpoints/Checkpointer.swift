/// The owner of checkpoints of the index: it writes runs, one at a time, so that an opening has
/// little of the log to read.
///
/// A sorted run is a file of index rows in key order; the index is a list of
/// runs, the newest first, under two memtables, the active and the frozen memtable. A new run takes
/// the place of the frozen memtable and of some of the newest runs, which are merged with it.
package final class Checkpointer: StateOwner {
  /// How many runs a new one takes the place of.
  package enum Extent: Sendable {
    /// As many of the newest runs as keeps their number small.
    case asDue
    /// The same, but fewer where the merge would take long: a later opening merges the rest.
    case brief
    /// All runs.
    case whole
  }

  package let store: StoreContext
  private let reader: Reader
  private let writer: LogWriter
  private let schedule = Monitor(RunSchedule())

  init(_ reader: Reader, _ writer: LogWriter) {
    store = reader.store
    (self.reader, self.writer) = (reader, writer)
  }

  /// Writes a run of the index that covers everything committed so far (after an attempt that
  /// failed: up to where that froze the memtable), and takes it into use. If a run that is merged
  /// is damaged, the index is made anew from the log first.
  ///
  /// Writers and readers go on meanwhile: they see the frozen memtable and a new active one above
  /// it.
  /// - Returns: the run; nil when another one is being written, or the store is empty.
  @discardableResult
  package func writeRun(_ extent: Extent = .asDue) throws(TidemarkError) -> RunInfo? {
    do throws(TidemarkError) { return try attempt(extent) } catch {
      guard let cause = error.cause as? IndexError, cause.voidsRun else { throw error }
      try writer.checkWritable()
      try reader.withAllInLog(mayCompress: true) { () throws(TidemarkError) in
        try reader.rebuildIndex(after: cause)
      }
    }
    return try attempt(extent)
  }

  private func attempt(_ extent: Extent) throws(TidemarkError) -> RunInfo? {
    let (logged, start) = (writer.loggedBytes, store.eventStart())
    guard schedule.withLock({ $0.begin(at: logged) }) else { return nil }
    defer { end() }
    // `betweenRuns` excludes a change of keys while a run is written.
    let keyID = try keys.current()
    let fileKey = try newFileKey(keyID)
    let begun = try writer.beginRun { id, sequence, manifest in
      reader.beginRun(id, through: sequence, manifest, fileKey) { countToMerge(extent, $0) }
    }
    guard let job = begun else { return nil }
    var row = Manifest.SortedRun(id: job.info.runID, sequence: job.info.sequence, length: 0)
    row.keyID = keyID
    do {
      // A run must never know an entry that a power cut could take from the log.
      if !PlantedBug.isOn(.runAheadOfLog) { try writer.sync(through: row.sequence) }
      let (run, length) = try write(job, row)
      row.length = length
      try publish(run, job, row)
      store.tell(.checkpointed, from: start, bytes: length)
    } catch {
      // Unless MANIFEST lists the run by now, or may: then the file must stay.
      writer.discard(StoreLayout.indexDirectory + "/" + row.fileName) { manifest in
        manifest.runs.contains { $0.id == row.id }
      }
      throw error
    }
    return job.info
  }

  private func end() {
    schedule.withLock { $0.end() }
    schedule.broadcast()
  }

  /// How many of the newest runs are merged into the next one.
  private func countToMerge(_ extent: Extent, _ index: Index) -> Int {
    guard extent != .whole else { return index.runs.runs.count }
    return index.runs.countToMerge(
      with: index.frozenKeys, least: configuration.smallRunKeys, isBounded: extent == .brief)
  }

  private func write(
    _ job: RunJob, _ row: Manifest.SortedRun
  ) throws(TidemarkError) -> (SortedRun, length: Int) {
    let directory = path + "/" + StoreLayout.indexDirectory
    let path = directory + "/" + row.fileName
    do {
      // A crash may have left a file of this id: MANIFEST is not written when an id is drawn.
      if try fileSystem.kind(path) != nil { try fileSystem.remove(path) }
      let file = try fileSystem.open(path, .create)
      defer { file.close() }
      do throws(IndexError) {
        try RunWriter.write(job.input, to: file, info: job.info)
      } catch { throw TidemarkError(error) }
      try file.sync()
      let length = try file.length()
      try fileSystem.syncDirectory(directory)
      let opened = try fileSystem.open(path, .read)
      do throws(IndexError) {
        return (try keys.run(opened), length)
      } catch {
        opened.close()
        throw TidemarkError(error)
      }
    } catch { throw TidemarkError(wrapping: error, while: "writing a run of the index") }
  }

  /// Lists the run in MANIFEST, with the runs beneath it that the index uses, and no others: those
  /// that it was merged from, or that were found damaged, are removed. MANIFEST comes first, then
  /// the index in memory, in one hold of the writer's lock; files go last.
  private func publish(_ run: SortedRun, _ job: RunJob, _ row: Manifest.SortedRun)
    throws(TidemarkError)
  {
    var gone: [Manifest.SortedRun] = []
    // Freed at the end, when no lock is held: for many keys that takes a while.
    var discarded: Discarded?
    try writer.changeManifest({ (manifest) throws(TidemarkError) in
      let beneath = try reader.runsBeneath(job)
      gone = manifest.runs.filter { !beneath.contains($0.id) }
      manifest.runs.removeAll { !beneath.contains($0.id) }
      manifest.runs.append(row)
      return true
    }) { (_) throws(TidemarkError) in
      discarded = try reader.publish(run, job)
    }
    discard(gone)
    _ = discarded
  }

  // MARK: Whole runs

  /// Writes runs until one is in use that is the whole index without the tombstones up to `limit`,
  /// but for `kept`: the index has a tombstone exactly as long as the log has the delete. A
  /// compaction calls it before it drops deletes.
  ///
  /// A run that was begun before, by another thread or in an attempt that failed, may have those
  /// tombstones, or not all of the log up to `limit`: then another one is written.
  func writeRun(forgetting limit: UInt64, but kept: Set<UInt64>) throws(TidemarkError) {
    if PlantedBug.isOn(.outdatedRunKept) { return }
    reader.forgetDeletes(through: limit, but: kept)
    // An empty store has no run.
    guard limit > 0 else { return }
    try writeWholeRun { info in
      info.sequence >= limit && info.dropTombstonesThrough == limit && info.keptDeletes == kept
    }
  }

  /// Writes one run in the place of all others. An empty store has none.
  /// - Parameter serves: whether a run that was written will do; else another one is written.
  func writeWholeRun(if serves: (RunInfo) -> Bool = { _ in true }) throws(TidemarkError) {
    guard reader.lastSequence > 0 else { return }
    for _ in 0..<Limits.runAttempts {
      wait()
      // Nil where another thread was faster.
      if let info = try writeRun(.whole), serves(info) { return }
    }
    throw TidemarkError(.limitExceeded, "other runs were written all the while; try again later")
  }

  /// Rebuilds the index from the log alone and writes it as one run in the place of all others.
  func rebuild() throws(TidemarkError) {
    // Out of MANIFEST before the new run is written: after a crash the next opening reads the log.
    try betweenRuns { () throws(TidemarkError) in
      var gone: [Manifest.SortedRun] = []
      try reader.withAllInLog(mayCompress: true) { () throws(TidemarkError) in
        try reader.rebuildIndex(ignoresRuns: true)
      }
      try writer.changeManifest { manifest in
        gone = manifest.runs
        manifest.runs = []
        return true
      }
      discard(gone)
    }
    try writeRun()
  }

  // MARK: Schedule

  /// Makes `writeRunIfDue` look for runs to merge once more, after the log was read anew from disk.
  func startOver() { schedule.withLock { $0.mayBeUneven = true } }

  /// Waits until no run is being written.
  func wait() { schedule.wait { !$0.isWriting } }

  /// Waits until no run is written, and calls `body` while none can begin. `body` must write none.
  func betweenRuns(_ body: () throws(TidemarkError) -> Void) throws(TidemarkError) {
    schedule.wait { $0.claim() }
    defer { end() }
    try body()
  }

  /// Writes a run if the log has grown enough since the last one, or if earlier openings have left
  /// runs to merge (`hasUnevenRuns`).
  func writeRunIfDue() throws(TidemarkError) {
    let logged = writer.loggedBytes
    // Before the first write of an opening MANIFEST says "closed cleanly", and is to stay so.
    let hasWritten = writer.active != nil
    let (isDue, mayBeUneven) = schedule.withLock { schedule in
      (
        schedule.isDue(at: logged, every: configuration.runEveryBytes),
        hasWritten && schedule.takeTurnToEven()
      )
    }
    let least = configuration.smallRunKeys
    if isDue || mayBeUneven && reader.hasUnevenRuns(least: least) { try writeRun() }
  }
}

extension KeyRing {
  /// Opens a run's file, its sorted run, with the key that the header names. The run owns `file`
  /// then.
  func run(_ file: any File) throws(IndexError) -> SortedRun {
    try SortedRun(file: file) { (id) throws(FormatError) in
      do throws(TidemarkError) { return try key(id) } catch { throw FormatError(error.message) }
    }
  }
}
