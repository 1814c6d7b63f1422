public import TidemarkEngine

extension Store {
  /// The synchronous forms of a store's writes and maintenance. They work on the thread that calls
  /// them and block it; writes return when the store's durability, or the one given, is reached.
  public struct Blocking: Sendable {
    /// The store that these calls write to.
    public let store: Store

    /// Makes everything durable and closes the store. Further calls do nothing.
    public func close() throws(TidemarkError) {
      try store.closing.withLock { _ throws(TidemarkError) in
        // First whatever may still write, each stopped before it is joined; then the log.
        for participant in store.participants { participant.close(waits: true) }
        store.background?.stop()
        store.background?.join()
        store.compactor?.stop()
        store.compactor?.join()
        // Last, also when closing fails: this thread resumes the tasks that wait for a sync.
        defer {
          store.commits?.stop()
          store.commits?.join()
        }
        // Once the engine is closed, watchers wake, find that out and end.
        defer { store.hub.tellAll() }
        try store.engine.close()
      }
    }

    /// Closes the store's files and releases its lock; see ``Store/suspend()``.
    public func suspend() throws(TidemarkError) { try store.engine.suspend() }

    /// Opens a suspended store again; see ``Store/resume()``.
    public func resume() throws(TidemarkError) {
      try store.engine.resume()
      // Another process may have written since the store was suspended.
      try store.reload()
    }
  }

  /// Makes everything durable and closes the store. Reads and writes fail from then on, and
  /// sequences of changes end. Further calls do nothing.
  public func close() async throws(TidemarkError) {
    try await offPool("tidemark-close") { (store) throws(TidemarkError) in try store.close() }
  }

  /// Makes everything durable, closes the store's files and releases its lock, for apps that are
  /// put to sleep.
  ///
  /// A commit group that is under way ends first; a compaction, an index checkpoint or a backup
  /// under way fails with `suspended`, and so do all reads and writes from then on, since another
  /// process may write meanwhile. Memory of index and caches is freed. After ``resume()`` views can
  /// be read again, and sequences of changes go on. A suspended store can be closed.
  /// - Throws: `closed`; what failed in making entries durable or sealing the log, `unknownOutcome`
  ///   where entries may be lost. The store is suspended all the same, and ``resume()`` recovers it
  ///   as opening does after the process was killed.
  public func suspend() async throws(TidemarkError) {
    try await offPool("tidemark-suspend") { (store) throws(TidemarkError) in try store.suspend() }
  }

  /// Opens a suspended store again, with the same object; it stays as it is when not suspended.
  ///
  /// Views throw `historyGone` where another process has dropped meanwhile what they show, and
  /// views and changes throw `historyDiverged` where the sequence they reached was lost.
  /// - Throws: `locked` when another process has the store, and what opening throws. The store
  ///   stays suspended then; try again later.
  public func resume() async throws(TidemarkError) {
    try await offPool("tidemark-resume") { (store) throws(TidemarkError) in try store.resume() }
  }

  /// Whether the store is suspended, so that reads and writes throw `suspended` until ``resume()``.
  public var isSuspended: Bool { engine.reader.isSuspended }

  /// Frees the memory of the store's caches, which ``Configuration/cacheBytes`` bounds. Call it
  /// when the system warns an app of low memory. Later reads come from the disk until the caches
  /// fill again.
  public func releaseMemory() { engine.reader.removeCached() }
}
