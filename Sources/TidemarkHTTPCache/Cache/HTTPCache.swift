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
  /// The limits and staleness rules of the cache, besides the rules in requests and responses.
  public let policy: HTTPCachePolicy
  let transport: any HTTPTransport
  let shelf: ResponseStore
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

  /// Creates a cache whose responses lie under a prefix of a store.
  /// - Parameters:
  ///   - store: keeps the responses.
  ///   - prefix: the prefix of the responses' keys: 1 to 1,024 bytes, and not that of another
  ///     cache.
  ///   - policy: the limits and staleness rules of the cache.
  ///   - transport: sends requests to servers; nil for the platform's own.
  ///   - isOnline: tells whether servers can be reached, as far as the program knows.
  /// - Throws: `invalidArgument` for an invalid prefix.
  public init(
    store: Store, prefix: Key = "http/", policy: HTTPCachePolicy = HTTPCachePolicy(),
    transport: (any HTTPTransport)? = nil, isOnline: @escaping @Sendable () -> Bool = { true }
  ) throws(TidemarkError) {
    self.policy = policy
    self.transport = transport ?? PlatformTransport.make()
    shelf = ResponseStore(
      try store.cache(prefix: prefix, policy: policy.cachePolicy), policy)
    isConnected = isOnline
  }

  /// The store's cache that holds the responses, under their addresses. Each response has the name
  /// of its server as a label, so that `Cache.markStale(labels:)` revalidates all responses of a
  /// server.
  public var responses: Cache<[UInt8]> { shelf.cache }

  /// Whether the cache asks no server, whatever requests say. It then answers with stored responses
  /// however old, unless they forbid that, and with 504 for everything else.
  public var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set { state.withLock { $0.isOffline = newValue } }
  }

  var isOnline: Bool { !isOffline && isConnected() }

  /// How many requests the cache has answered in which way since it was created.
  public var counts: HTTPCacheCounts { state.withLock { $0.counts } }

  func count(_ change: (inout HTTPCacheCounts) -> Void) { state.withLock { change(&$0.counts) } }

  /// Removes all stored responses of an address, in all their variants.
  /// - Parameter url: an absolute address. The fragment after `#` does not matter.
  public func remove(_ url: String) async throws(TidemarkError) {
    let address = HTTPAddress(url, longest: HTTPCacheRequest.longestAddress)
    if let address { try await shelf.void(address) }
  }

  /// Removes all stored responses, and leaves nothing of them on the disk; see `Cache.removeAll`.
  /// The cache does not keep responses that are in transit, and answers no later request with one
  /// of them.
  public func removeAll() async throws(TidemarkError) { try await shelf.cache.removeAll() }

  /// Closes the transport's connections, and cancels requests in flight.
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
