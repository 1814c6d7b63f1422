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
  /// The disk that the feed is on.
  public let disk: SimulatedFileSystem
  /// The clock of the peer.
  public let clock: ManualClock
  /// Judges and appends.
  public let handler: SyncHandler
  private let peer: HandlerPeer

  /// A peer with an empty feed, or with what a disk holds.
  /// - Parameters:
  ///   - disk: what the feed is on.
  ///   - clock: what time it is there.
  ///   - seed: decides about ids and epochs; another one for every opening of a disk.
  ///   - options: what is accepted.
  ///   - access: what the calls may reach.
  /// - Throws: what opening a store throws.
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

  /// Closes the feed. What is on the disk can be opened again.
  public func close() async { try? handler.close() }
}
