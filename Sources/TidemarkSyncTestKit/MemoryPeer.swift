public import Tidemark
public import TidemarkSync
public import TidemarkSyncServer
public import TidemarkTestKit

/// A remote end on a simulated disk: everything that a server decides, without a network.
///
/// ```swift
/// let peer = try MemoryPeer()
/// let hello = try await peer.hello(HelloRequest(replica: replica))
/// ```
/// Calls run on the caller's thread. The disk and the clock are the test's: with them it cuts the
/// power and lets leases run out.
public final class MemoryPeer: Peer {
  /// The simulated disk that holds the peer's feed. Cut its power to test recovery.
  public let disk: SimulatedFileSystem
  /// The clock of the peer. Advance it to let leases expire.
  public let clock: ManualClock
  /// The handler that judges pushed changes and appends them to the feed.
  public let handler: SyncHandler
  private let peer: HandlerPeer

  /// Creates a peer with an empty feed, or with the feed that a disk holds.
  /// - Parameters:
  ///   - disk: the simulated disk for the feed.
  ///   - clock: the clock of the peer.
  ///   - seed: decides ids and epochs. Use another seed for every opening of the same disk.
  ///   - options: the limits and rules of the peer.
  ///   - access: the entries that the calls may read and write.
  /// - Throws: the errors of opening a store.
  public init(
    disk: SimulatedFileSystem = SimulatedFileSystem(), clock: ManualClock = ManualClock(),
    seed: UInt64 = 1, options: SyncHandler.Options = SyncHandler.Options(),
    access: SyncAccess = .everything
  ) throws(TidemarkError) {
    self.disk = disk
    self.clock = clock
    handler = try SyncHandler(
      at: "feed",
      configuration: Store.Configuration(
        environment: Store.Environment(
          fileSystem: disk, clock: clock, random: SeededRandom(seed: seed)),
        usesThreads: false),
      options: options)
    peer = HandlerPeer(handler, access: access, usesThreads: false)
  }

  /// The capabilities of the peer's handler.
  public var capabilities: PeerCapabilities { peer.capabilities }

  /// Opens a session at the peer's handler and returns the feed's state.
  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try await peer.hello(request)
  }

  /// Pushes a batch to the peer's handler, and returns its verdicts.
  public func push(_ request: PushRequest) async throws -> PushAnswer {
    try await peer.push(request)
  }

  /// Reads a page of the peer's feed after a position.
  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    try await peer.pull(request)
  }

  /// Reads the current contents of keys from the peer.
  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await peer.values(request)
  }

  /// Reads digests from the peer, to find keys that differ.
  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await peer.digest(request)
  }

  /// Uploads a part of an attachment or of a large value to the peer.
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await peer.attach(request)
  }

  /// Downloads a part of an attachment or of a large value from the peer.
  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await peer.fetch(request)
  }

  /// Closes the feed. Another ``MemoryPeer`` on the same disk can open it again.
  public func close() async { try? handler.close() }
}
