public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// Another store as the remote end: in a directory, on another disk, or of another device that is
/// attached.
///
/// ```swift
/// let peer = try await StorePeer(at: "/media/stick/notes.tidemark")
/// ```
/// Its log becomes the feed. The store must not be open elsewhere, and must not be used as a
/// client of other peers at the same time.
public typealias StorePeer = HandlerPeer

extension HandlerPeer {
  /// Opens the store in a directory, or makes one.
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - configuration: how it is opened.
  ///   - options: what the store is to accept.
  /// - Throws: what opening a store throws.
  public convenience init(
    at path: String, configuration: Store.Configuration = Store.Configuration(),
    options: SyncHandler.Options = SyncHandler.Options()
  ) async throws(TidemarkError) {
    let store = try await Store.open(at: path, configuration: configuration)
    do {
      try self.init(store, options: options, usesThreads: configuration.usesThreads)
    } catch {
      try? await store.close()
      throw error
    }
  }

  /// The peer of a store that is open, which it closes with itself.
  /// - Parameters:
  ///   - store: the store.
  ///   - options: what the store is to accept.
  public convenience init(
    _ store: Store, options: SyncHandler.Options = SyncHandler.Options()
  ) throws(TidemarkError) {
    try self.init(store, options: options, usesThreads: true)
  }

  /// A peer for simulations, whose caller's thread does all the work unless `usesThreads`.
  package convenience init(
    _ store: Store, options: SyncHandler.Options = SyncHandler.Options(), usesThreads: Bool
  ) throws(TidemarkError) {
    self.init(
      try SyncHandler(serving: store, options: options), usesThreads: usesThreads,
      closesHandler: true)
  }
}
