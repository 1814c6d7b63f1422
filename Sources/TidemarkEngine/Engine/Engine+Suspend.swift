extension Engine {
  /// Whether the store has let go of its files; see `suspend`.
  package var isSuspended: Bool { reading.withLock { $0.isSuspended } }

  /// Makes everything durable, seals it as a close would, and lets go of the lock and of all
  /// files; index and caches of decoded log stay in memory. Reads and writes fail with
  /// `suspended` from then on. Further calls do nothing.
  ///
  /// A commit group that is under way ends first; a compaction, an image or a backup under way
  /// fails with `suspended`.
  /// - Throws: `closed`; why something could not be made durable or sealed. The store is
  ///   suspended all the same, and resuming opens it as after the process was killed.
  package func suspend() throws(TidemarkError) {
    defer { notifyObservers() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in
      if isClosed { throw TidemarkError(.closed, "the store is closed") }
      guard !isSuspended else { return }
      stopAutomaticCompaction()
      var failure: TidemarkError?
      repeat {
        do throws(TidemarkError) {
          try withBallast { () throws(TidemarkError) in try finishWriting(.suspended) }
        } catch { failure = error }
      } while !stopWriting(failed: failure != nil)
      letGo()
      if let failure { throw failure }
    }
  }

  /// Refuses writes from now on.
  /// - Returns: false when something was written meanwhile, which is to be sealed first.
  private func stopWriting(failed: Bool) -> Bool {
    writer.withLock { state in
      guard failed || state.isSuspended || state.poison != nil || state.appender == nil else {
        return false
      }
      state.isSuspended = true
      return true
    }
  }

  private func letGo() {
    reading.withLock { read in
      read.isSuspended = true
      isOpen.isSet = false
      read.nextFrame = FrameBuilder()
    }
    waitForBallast()
    // Work in the background meets the refusal and clears up behind itself.
    files.refuseGrowth()
    writer.wait { !$0.isSyncing && !$0.compactor.isRunning && !$0.runs.isWriting }
    let lock: (any FileLock)? = writer.withLock { state in
      state.appender = nil
      defer { state.lock = nil }
      return state.lock
    }
    hotCache.removeAll()
    files.suspend()
    lock?.release()
    writer.broadcast()
  }

  /// Takes the lock again and goes on: with the same state when nobody wrote meanwhile, else
  /// as a fresh opening would. Does nothing when the store is not suspended.
  /// - Throws: `locked` when somebody else has the lock, `closed`, and what opening throws. The
  ///   store stays suspended then.
  package func resume() throws(TidemarkError) {
    defer { notifyObservers() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in
      if isClosed { throw TidemarkError(.closed, "the store is closed") }
      guard isSuspended else { return }
      // A refresh that looked before must not publish after this.
      try refreshing.withLock { (_: inout Void) throws(TidemarkError) in try resumeLocked() }
    }
  }

  private func resumeLocked() throws(TidemarkError) {
    let canWrite = writer.withLock { $0.canWrite }
    var beneath = environment
    beneath.fileSystem = files.base
    try StoreDirectory.check(path, beneath.fileSystem, creates: false)
    let lock = canWrite ? try StoreDirectory.lock(path, beneath) : nil
    files.resume()
    do throws(TidemarkError) {
      if try !isUnchanged() { try openAnew(lock) }
    } catch {
      files.suspend()
      lock?.release()
      throw error
    }
    writer.withLock { state in
      state.lock = lock
      state.isSuspended = false
      state.compactor.noteSmallSegments()
    }
    reading.withLock {
      $0.isSuspended = false
      isOpen.isSet = true
    }
  }

  /// Whether the store on the disk is what was left when this one was suspended.
  private func isUnchanged() throws(TidemarkError) -> Bool {
    let state = writer.withLock { $0 }
    guard let loaded = try? manifests.load() else { return false }
    guard loaded.manifest.storeID == state.manifest.storeID else {
      throw TidemarkError(
        .historyDiverged, "another store lies at \(path) now; close this one and open that")
    }
    guard state.canWrite, !state.mustOpenAnew, state.poison == nil, state.stagedBytes == 0,
      state.manifest.isClosedCleanly, loaded.areEqual
    else { return false }
    var manifest = loaded.manifest
    manifest.nextSegmentID = state.manifest.nextSegmentID
    manifest.nextImageID = state.manifest.nextImageID
    return manifest == state.manifest && holdsOnly(manifest)
  }

  /// Whether no file was left by somebody who wrote and was stopped before MANIFEST said so, and
  /// whether the log ends where it did.
  private func holdsOnly(_ manifest: Manifest) -> Bool {
    let fileSystem = environment.fileSystem
    let listed = [
      (StoreLayout.logDirectory, Set(manifest.segments.map(\.fileName))),
      (StoreLayout.indexDirectory, Set(manifest.images.map(\.fileName))),
    ]
    for (folder, names) in listed {
      guard let found = try? fileSystem.list(path + "/" + folder),
        names.isSuperset(of: found)
      else { return false }
    }
    guard let row = manifest.segments.last else { return true }
    let last = reading.withLock { read in read.segments.last { $0.id == row.id } }
    return (try? last?.file().length()) == row.length
  }

  /// Puts the state that a fresh opening finds in the place of the one in memory.
  private func openAnew(_ lock: (any FileLock)?) throws(TidemarkError) {
    files.disown()
    writer.withLock { $0.mustOpenAnew = true }
    var configuration = configuration
    if configuration.access == .create { configuration.access = .write }
    keys.forgetCurrent()
    configuration.encryption = keys.encryption
    // It is among those already, or else this engine would not know it.
    configuration.newKey = nil
    var opener = StoreOpener(path: path, configuration: configuration, environment: environment)
    let opened = try opener.reopen(lock)
    // The opener has written MANIFEST through an object of its own.
    _ = try manifests.load()
    install(opened, staleBelow: opener.staleBelow)
    objects.removeAll()
    caches.removeAll()
  }

  private func install(_ opened: Opened, staleBelow: UInt64) {
    writer.withLock { state in
      var next = WriterState(
        manifest: opened.manifest, lock: nil, sequence: opened.lastSequence,
        commitTime: HybridTime(max(opened.latestCommitTime, state.commitTime.rawValue)),
        durable: opened.durable, canWrite: opened.canWrite,
        compactor: CompactorState(goingOnFrom: state.compactor))
      next.isSuspended = true
      next.ballast = BallastState(goingOnFrom: state.ballast)
      reading.withLock { read in
        read.staged = []
        read.nextFrame = FrameBuilder()
        read.stagedTouches = [:]
        read.underWay = nil
        read.takeUp(opened, staleBelow: staleBelow)
        next.lineage = read.lineage
      }
      state = next
      derivation.object?.noteTakeover()
    }
  }

  /// Makes sure that the store can be read.
  /// - Throws: `closed`, `suspended`.
  package func checkReadable() throws(TidemarkError) {
    if isOpen.isSet { return }
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
    }
  }
}

extension TidemarkError {
  /// An engine that is put to sleep must not answer what somebody else may be changing.
  static var suspended: TidemarkError {
    TidemarkError(.suspended, "the store is suspended; call resume()")
  }
}
