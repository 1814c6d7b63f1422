extension Engine {
  /// Opens a suspended store again. Does nothing when the store is not suspended.
  /// - Throws: `locked` when somebody else has the lock, `closed`, `historyDiverged` when another
  ///   store lies at the path, and what opening throws. The store stays suspended then.
  package func resume() throws(TidemarkError) {
    defer { store.observers.notify() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in
      if reader.isClosed { throw TidemarkError(.closed, "the store is closed") }
      guard reader.isSuspended else { return }
      // A refresh that has read the log before this must not show readers what it read after this.
      try refreshing.withLock { (_: inout Void) throws(TidemarkError) in try openAgain() }
    }
  }

  private func openAgain() throws(TidemarkError) {
    // `files` is closed while the store is suspended: what comes first goes past it.
    var beneath = environment
    beneath.fileSystem = files.base
    try StoreDirectory.check(path, beneath.fileSystem, creates: false)
    var configuration = configuration
    if configuration.access == .create { configuration.access = .write }
    keys.forgetCurrent()
    configuration.encryption = keys.encryption
    // `keys` has had the new key since the store was opened.
    configuration.newKey = nil
    let opener = StoreOpener(path: path, configuration: configuration, environment: environment)
    let lock = opener.writes ? try StoreDirectory.lock(path, beneath) : nil
    files.reopen()
    do throws(TidemarkError) {
      if let found = try writer.manifests.load(), found.manifest.storeID != reader.storeID {
        throw TidemarkError(
          .historyDiverged, "another store lies at \(path) now; close this one and open that")
      }
      let opened = try opener.reopen(lock)
      // The opener wrote MANIFEST through an object of its own; this one learns the files' lengths.
      _ = try writer.manifests.load()
      // From here on the writer owns the lock, and nothing below throws.
      try writer.takeUp(opened)
      compactor.startOver()
      checkpointer.startOver()
    } catch {
      files.close()
      lock?.release()
      throw error
    }
  }

  /// Takes up what a writer in another process has done since; for engines that only read.
  package func refresh() throws(TidemarkError) {
    guard configuration.access == .readOnly else { return }
    // One at a time: of two, the one that read first could come last and show an older state.
    try refreshing.withLock { (_: inout Void) throws(TidemarkError) in
      let opener = StoreOpener(path: path, configuration: configuration, environment: environment)
      try reader.takeUp(opener.open(), resumes: false)
    }
  }
}
