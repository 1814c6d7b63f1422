public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// A remote end in the same process: calls a ``SyncHandler`` directly.
///
/// For tests, for programs that serve and replicate at once, and as ``StorePeer``.
public final class HandlerPeer: Peer {
  /// Judges and appends what is pushed.
  public let handler: SyncHandler
  private let access: SyncAccess
  /// Whether calls go to threads of their own, since they wait for the disk.
  private let usesThreads: Bool
  private let closesHandler: Bool

  /// A peer that calls a handler.
  /// - Parameters:
  ///   - handler: answers.
  ///   - access: what the calls may reach.
  public convenience init(_ handler: SyncHandler, access: SyncAccess = .everything) {
    self.init(handler, access: access, usesThreads: true)
  }

  /// A peer for simulations, whose caller's thread does all the work unless `usesThreads`.
  package init(
    _ handler: SyncHandler, access: SyncAccess = .everything, usesThreads: Bool,
    closesHandler: Bool = false
  ) {
    self.handler = handler
    self.access = access
    self.usesThreads = usesThreads
    self.closesHandler = closesHandler
  }

  public var capabilities: PeerCapabilities { handler.capabilities }

  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try await call { try $0.hello(request, access: $1) }
  }

  public func push(_ request: PushRequest) async throws -> PushAnswer {
    try await call { try $0.push(request, access: $1) }
  }

  /// Reads the feed after a position; where there is nothing, waits for it as long as asked.
  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    func read(from lookedThrough: Position = .beginning) async throws -> PullAnswer {
      try await call { handler, access in
        try handler.settled(\.range) {
          try handler.stagePull(request, access, lookedThrough).answer
        }
      }
    }
    guard request.waitMilliseconds > 0 else { return try await read() }
    // Listening begins before the first look, so that nothing falls between the two.
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
      let former = answer.cursor
      // An entry may have come between the page and its range: then nobody wakes, and it is read.
      let isAtEnd = former.offset >= answer.range.head
      if isAtEnd, await iterator.next() == nil { break }
      answer = try await read(from: former)
      // Nothing wakes a page that gets no further: the caller decides.
      if answer.cursor == former, former.offset < answer.range.head { break }
    }
    try Task.checkCancellation()
    return answer
  }

  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await call { try $0.values(request, access: $1) }
  }

  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await call { try $0.digest(request, access: $1) }
  }

  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await call { try $0.attach(request, access: $1) }
  }

  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await call { try $0.fetch(request, access: $1) }
  }

  public func close() async {
    guard closesHandler else { return }
    // The peer has nobody to tell that closing failed; what was answered is durable anyway.
    try? await call { handler, _ in try handler.close() }
  }

  private func call<R: Sendable>(
    _ body: @escaping @Sendable (SyncHandler, SyncAccess) throws -> R
  ) async throws -> R {
    let (handler, access) = (handler, access)
    let body = { @Sendable (handler: SyncHandler, access: SyncAccess) throws -> R in
      do { return try body(handler, access) } catch let error as PeerError {
        // Callers in this process may know what its store has said.
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
      try self.init(store, options: options)
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
    self.init(
      try SyncHandler(serving: store, options: options), usesThreads: store.usesThreads,
      closesHandler: true)
  }
}
