extension Engine {
  /// Takes up what a writer in another process has done since; for engines that only read.
  package func refresh() throws(TidemarkError) {
    guard configuration.access == .readOnly else { return }
    // One at a time: of two, the one that looked first could come last and turn back time.
    try refreshing.withLock { (_: inout Void) throws(TidemarkError) in try takeUp() }
  }

  private func takeUp() throws(TidemarkError) {
    var opener = StoreOpener(path: path, configuration: configuration, environment: environment)
    let opened = try opener.open()
    let stale = opener.staleBelow
    reading.withLock { read in
      read.takeUp(opened, staleBelow: stale)
      // Sequences that a crash took back may have been given out again, and a reader of the new
      // state must not come upon what was read before.
      hotCache.removeAll()
      objects.invalidate()
    }
    objects.removeAll()
    caches.removeAll()
  }
}
