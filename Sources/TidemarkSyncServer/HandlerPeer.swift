public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// A peer in the same process: calls a ``SyncHandler`` directly.
///
/// It is for tests, for programs that serve and replicate at once, and serves as ``StorePeer``.
public final class HandlerPeer: Peer {
  /// The handler that answers the calls of this peer.
  public let handler: SyncHandler
  private let access: SyncAccess
  /// Whether calls run on threads of their own, since they block on the disk.
  private let usesThreads: Bool
  private let closesHandler: Bool

  /// Creates a peer that calls a handler in the same process.
  /// - Parameters:
  ///   - handler: answers the calls.
  ///   - access: the entries that the calls may read and write.
  public convenience init(_ handler: SyncHandler, access: SyncAccess = .everything) {
    self.init(handler, access: access, usesThreads: true)
  }

  /// A peer for simulations: without `usesThreads`, calls run on the caller's thread.
  package init(
    _ handler: SyncHandler, access: SyncAccess = .everything, usesThreads: Bool,
    closesHandler: Bool = false
  ) {
    self.handler = handler
    self.access = access
    self.usesThreads = usesThreads
    self.closesHandler = closesHandler
  }

  /// What the handler supports, and the limits of its batches.
  public var capabilities: PeerCapabilities { handler.capabilities }

  /// Opens a session at the handler and returns the feed's state.
  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try await call { try $0.hello(request, access: $1) }
  }

  /// Pushes a batch to the handler, and returns its verdicts after a durable commit.
  public func push(_ request: PushRequest) async throws -> PushAnswer {
    try await call { try $0.push(request, access: $1) }
  }

  /// Reads a page of the handler's feed after a position. If the feed has nothing there, the call
  /// waits as long as the request says.
  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    func read(from lookedThrough: FeedPosition = .beginning) async throws -> PullAnswer {
      try await call { handler, access in
        try handler.settled(\.range) {
          try handler.stagePull(request, access, lookedThrough).answer
        }
      }
    }
    guard request.waitMilliseconds > 0 else { return try await read() }
    // Observing begins before the first read, so that no append between the two is missed.
    let (news, listener) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let token = handler.observe { listener.yield() }
    let alarm = Task {
      try? await Task.sleep(for: .milliseconds(Int64(request.waitMilliseconds)))
      listener.finish()
    }
    defer {
      alarm.cancel()
      handler.stopObserving(token)
    }
    var answer = try await read()
    var iterator = news.makeAsyncIterator()
    while answer.entries.isEmpty {
      let previous = answer.cursor
      // An entry appended after the page and before its range was read wakes no observer any more.
      let isAtEnd = previous.offset >= answer.range.head
      if isAtEnd, await iterator.next() == nil { break }
      answer = try await read(from: previous)
      // A page that cannot go on, as one of own entries before another's, is no reason to wait.
      if answer.cursor == previous, previous.offset < answer.range.head { break }
    }
    try Task.checkCancellation()
    return answer
  }

  /// Reads the current contents of keys from the handler.
  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await call { try $0.values(request, access: $1) }
  }

  /// Reads digests from the handler, to find keys that differ.
  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await call { try $0.digest(request, access: $1) }
  }

  /// Uploads a part of an attachment or of a large value to the handler.
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await call { try $0.attach(request, access: $1) }
  }

  /// Downloads a part of an attachment or of a large value from the handler.
  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await call { try $0.fetch(request, access: $1) }
  }

  /// Closes the store, if the peer was created from a directory or a store; else does nothing.
  public func close() async {
    guard closesHandler else { return }
    // A failure to close is ignored: whatever was answered is durable already.
    try? await call { handler, _ in try handler.close() }
  }

  private func call<R: Sendable>(
    _ body: @escaping @Sendable (SyncHandler, SyncAccess) throws -> R
  ) async throws -> R {
    let (handler, access) = (handler, access)
    let body = { @Sendable (handler: SyncHandler, access: SyncAccess) throws -> R in
      do { return try body(handler, access) } catch let error as PeerError {
        // The store's own words may contain paths: callers in this process may see them.
        throw PeerError(error.kind, error.detail ?? error.message, retryAfter: error.retryAfter)
      }
    }
    guard usesThreads else { return try body(handler, access) }
    let result: Result<R, any Error>
    do throws(TidemarkError) {
      result = try await onOwnThread("tidemark-peer") { Result { try body(handler, access) } }
    } catch { throw PeerError(.unavailable, error.message) }
    return try result.get()
  }
}

/// A peer that is another store: in a directory, on another disk, or on an attached device.
///
/// ```swift
/// let peer = try await StorePeer(at: "/media/stick/notes.tidemark")
/// ```
/// Its log is the feed. The store must not be open elsewhere, nor replicate to other peers as a
/// client at the same time.
public typealias StorePeer = HandlerPeer

extension HandlerPeer {
  /// Opens the store in a directory as a peer, or creates the store.
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - configuration: how the store is opened.
  ///   - options: the limits and rules of the store as a peer.
  /// - Throws: the errors of opening a store.
  public convenience init(
    at path: String, configuration: Store.Configuration = Store.Configuration(),
    options: SyncHandler.Options = SyncHandler.Options()
  ) async throws(TidemarkError) {
    let store = try await Store.open(at: path, configuration: configuration)
    do {
      try self.init(store, options: options)
    } catch {
      try? await store.close()
      throw error
    }
  }

  /// Creates a peer from an open store. Closing the peer closes the store.
  /// - Parameters:
  ///   - store: the store that becomes the peer.
  ///   - options: the limits and rules of the store as a peer.
  public convenience init(
    _ store: Store, options: SyncHandler.Options = SyncHandler.Options()
  ) throws(TidemarkError) {
    self.init(
      try SyncHandler(serving: store, options: options), usesThreads: store.usesThreads,
      closesHandler: true)
  }
}
