internal import TidemarkSyncProtocol

/// Sends HTTP requests and receives responses: what ``HTTPPeer`` needs of an HTTP library.
///
/// A transport follows no redirects, keeps no cookies and no cache, and adds no credentials. If it
/// decodes a body, it removes `Content-Encoding` and `Content-Length`. Its calls throw `PeerError`
/// of kind `failed` for a request that cannot be sent, of kind `unavailable` when no complete
/// response was received, whatever the reason, and `CancellationError` soon after their task was
/// cancelled. It has no timeouts: its callers cancel.
public protocol HTTPTransport: Sendable {
  /// Sends a request and waits for the whole response; by default with ``stream(_:head:body:)``.
  /// - Parameters:
  ///   - request: the request.
  ///   - limit: most bytes of the response's body. A longer one makes the call throw `PeerError` of
  ///     kind `malformed` as soon as that is known, by its `Content-Length` or from its bytes.
  func answer(to request: HTTPTransportRequest, limit: Int) async throws -> HTTPTransportAnswer

  /// Sends a request and passes the response on in pieces, however long it takes; returns when the
  /// response ends.
  /// - Parameters:
  ///   - request: the request.
  ///   - head: called first, with a response without body. If it throws, the call throws its error
  ///     and reads no more.
  ///   - body: called with each piece of the body, one after the other. If it throws, likewise.
  func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws

  /// Closes connections. Running calls fail.
  func close() async
}

extension HTTPTransport {
  /// Assembles the whole response from the pieces of a stream.
  public func answer(
    to request: HTTPTransportRequest, limit: Int
  ) async throws -> HTTPTransportAnswer {
    let collector = AnswerCollector(limit: limit, isHead: request.method == "HEAD")
    try await stream(
      request, head: { try collector.take(head: $0) }, body: { try collector.take($0) })
    return try collector.answer()
  }
}

/// A request for an ``HTTPTransport``.
public struct HTTPTransportRequest: Sendable, Hashable {
  /// Such as `POST`.
  public var method: String
  /// The absolute address: `http` or `https`.
  public var url: String
  /// Names and values. Fields of the connection and the framing, such as `Host`, `Content-Length`
  /// and `Connection`, follow from the rest of the request: those given here are not sent.
  public var headers: [String: String]
  /// Sent with its length; for `GET` and `HEAD` none is sent.
  public var body: [UInt8]

  /// A request.
  public init(
    method: String = "GET", url: String, headers: [String: String] = [:], body: [UInt8] = []
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// The response of a server.
public struct HTTPTransportAnswer: Sendable, Hashable {
  /// Such as 200.
  public var status: Int
  /// Values by names in lower case, several of one name joined with commas; without fields of the
  /// connection, such as `Transfer-Encoding`, and without ``setCookies``.
  public var headers: [String: String]
  /// The values of `Set-Cookie`, which must not be joined with commas.
  public var setCookies: [String] = []
  /// The whole body.
  public var body: [UInt8]

  /// An answer.
  public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The value of `Content-Length`; nil without that field.
  package var contentLength: Int? { headers["content-length"].flatMap(HTTPHeaders.contentLength) }

  static func tooLong(_ limit: Int) -> PeerError {
    PeerError(.malformed, "the server's answer has more than the \(limit) bytes allowed")
  }
}
