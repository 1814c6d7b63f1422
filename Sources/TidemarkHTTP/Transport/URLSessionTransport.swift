internal import Foundation
internal import TidemarkSync

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// Carries requests with Foundation's `URLSession`: the transport that is there everywhere.
///
/// Connections are kept and used again. Streams have a session of their own each, so that they
/// take no connection from the calls.
public final class URLSessionTransport: HTTPTransport {
  private let session: URLSession
  private let reception = SessionReception()

  /// A transport with a session of its own.
  /// - Parameter connections: most connections to a server at a time.
  public init(connections: Int = 4) {
    session = URLSession(
      configuration: Self.configuration(connections: max(1, connections)), delegate: reception,
      delegateQueue: nil)
  }

  deinit { session.invalidateAndCancel() }

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
    let collector = AnswerCollector(limit: limit)
    try await run(
      request, session, reception,
      SessionReception.Receiver(
        head: { try collector.take(head: $0) }, body: { try collector.take($0) }))
    return try collector.answer()
  }

  public func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    let reception = SessionReception()
    let session = URLSession(
      configuration: Self.configuration(connections: 1), delegate: reception, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    try await run(
      request, session, reception, SessionReception.Receiver(head: head, body: body))
  }

  private func run(
    _ request: HTTPTransportRequest, _ session: URLSession, _ reception: SessionReception,
    _ receiver: SessionReception.Receiver
  ) async throws {
    guard let url = URL(string: request.url) else {
      throw PeerError(.failed, "the address \(request.url) cannot be used")
    }
    var message = URLRequest(
      url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: Self.longest)
    message.httpMethod = request.method
    message.httpShouldHandleCookies = false
    for (name, value) in request.headers { message.setValue(value, forHTTPHeaderField: name) }
    if request.method != "GET" { message.httpBody = Data(request.body) }
    let task = session.dataTask(with: message)
    let id = task.taskIdentifier
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        reception.expect(id, receiver, continuation)
        if Task.isCancelled {
          reception.end(id, .failure(CancellationError()))
          task.cancel()
        } else {
          task.resume()
        }
      }
    } onCancel: {
      // Nobody waits for what the session makes of it.
      reception.end(id, .failure(CancellationError()))
      task.cancel()
    }
  }

  /// Ends the session; calls that are under way fail.
  public func close() async { session.invalidateAndCancel() }
}
