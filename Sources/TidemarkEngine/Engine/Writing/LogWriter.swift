/// The owner of the end of the log: it gives out sequences, makes entries visible, writes and syncs
/// them, and says in MANIFEST what the store consists of.
///
/// One caller at a time writes; readers wait only while they are told of what has changed.
package final class LogWriter: StateOwner, LogTail {
  package let store: StoreContext
  let reader: Reader
  let manifests: ManifestStore
  /// Compresses blocks of batches on a thread of its own; nil where writers do all work themselves.
  package let packer: BlockPacker?
  let derivation = OnceReference<Derivation>()
  let ballast: BallastKeeper
  let writing: Monitor<WriterState>
  /// Whether so much is not synced that those who write must wait.
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

  /// Makes sure that something can be written.
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

  /// Whether something was written in this opening.
  var hasAppender: Bool { writing.withLock { !$0.isClosed && $0.appender != nil } }

  /// Bytes of log that were written since the store was opened.
  var loggedBytes: Int { writing.withLock { $0.loggedBytes } }

  /// The segment that is appended to, and its raw bytes; nil where nothing was written in this
  /// opening, or nothing more can be.
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

  /// Changes MANIFEST.
  /// - Parameters:
  ///   - change: nothing is written where it returns false.
  ///   - then: is called once that is on the disk; nobody writes meanwhile.
  /// - Returns: what `change` has returned.
  @discardableResult
  func changeManifest(
    _ change: (inout Manifest) throws(TidemarkError) -> Bool,
    then: (Manifest) throws(TidemarkError) -> Void = { _ in }
  ) throws(TidemarkError) -> Bool {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      var manifest = state.manifest
      let isWanted = try change(&manifest)
      guard isWanted else { return false }
      try updateManifest(manifest, &state)
      try then(state.manifest)
      return true
    }
  }

  /// Says from where history is kept.
  /// - Parameters:
  ///   - floor: is lowered to what views need that were opened meanwhile.
  ///   - time: the latest of the entries' own times up to the floor.
  /// - Returns: false where the floor was lowered, so that the time is another one.
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
        // Nothing was dropped: what was refused for a moment is answered again.
        if state.poison == nil { reader.show(state.manifest) }
        throw error
      }
      return true
    }
  }

  /// Draws an id for a segment that a compaction is to write.
  func newSegmentID() -> UInt64 {
    writing.withLock { state in
      defer { state.manifest.nextSegmentID += 1 }
      return state.manifest.nextSegmentID
    }
  }

  /// Draws an id for a run of the index, and freezes what is to go into it.
  /// - Parameter body: gets the id, the last sequence, and MANIFEST; nobody writes meanwhile.
  /// - Returns: nil for an empty store.
  func beginRun<R>(
    _ body: (UInt64, UInt64, Manifest) -> R
  ) throws(TidemarkError) -> R? {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) -> R? in
      try state.checkWritable()
      guard state.sequence > 0 else { return nil }
      try writeStaged(&state, mayCompress: true)
      defer { state.manifest.nextImageID += 1 }
      return body(state.manifest.nextImageID, state.sequence, state.manifest)
    }
  }

  /// Removes files that were written in vain.
  ///
  /// If an update of MANIFEST stopped midway it may list them by now; then they must stay.
  /// - Parameter isListed: whether MANIFEST lists them.
  func discard(_ files: [String], unless isListed: (Manifest) -> Bool = { _ in false }) {
    writing.withLock { state in
      guard state.poison == nil, !isListed(state.manifest) else { return }
      for file in files { discard(file) }
    }
  }

  /// Begins a change of keys: from here on everything new is encrypted with another key.
  ///
  /// MANIFEST lists both keys until nothing is left that needs the old one, so that a crash
  /// leaves a store which opens with both, and the change can be begun again.
  func adopt(_ encryption: Encryption) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
      try writeStaged(&state, mayCompress: true)
      let former = try keys.adopt(encryption)
      do throws(TidemarkError) { try updateManifest(state.manifest, &state) } catch {
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
  package func releaseBallast(_ bytes: Int) -> Bool { ballast.release(bytes) }

  // MARK: Opening and closing

  /// Takes over what resuming has found.
  func takeUp(_ opened: Opened) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      var next = WriterState(opened)
      next.commitTime = max(next.commitTime, state.commitTime)
      next.limits = state.limits
      next.loggedBytes = state.loggedBytes
      let isOwn = state.poison == nil && state.manifest.generation == opened.manifest.generation
      // Who trusts what it knew of sequences must learn of this before anybody reads again.
      if !isOwn { derivation.object?.noteTakeover() }
      try reader.takeUp(opened, resumes: true)
      state = next
      ballast.startOver()
      lookForRoom(state)
    }
  }

  /// Makes everything durable, seals it and says so in MANIFEST, if anything was written; then
  /// writes are refused.
  /// - Parameter optional: steps that only make the next opening faster; they must not stand in the
  ///   way of a clean close.
  func finish(
    isSuspended: Bool, _ optional: () throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    let hasWritten = try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
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
    var failure: TidemarkError?
    do throws(TidemarkError) { try optional() } catch { failure = error }
    if let failure, failure.code == .unknownOutcome { throw failure }
    try sealAll(isSuspended: isSuspended)
    // On a full disk the next opening takes longer; nothing is wrong with what was written.
    if let failure, failure.code != .noSpace { throw failure }
  }

  private func sealAll(isSuspended: Bool) throws(TidemarkError) {
    try writing.withLock { (state: inout WriterState) throws(TidemarkError) in
      try state.checkWritable()
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
      state.refuse(isSuspended: isSuspended)
      if let emptied { discard(emptied) }
    }
  }

  /// Refuses writes from now on, and waits for a sync that is under way.
  /// - Returns: false when something was written meanwhile, which is to be sealed first.
  func refuseWrites(isSuspended: Bool, hasFailed: Bool) -> Bool {
    let isRefused = writing.withLock { state in
      guard hasFailed || state.poison != nil || state.appender == nil else { return false }
      state.refuse(isSuspended: isSuspended)
      return true
    }
    if isRefused { writing.wait { !$0.isSyncing } }
    return isRefused
  }

  /// Gives the store's lock up.
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
