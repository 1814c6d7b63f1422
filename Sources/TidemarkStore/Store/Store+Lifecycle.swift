public import TidemarkEngine

extension Store {
  /// The synchronous forms of a store's writes and upkeep. They commit on the thread that calls
  /// them and return when the store's durability, or the one given, is reached.
  public struct Blocking: Sendable {
    /// The store.
    public let store: Store

    /// Makes everything durable and closes the store. Further calls do nothing.
    public func close() throws(TidemarkError) {
      try store.closing.withLock { _ throws(TidemarkError) in
        for participant in store.participants { participant.close(waits: true) }
        store.background?.stop()
        store.background?.join()
        store.compactor?.stop()
        store.compactor?.join()
        defer {
          store.commits?.stop()
          store.commits?.join()
        }
        // Watchers are to see that it is closed.
        defer { store.hub.tellAll() }
        try store.engine.close()
      }
    }

    /// Lets go of the store's files and its lock; see ``Store/suspend()``.
    public func suspend() throws(TidemarkError) { try store.engine.suspend() }

    /// Takes the lock and goes on; see ``Store/resume()``.
    public func resume() throws(TidemarkError) {
      try store.engine.resume()
      try store.reload()
    }
  }

  /// Makes everything durable and closes the store. Reads and writes fail from then on, and
  /// sequences of changes end. Further calls do nothing.
  public func close() async throws(TidemarkError) {
    try await offPool("tidemark-close") { (store) throws(TidemarkError) in try store.close() }
  }

  /// Makes everything durable and lets go of the store's lock and all its files, for apps that
  /// are put to sleep.
  ///
  /// A commit group that is under way ends first; a compaction, an index image or a backup under
  /// way fails with `suspended`, and so do all reads and writes from then on, since another process
  /// may write meanwhile. Memory for index and caches goes. Views stay, and sequences of changes
  /// wait for ``resume()``. Further calls do nothing; a suspended store can be closed.
  /// - Throws: `closed`; why something could not be made durable or sealed, `unknownOutcome`
  ///   when it may be lost. The store is suspended all the same, and resuming recovers it as an
  ///   opening does after the process was killed.
  public func suspend() async throws(TidemarkError) {
    try await offPool("tidemark-suspend") { (store) throws(TidemarkError) in try store.suspend() }
  }

  /// Opens a suspended store again, beneath the same object; does nothing when it is not suspended.
  ///
  /// Views throw `historyGone` where another process has dropped meanwhile what they show, and
  /// views and changes throw `historyDiverged` where they have come to entries that are gone.
  /// - Throws: `locked` when another process has the store, and what opening throws. The store
  ///   stays suspended then; try again later.
  public func resume() async throws(TidemarkError) {
    try await offPool("tidemark-resume") { (store) throws(TidemarkError) in try store.resume() }
  }

  /// Whether the store is suspended.
  public var isSuspended: Bool { engine.reader.isSuspended }
}
