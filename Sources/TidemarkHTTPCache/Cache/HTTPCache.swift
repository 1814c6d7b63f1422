public import Tidemark
internal import TidemarkEngine
public import TidemarkHTTP
internal import TidemarkSyncProtocol

/// Answers requests of HTTP with what the server has said before, as RFC 9111 and RFC 5861 allow a
/// private cache to: as long as it is fresh, after asking whether it is still right, and while
/// there is no network.
///
/// ```swift
/// let web = try HTTPCache(store: store)
/// let answer = try await web.answer(
///   to: HTTPTransportRequest(url: "https://example.org/news"), limit: 1 << 20)
/// ```
/// It is a transport itself, so that it can stand wherever one is taken. Responses lie in the store
/// as cached entries under a prefix: they take no part in replication, make room when there are too
/// many, and are gone with the cache. Long bodies are attachments, streamed both ways. Each answer
/// says in the field `Cache-Status` (RFC 9211) where it came from.
///
/// A cache is one user's: responses to requests with an `Authorization` field are kept as others
/// are. Give each account a prefix of its own, or call ``removeAll()`` when one signs out.
public final class HTTPCache: HTTPTransport {
  /// The rules besides those of requests and responses.
  public let policy: HTTPCachePolicy
  let transport: any HTTPTransport
  let shelf: ResponseShelf
  let questions = Questions()
  private let isConnected: @Sendable () -> Bool
  private let state = Lock(State())
  private let refreshed = Signal()

  private struct State {
    var isOffline = false
    var counts = HTTPCacheCounts()
    /// How many addresses are asked about behind readers' backs.
    var refreshes = 0
  }

  /// A cache under a prefix of a store.
  /// - Parameters:
  ///   - store: keeps the responses.
  ///   - prefix: that of their keys; 1 to 1,024 bytes, and no other cache's.
  ///   - policy: the rules besides those of requests and responses.
  ///   - transport: carries the requests; nil for the platform's own.
  ///   - isOnline: whether servers can be reached, as far as anybody knows.
  /// - Throws: `invalidArgument`.
  public init(
    store: Store, prefix: Key = "http/", policy: HTTPCachePolicy = HTTPCachePolicy(),
    transport: (any HTTPTransport)? = nil, isOnline: @escaping @Sendable () -> Bool = { true }
  ) throws(TidemarkError) {
    self.policy = policy
    self.transport = transport ?? PlatformTransport.make()
    shelf = ResponseShelf(
      try store.cache(prefix: prefix, policy: policy.cachePolicy), policy)
    isConnected = isOnline
  }

  /// The cache of the store in which the responses lie, under their addresses; labels are the names
  /// of servers, so that `Cache.markStale(labels:)` makes all of one's responses be asked about.
  public var responses: Cache<[UInt8]> { shelf.cache }

  /// Whether no server is to be asked, whatever requests want. What is stored serves then, however
  /// old, unless it forbids that; for what is not, the answer is 504.
  public var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set { state.withLock { $0.isOffline = newValue } }
  }

  var isOnline: Bool { !isOffline && isConnected() }

  /// How often it was asked, and what came of it.
  public var counts: HTTPCacheCounts { state.withLock { $0.counts } }

  func count(_ change: (inout HTTPCacheCounts) -> Void) { state.withLock { change(&$0.counts) } }

  /// Gives up what is stored of an address, in all its variants.
  /// - Parameter url: an absolute address; what follows `#` does not matter.
  public func remove(_ url: String) async throws(TidemarkError) {
    let address = HTTPAddress(url, longest: HTTPCacheRequest.longestAddress)
    if let address { try await shelf.void(address) }
  }

  /// Gives up all that is stored, and leaves nothing of it on the disk; see `Cache.removeAll`.
  /// Answers that are under way are not kept, and nobody who asks after this gets one of them.
  public func removeAll() async throws(TidemarkError) { try await shelf.cache.removeAll() }

  /// Lets go of the transport's connections, and calls off what is under way.
  public func close() async {
    for question in questions.all { question.callOff() }
    await transport.close()
  }

  /// Most addresses that are asked about behind readers' backs at a time.
  private static let mostRefreshes = 16

  /// - Returns: whether there may be one more.
  func takeRefresh() -> Bool {
    state.withLock { state in
      guard state.refreshes < Self.mostRefreshes else { return false }
      state.refreshes += 1
      return true
    }
  }

  func endRefresh() {
    state.withLock { $0.refreshes -= 1 }
    refreshed.raise()
  }

  /// Waits until nothing is asked behind readers' backs.
  package func waitForRefreshes() async {
    _ = try? await refreshed.first { state.withLock { $0.refreshes == 0 ? true : nil } }
  }
}
