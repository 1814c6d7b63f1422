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
  let gates = RequestGates()
  private let isConnected: @Sendable () -> Bool
  private let state = Lock(State())

  private struct State {
    var isOffline = false
    var counts = HTTPCacheCounts()
    var refreshes: [UInt64: Task<Void, Never>] = [:]
    var nextRefresh: UInt64 = 1
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
      try store.cache(prefix: prefix, policy: policy.cachePolicy), variants: policy.variants)
    isConnected = isOnline
  }

  deinit {
    for task in state.withLock({ Array($0.refreshes.values) }) { task.cancel() }
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
    if let address = HTTPAddress(url) { try await shelf.void(address) }
  }

  /// Gives up all that is stored.
  public func removeAll() async throws(TidemarkError) { try await shelf.cache.removeAll() }

  /// Lets go of the transport's connections, and calls off what is asked behind readers' backs.
  public func close() async {
    for task in state.withLock({ Array($0.refreshes.values) }) { task.cancel() }
    await transport.close()
  }

  /// Most addresses that are asked about behind readers' backs at a time.
  private static let mostRefreshes = 16

  /// Asks a server for which nobody waits, unless that is being done.
  func refresh(_ message: HTTPCacheRequest) {
    guard gates.enterIfFree(message.gate) else { return }
    // Another one may have come back between the reader's look and the gate.
    guard case .serveAndRefresh(let found, _)? = try? plan(message) else {
      return gates.leave(message.gate)
    }
    let isTaken = state.withLock { state in
      guard state.refreshes.count < Self.mostRefreshes else { return false }
      let number = state.nextRefresh
      state.nextRefresh += 1
      state.refreshes[number] = Task { [weak self] in
        try? await self?.ask(message, found, head: { _ in }, body: { _ in })
        self?.gates.leave(message.gate)
        self?.forget(number)
      }
      return true
    }
    if !isTaken { gates.leave(message.gate) }
  }

  private func forget(_ number: UInt64) {
    state.withLock { $0.refreshes[number] = nil }
  }

  /// Waits until nothing is asked behind readers' backs.
  package func waitForRefreshes() async {
    while let task = state.withLock({ $0.refreshes.values.first }) { await task.value }
  }
}

/// A request as the cache looks at it.
struct HTTPCacheRequest: Sendable {
  /// The message for the server, with names of fields in lower case.
  var message: HTTPTransportRequest
  /// The address; nil for what is none.
  let address: HTTPAddress?
  let control: CacheControl

  init(_ request: HTTPTransportRequest) {
    message = request
    var headers: [String: String] = [:]
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      let name = name.lowercased()
      headers[name] = headers[name].map { "\($0), \(value)" } ?? value
    }
    message.headers = headers
    address = HTTPAddress(request.url)
    // The older way to say the same (RFC 9111, 5.4).
    let asksAnew =
      headers["cache-control"] == nil
      && headers["pragma"]?.lowercased().contains("no-cache") == true
    control = CacheControl(asksAnew ? "no-cache" : headers["cache-control"])
  }

  var isHead: Bool { message.method == "HEAD" }

  /// Whether the cache may answer it: parts of a content, and what is only to be done upon a
  /// condition, are the server's.
  var isCacheable: Bool {
    guard message.method == "GET" || message.method == "HEAD", address != nil else { return false }
    return !["range", "if-range", "if-match", "if-unmodified-since"].contains {
      message.headers[$0] != nil
    }
  }

  /// Whether it may change something at the server (RFC 9110, 9.2.1).
  var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(message.method) }

  /// Requests that the same response answers.
  var gate: String {
    let headers = message.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    return ([message.method, message.url] + headers).joined(separator: "\n")
  }
}
