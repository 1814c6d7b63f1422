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

    /// Makes everything that was written so far durable.
    public func flush() throws(TidemarkError) { try store.engine.writer.flush() }
  }
}

extension Store {
  /// Makes everything durable and closes the store. Reads and writes fail from then on, and
  /// sequences of changes end. Further calls do nothing.
  public func close() async throws(TidemarkError) {
    try await offPool("tidemark-close") { (store) throws(TidemarkError) in try store.close() }
  }
}
