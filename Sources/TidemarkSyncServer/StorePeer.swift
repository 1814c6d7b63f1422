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
public final class StorePeer: Peer {
  /// Judges and appends what is pushed to the store.
  public let handler: SyncHandler
  private let peer: HandlerPeer

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
  package init(
    _ store: Store, options: SyncHandler.Options = SyncHandler.Options(), usesThreads: Bool
  ) throws(TidemarkError) {
    handler = try SyncHandler(serving: store, options: options)
    peer = HandlerPeer(
      handler, access: .everything, usesThreads: usesThreads, closesHandler: true)
  }

  public var capabilities: PeerCapabilities { peer.capabilities }

  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try await peer.hello(request)
  }

  public func push(_ request: PushRequest) async throws -> PushAnswer {
    try await peer.push(request)
  }

  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    try await peer.pull(request)
  }

  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await peer.values(request)
  }

  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await peer.digest(request)
  }

  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await peer.attach(request)
  }

  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await peer.fetch(request)
  }

  /// Closes the store.
  public func close() async { await peer.close() }
}
