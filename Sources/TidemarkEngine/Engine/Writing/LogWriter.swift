/// The owner of the log's end: it gives out sequences, makes entries visible, writes and syncs
/// them, and lists in MANIFEST what the store consists of. Extensions hold the write path.
///
/// One caller at a time writes, under `writing`. What readers see is under `Reader`'s lock, which
/// the writer takes second and briefly. A commit's sync holds neither; sealing holds `writing`.
package final class LogWriter: StateOwner, LogTail {
  package let store: StoreContext
  let reader: Reader
  let manifests: ManifestStore
  /// Compresses blocks of batches on a thread of its own; nil where writers do all work themselves.
  package let packer: BlockPacker?
  /// Adds entries that follow from others, the rows of indexes, to each batch.
  let derivation = OnceReference<IndexMaintenance>()
  /// Disk space held in reserve for closing and compacting on a full disk.
  let ballast: BallastKeeper
  let writing: Monitor<WriterState>
  /// Whether so many bytes are not synced that writers must wait.
  let isCrowded = AtomicFlag()

  init(_ store: StoreContext, _ opened: Opened, reader: Reader) {
    self.store = store
    self.reader = reader
    manifests = opened.manifests
    packer =
      store.configuration.doesBackgroundWorkInline ? nil : BlockPacker(contexts: store.contexts)
    ballast = BallastKeeper(store)
    writing = Monitor(WriterState(opened))
    reader.follow(self)
  }

  /// - Throws: `closed`, `suspended`, `readOnly`, `poisoned`.
  package func checkWritable() throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
    }
  }

  /// Whether nothing can be written until the store is reopened, since an outcome is unknown.
  var isPoisoned: Bool { writing.withLock { $0.poison != nil } }

  /// Whether the store was closed or suspended, or is about to be.
  var isShut: Bool { writing.withLock { $0.isClosed || $0.isSuspended } }

  var hasAppender: Bool { writing.withLock { !$0.isClosed && $0.appender != nil } }

  /// Bytes of log that were written since the store was opened.
  var loggedBytes: Int { writing.withLock { $0.loggedBytes } }

  /// The active segment and its raw bytes; nil before the first write and when none is possible.
  var active: (id: UInt64, rawBytes: Int)? {
    writing.withLock { state in
      guard !state.isClosed, !state.isSuspended, state.poison == nil, !ballast.isInUse.isSet
      else { return nil }
      return state.appender.map { ($0.row.id, $0.rawBytes) }
    }
  }

  /// Calls `body` once all that is visible is in the log, while nobody writes.
  func withAllInLog(
    mayCompress: Bool, _ body: () throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try writeStaged(&state, mayCompress: mayCompress)
      try body()
    }
  }

  /// Changes MANIFEST. The writer's lock is held throughout, so neither closure may write.
  /// - Parameters:
  ///   - change: edits a copy and returns whether to write it; what it throws leaves MANIFEST be.
  ///   - then: called once both copies are on the disk, never when writing them failed.
  func changeManifest(
    _ change: (inout Manifest) throws(TidemarkError) -> Bool,
    then: (Manifest) throws(TidemarkError) -> Void = { _ in }
  ) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      var manifest = state.manifest
      guard try change(&manifest) else { return }
      try updateManifest(manifest, &state)
      try then(state.manifest)
    }
  }

  /// Raises `historyFrom`, below which views are refused, before a compaction drops versions.
  /// - Parameter floor: is lowered to what views need that were opened meanwhile.
  /// - Returns: false where the floor was lowered: then `time` is wrong, and MANIFEST stays.
  func raiseHistoryFrom(
    _ floor: inout CompactionFloor, time: Timestamp?
  ) throws(TidemarkError) -> Bool {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      guard let manifest = reader.raiseHistoryFrom(&floor, time: time, in: state.manifest) else {
        return false
      }
      guard manifest != state.manifest else { return true }
      do throws(TidemarkError) { try updateManifest(manifest, &state) } catch {
        // Readers refuse the views already. As nothing was dropped they may answer them again,
        // unless MANIFEST on the disk may say otherwise.
        if state.poison == nil { reader.show(state.manifest) }
        throw error
      }
      return true
    }
  }

  /// Draws an id for a segment that a compaction is to write, never twice in one opening.
  func newSegmentID() -> UInt64 {
    writing.withLock { state in
      defer { state.manifest.nextSegmentID += 1 }
      return state.manifest.nextSegmentID
    }
  }

  /// Draws an id for a sorted run of the index, and lets `body` freeze the memtable for it.
  /// - Parameter body: gets the id, the last sequence, and MANIFEST; nobody writes meanwhile.
  /// - Returns: nil for an empty store.
  func beginRun<R>(_ body: (UInt64, UInt64, Manifest) -> R) throws(TidemarkError) -> R? {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) -> R? in
      try state.checkWritable()
      guard state.sequence > 0 else { return nil }
      try writeStaged(&state, mayCompress: true)
      defer { state.manifest.nextRunID += 1 }
      return body(state.manifest.nextRunID, state.sequence, state.manifest)
    }
  }

  /// Removes a file that a failed compaction or run has left, unless MANIFEST may list it: after a
  /// poison it may, since an update of it may have stopped midway.
  func discard(_ file: String, unless isListed: (Manifest) -> Bool) {
    writing.withLock { state in
      if state.poison == nil, !isListed(state.manifest) { discard(file) }
    }
  }

  /// Begins a change of keys: from here on everything new is encrypted with another key.
  /// MANIFEST lists both keys until no file needs the old one: after a crash the store opens with
  /// both, and the change can be begun again.
  func adopt(_ encryption: Encryption) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      try writeStaged(&state, mayCompress: true)
      let former = try keys.adopt(encryption)
      do throws(TidemarkError) { try updateManifest(state.manifest, &state) } catch {
        // With a poison MANIFEST on the disk may name the new key.
        if state.poison == nil { keys.abandon(for: former) }
        throw error
      }
      try retireEmptySegment(&state)
    }
  }

  /// Bounds the segments that are written from now on.
  func bound(_ limits: SegmentLimits) { writing.withLock { $0.limits = limits } }

  /// Sets as much space aside for a full disk as the log calls for.
  /// - Parameter mayShrink: whether there may be more set aside than that.
  func provideBallast(mayShrink: Bool = false) {
    // Once a store is closed nothing is allocated any more, also not what was given back.
    let logged = writing.withLock { state -> Int? in
      state.lock == nil || state.isSuspended || mayShrink && state.isClosed
        ? nil : state.loggedBytes
    }
    guard let logged else { return }
    ballast.provide(
      forLog: reader.snapshot.usedBytes, logged: logged, mayShrink: mayShrink
    ) { provide in writing.withLock { _ in provide() } }
  }

  /// Gives some of the space back that is set aside for a full disk.
  /// - Returns: whether there was any.
  package func releaseBallast(_ bytes: Int) -> Bool { ballast.file.release(bytes) }

  // MARK: Opening and closing

  /// Makes what resuming a suspended store has found on the disk the state of writer and readers.
  func takeUp(_ opened: Opened) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      var next = WriterState(opened)
      next.commitTime = max(next.commitTime, state.commitTime)
      next.limits = state.limits
      next.loggedBytes = state.loggedBytes
      // The same generation of MANIFEST: no other process has written since the suspension.
      let isOwn = state.poison == nil && state.manifest.generation == opened.manifest.generation
      // Before any read: whoever keeps sequences in memory must forget them.
      if !isOwn { derivation.object?.noteTakeover() }
      try reader.takeUp(opened, resumes: true)
      state = next
      ballast.startOver()
      updateIsCrowded(state)
    }
  }

  /// If anything was written: syncs it, seals the active segment, says in MANIFEST that the store
  /// is closed cleanly, and refuses writes. On a full disk it may be called again.
  /// - Parameter optional: steps that only make the next opening faster. When the disk is full they
  ///   are left out; other errors are thrown once the store is closed, an unknown outcome before.
  func finish(isSuspended: Bool, _ optional: () throws(TidemarkError) -> Void) throws(TidemarkError)
  {
    let hasWritten = try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      guard !state.isClosed, !state.isSuspended, state.canWrite else { return false }
      if let poison = state.poison {
        // Everything visible is synced: nothing is lost, so closing does not fail.
        guard state.sequence > state.durable else { return false }
        throw poison
      }
      guard !state.manifest.isClosedCleanly else { return false }
      try writeStaged(&state, mayCompress: true)
      return true
    }
    guard hasWritten else { return }
    try flush()
    var failure: TidemarkError?
    do throws(TidemarkError) { try optional() } catch { failure = error }
    if let failure, failure.code == .unknownOutcome { throw failure }
    try sealAll(isSuspended: isSuspended)
    // Without the optional steps the next opening takes longer, and that is all.
    if let failure, failure.code != .noSpace { throw failure }
  }

  private func sealAll(isSuspended: Bool) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      // What others have written since the flush is sealed and synced with the rest.
      try writeStaged(&state, mayCompress: true)
      var manifest = state.manifest
      let appender = state.appender
      let emptied = appender.flatMap { $0.isEmpty ? $0.segment.fileName : nil }
      let sealed = try sealActive(&state, in: &manifest)
      manifest.isClosedCleanly = true
      try updateManifest(manifest, &state)
      if let sealed { appender?.segment.seal(length: sealed) }
      advanceDurable(to: state.written, &state)
      state.refuse(isSuspended: isSuspended)
      if let emptied { discard(emptied) }
    }
  }

  /// Refuses writes from now on, and waits for a sync that is under way.
  /// - Parameter hasFailed: whether `finish` has failed, so that writes are refused in any case.
  /// - Returns: false when something was written since `finish`, which is then called again.
  func refuseWrites(isSuspended: Bool, hasFailed: Bool) -> Bool {
    let isRefused = writing.withLock { state in
      guard hasFailed || state.poison != nil || state.appender == nil else { return false }
      state.refuse(isSuspended: isSuspended)
      return true
    }
    if isRefused { writing.wait { !$0.isSyncing } }
    return isRefused
  }

  /// Hands the LOCK file's lock over to the caller, who releases it. The last step of closing.
  func takeLock() -> (any FileLock)? {
    defer { writing.broadcast() }
    return writing.withLock { state in
      defer { state.lock = nil }
      return state.lock
    }
  }
}

/// The lengths of segments in a store of caches.
struct SegmentLimits: Sendable, Hashable {
  /// The length in bytes at which the active segment is sealed at the latest.
  var segmentBytes = Int.max
  /// Whether puts leave free disk space for the next compaction.
  var keepsReserve = false
}
