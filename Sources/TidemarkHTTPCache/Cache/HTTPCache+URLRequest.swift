public import Foundation
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkHTTP
internal import TidemarkSyncProtocol

#if !canImport(Darwin)
  public import FoundationNetworking
#endif

extension HTTPCache {
  /// Most redirects that are followed.
  private static let mostRedirects = 20

  /// Fetches the resource at an address through the cache, as `URLSession` does.
  /// - Parameters:
  ///   - url: the address.
  ///   - limit: the most bytes of the response's body; the default is 64 MiB.
  /// - Returns: the body and the response.
  public func data(from url: URL, limit: Int = 64 << 20) async throws -> (Data, HTTPURLResponse) {
    try await data(for: URLRequest(url: url), limit: limit)
  }

  /// Answers a request as `URLSession` does: redirects are followed, each step through the cache.
  ///
  /// The request's `cachePolicy` is heeded: `reloadIgnoringLocalCacheData` asks anew,
  /// `returnCacheDataElseLoad` takes what is stored however old, `returnCacheDataDontLoad` takes
  /// nothing else.
  /// - Parameters:
  ///   - request: what is asked. Its `timeoutInterval` is the longest time in which nothing comes.
  ///   - limit: most bytes of the answer.
  /// - Throws: as ``stream(_:head:body:)``; `URLError` of code `resourceUnavailable` where nothing
  ///   is stored and nobody is to be asked, `timedOut`, `httpTooManyRedirects`, `unsupportedURL`.
  public func data(
    for request: URLRequest, limit: Int = 64 << 20
  ) async throws -> (Data, HTTPURLResponse) {
    let (given, longest) = (request.timeoutInterval, 604_800.0)
    let silence = Duration.seconds(given > 0 && given < longest ? given : longest)
    let heard = Lock(ContinuousClock.now)
    let result = try await withDeadline({ heard.withLock { $0 } + silence }) {
      try await self.load(request, limit) { heard.withLock { $0 = .now } }
    }
    guard let (url, answer) = result else { throw URLError(.timedOut) }
    if request.cachePolicy == .returnCacheDataDontLoad, answer.status == 504 {
      throw URLError(.resourceUnavailable)
    }
    var fields = answer.headers
    // As `URLSession` has them: `HTTPCookie` takes them apart.
    if !answer.setCookies.isEmpty {
      fields["set-cookie"] = answer.setCookies.joined(separator: ", ")
    }
    guard
      let response = HTTPURLResponse(
        url: url, statusCode: answer.status, httpVersion: "HTTP/1.1", headerFields: fields)
    else { throw URLError(.badServerResponse) }
    return (Data(answer.body), response)
  }

  /// - Parameter heard: is called whenever something comes.
  /// - Returns: the answer, and where redirects have led.
  private func load(
    _ request: URLRequest, _ limit: Int, _ heard: @escaping @Sendable () -> Void
  ) async throws -> (URL, HTTPTransportAnswer) {
    guard var url = request.url?.absoluteURL else { throw URLError(.badURL) }
    var message = HTTPTransportRequest(
      method: request.httpMethod ?? "GET", url: "", headers: request.allHTTPHeaderFields ?? [:],
      body: [UInt8](request.httpBody ?? Data()))
    if let control = Self.control(of: request.cachePolicy) {
      message.headers["Cache-Control"] =
        message.headers["Cache-Control"].map {
          "\($0), \(control)"
        } ?? control
    }
    for _ in 0...Self.mostRedirects {
      guard url.scheme == "http" || url.scheme == "https" else { throw URLError(.unsupportedURL) }
      message.url = url.absoluteString
      let collector = AnswerCollector(limit: limit, isHead: message.method == "HEAD")
      try await stream(message) {
        heard()
        try collector.take(head: $0)
      } body: {
        heard()
        try collector.take($0)
      }
      let answer = try collector.answer()
      guard let next = Self.target(of: answer, from: url, &message) else { return (url, answer) }
      url = next
    }
    throw URLError(.httpTooManyRedirects)
  }

  private static func control(of policy: URLRequest.CachePolicy) -> String? {
    switch policy {
    case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: "no-cache"
    case .returnCacheDataElseLoad: "max-stale"
    case .returnCacheDataDontLoad: "only-if-cached, max-stale"
    case .reloadRevalidatingCacheData: "max-age=0"
    default: nil
    }
  }

  /// Where a redirect leads, with the request that goes there (RFC 9110, 15.4).
  private static func target(
    of answer: HTTPTransportAnswer, from url: URL, _ message: inout HTTPTransportRequest
  ) -> URL? {
    guard [301, 302, 303, 307, 308].contains(answer.status),
      let location = answer.headers["location"],
      let next = URL(string: location, relativeTo: url)?.absoluteURL
    else { return nil }
    let isSafe = message.method == "GET" || message.method == "HEAD"
    if !isSafe, answer.status != 307, answer.status != 308 {
      message.method = "GET"
      message.body = []
    }
    let origin = { (url: URL) in [url.scheme, url.host(), url.port.map { "\($0)" }] }
    if origin(next) != origin(url) {
      // Another server must not learn who asks.
      for name in message.headers.keys
      where ["authorization", "cookie", "proxy-authorization"].contains(name.lowercased()) {
        message.headers[name] = nil
      }
    }
    return next
  }
}
