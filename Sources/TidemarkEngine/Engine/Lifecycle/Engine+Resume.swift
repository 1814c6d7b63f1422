extension Engine {
  /// Opens a suspended store again. Does nothing when the store is not suspended.
  /// - Throws: `locked` when somebody else has the lock, `closed`, `historyDiverged` when another
  ///   store lies at the path, and what opening throws. The store stays suspended then.
  package func resume() throws(TidemarkError) {
    defer { notifyObservers() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in
      if isClosed { throw TidemarkError(.closed, "the store is closed") }
      guard isSuspended else { return }
      // A refresh that looked before must not publish after this.
      try refreshing.withLock { (_: inout Void) throws(TidemarkError) in try openAgain() }
    }
  }

  private func openAgain() throws(TidemarkError) {
    var beneath = environment
    beneath.fileSystem = files.base
    try StoreDirectory.check(path, beneath.fileSystem, creates: false)
    let canWrite = writer.withLock { $0.canWrite }
    let lock = canWrite ? try StoreDirectory.lock(path, beneath) : nil
    files.reopen()
    do throws(TidemarkError) {
      try checkSameStore()
      var opener = reopener()
      let opened = try opener.reopen(lock)
      // The opener has written MANIFEST through an object of its own.
      _ = try manifests.load()
      install(opened, staleBelow: opener.staleBelow)
    } catch {
      files.close()
      lock?.release()
      throw error
    }
  }

  private func checkSameStore() throws(TidemarkError) {
    let own = reading.withLock { $0.manifest.storeID }
    guard let found = try manifests.load(), found.manifest.storeID != own else { return }
    throw TidemarkError(
      .historyDiverged, "another store lies at \(path) now; close this one and open that")
  }

  private func reopener() -> StoreOpener {
    var configuration = configuration
    if configuration.access == .create { configuration.access = .write }
    keys.forgetCurrent()
    configuration.encryption = keys.encryption
    // It is among those already, or else this engine would not know it.
    configuration.newKey = nil
    return StoreOpener(path: path, configuration: configuration, environment: environment)
  }

  private func install(_ opened: Opened, staleBelow: UInt64) {
    writer.withLock { state in
      var next = WriterState(
        manifest: opened.manifest, lock: opened.lock, sequence: opened.lastSequence,
        commitTime: HybridTime(max(opened.latestCommitTime, state.commitTime.rawValue)),
        durable: opened.durable, canWrite: opened.canWrite,
        compactor: CompactorState(goingOnFrom: state.compactor))
      next.ballast = BallastState(goingOnFrom: state.ballast)
      state = next
      reading.withLock { read in
        read.takeUp(opened, staleBelow: staleBelow)
        read.isSuspended = false
        isOpen.isSet = true
      }
      derivation.object?.noteTakeover()
    }
  }

  /// Takes up what a writer in another process has done since; for engines that only read.
  package func refresh() throws(TidemarkError) {
    guard configuration.access == .readOnly else { return }
    // One at a time: of two, the one that looked first could come last and turn back time.
    try refreshing.withLock { (_: inout Void) throws(TidemarkError) in
      var opener = StoreOpener(path: path, configuration: configuration, environment: environment)
      let opened = try opener.open()
      try checkReadable()
      reading.withLock { read in
        read.takeUp(opened, staleBelow: opener.staleBelow)
        // Sequences that a crash took back may have been given out again, and a reader of the new
        // state must not come upon what was read before.
        hotCache.removeAll()
        objects.invalidate()
      }
      objects.removeAll()
      caches.removeAll()
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

  /// The error of work that was under way when the store was closed or suspended; other errors
  /// stay what they are.
  func told(_ error: TidemarkError) -> TidemarkError {
    guard error.code == .closed || error.code == .suspended else { return error }
    do { try checkReadable() } catch { return error }
    return error
  }
}

extension TidemarkError {
  /// An engine that is put to sleep must not answer what somebody else may be changing.
  static var suspended: TidemarkError {
    TidemarkError(.suspended, "the store is suspended; call resume()")
  }
}
