internal import Foundation
internal import TidemarkEngine
internal import TidemarkSyncProtocol

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// Carries requests with Foundation's `URLSession`: the transport that is there everywhere.
///
/// Connections are kept and used again. Streams have a session of their own each, so that they
/// take no connection from the calls.
///
/// On Linux its library has weaknesses that matter where servers are not trusted. It ends the
/// process when a connection breaks after the first line of an answer and before the end of its
/// headers (swift-corelibs-foundation #5285, in Swift up to 6.3), and at trailers. An answer in
/// chunks that never ends, sent at full speed, is only stopped after some hundred megabytes. Of
/// several `Set-Cookie` it hands one on. It does not notice when TLS is cut off, so answers over it
/// without `Content-Length` or chunks are refused there. None of it is so with `CurlTransport`.
public final class URLSessionTransport: HTTPTransport {
  /// A session with what it receives.
  private struct Line: Sendable {
    let session: URLSession
    let reception: SessionReception

    init(connections: Int) {
      reception = SessionReception()
      session = URLSession(
        configuration: URLSessionTransport.configuration(connections: connections),
        delegate: reception, delegateQueue: nil)
    }

    func close() { reception.close(session) }
  }

  private struct State {
    var isOpen = true
    var streams: [Int: Line] = [:]
    var nextStream = 0
  }

  private let calls: Line
  private let state = Lock(State())

  /// A transport with a session of its own.
  /// - Parameter connections: most connections to a server at a time.
  public init(connections: Int = 4) { calls = Line(connections: max(1, connections)) }

  deinit { closeAll() }

  /// No cache, no cookies, no credentials, and no timeouts: the callers have their own.
  private static func configuration(connections: Int) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.httpCookieStorage = nil
    configuration.httpCookieAcceptPolicy = .never
    configuration.httpShouldSetCookies = false
    configuration.urlCredentialStorage = nil
    configuration.httpMaximumConnectionsPerHost = connections
    configuration.timeoutIntervalForRequest = longest
    configuration.timeoutIntervalForResource = longest
    return configuration
  }

  /// Seconds; a week. Longer ones do not fit everywhere on Linux when counted in milliseconds.
  private static let longest = 604_800.0

  public func answer(
    to request: HTTPTransportRequest, limit: Int
  ) async throws -> HTTPTransportAnswer {
    let collector = AnswerCollector(limit: limit, isHead: request.method == "HEAD")
    try await run(
      request, calls,
      SessionReception.Receiver(
        head: { try collector.take(head: $0) }, body: { try collector.take($0) }))
    return try collector.answer()
  }

  public func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    let line = Line(connections: 1)
    let number = state.withLock { state in
      state.nextStream += 1
      state.streams[state.nextStream] = line
      return state.nextStream
    }
    defer {
      if state.withLock({ $0.streams.removeValue(forKey: number) }) != nil { line.close() }
    }
    try await run(request, line, SessionReception.Receiver(head: head, body: body))
  }

  private func run(
    _ request: HTTPTransportRequest, _ line: Line, _ receiver: SessionReception.Receiver
  ) async throws {
    let message = try Self.message(request)
    // A session that was closed must not be asked any more.
    guard let task = state.withLock({ $0.isOpen ? line.session.dataTask(with: message) : nil })
    else { throw HTTPTransportAnswer.closed }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        line.reception.expect(task, receiver, continuation)
        if Task.isCancelled {
          line.reception.cancel(task, in: line.session, CancellationError())
        } else if !state.withLock({ $0.isOpen }) {
          line.reception.cancel(task, in: line.session, HTTPTransportAnswer.closed)
        } else {
          task.resume()
        }
      }
    } onCancel: {
      // Nobody waits for what the session makes of it.
      line.reception.cancel(task, in: line.session, CancellationError())
    }
  }

  private static func message(_ request: HTTPTransportRequest) throws(PeerError) -> URLRequest {
    let request = try request.checked()
    guard let url = URL(string: request.url) else {
      throw PeerError(.failed, "the address \(request.url) cannot be used")
    }
    var message = URLRequest(
      url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: longest)
    message.httpMethod = request.method
    message.httpShouldHandleCookies = false
    for (name, value) in request.headers { message.setValue(value, forHTTPHeaderField: name) }
    // Ranges are those of the encoded body, which the session would decode.
    if request.headers["range"] != nil, request.headers["accept-encoding"] == nil {
      message.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    if request.hasBody { message.httpBody = Data(request.body) }
    return message
  }

  /// Ends the sessions; calls that are under way fail.
  public func close() async { closeAll() }

  private func closeAll() {
    let streams = state.withLock { (state: inout State) -> [Line]? in
      guard state.isOpen else { return nil }
      state.isOpen = false
      defer { state.streams = [:] }
      return Array(state.streams.values)
    }
    guard let streams else { return }
    for line in streams + [calls] { line.close() }
  }
}
