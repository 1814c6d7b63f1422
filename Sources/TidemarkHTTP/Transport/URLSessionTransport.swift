internal import Foundation
internal import TidemarkEngine
internal import TidemarkSyncProtocol

#if !canImport(Darwin)
  internal import FoundationNetworking
#endif

/// A transport over Foundation's `URLSession`, which every platform has.
///
/// Connections are kept and reused. Each stream has a session of its own, so that it takes no
/// connection from other calls.
///
/// On Linux Foundation has weaknesses that matter where servers are not trusted. It crashes when a
/// connection breaks between the first line of a response and the end of its headers
/// (swift-corelibs-foundation #5285, in Swift up to 6.3), and at trailers. A chunked response that
/// never ends, sent at full speed, is only stopped after some hundred megabytes. Of several
/// `Set-Cookie` it delivers one. It does not notice a cut-off TLS connection, so responses over TLS
/// without `Content-Length` or chunks are refused there. `CurlTransport` has none of these.
public final class URLSessionTransport: HTTPTransport {
  /// A session and its delegate.
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

  /// Creates a transport with its own `URLSession`.
  /// - Parameter connections: the most connections to a server at a time.
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

  /// A week in seconds. Longer timeouts overflow on Linux, where they are counted in milliseconds.
  private static let longest = 604_800.0

  /// Sends a request and waits for the whole response; see ``HTTPTransport/answer(to:limit:)``.
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

  /// Sends a request and passes the response on in pieces; see
  /// ``HTTPTransport/stream(_:head:body:)``.
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
    // A session must not be asked for a task after it was invalidated.
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
      // This resumes the caller at once, before the session completes the task.
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
    // A range is of the encoded body, and the session would decode it.
    if request.headers["range"] != nil, request.headers["accept-encoding"] == nil {
      message.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    if request.hasBody { message.httpBody = Data(request.body) }
    return message
  }

  /// Invalidates the transport's URL sessions; running calls fail.
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
