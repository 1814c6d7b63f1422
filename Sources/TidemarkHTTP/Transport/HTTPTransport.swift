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

  /// Closes the transport's connections. Running calls fail.
  func close() async
}

extension HTTPTransport {
  /// The default: assembles the whole response from the pieces of ``stream(_:head:body:)``.
  /// - Parameters:
  ///   - request: the request.
  ///   - limit: the most bytes of the response's body.
  /// - Throws: `PeerError` of kind `malformed` for a longer body; the errors of the stream.
  public func answer(
    to request: HTTPTransportRequest, limit: Int
  ) async throws -> HTTPTransportAnswer {
    let collector = AnswerCollector(limit: limit, isHead: request.method == "HEAD")
    try await stream(
      request, head: { try collector.take(head: $0) }, body: { try collector.take($0) })
    return try collector.answer()
  }
}

/// An HTTP request for an ``HTTPTransport``: method, address, header fields and body.
public struct HTTPTransportRequest: Sendable, Hashable {
  /// The HTTP method, such as `POST`. The default is `GET`.
  public var method: String
  /// The absolute address of the resource, with the scheme `http` or `https`.
  public var url: String
  /// The header fields: values by names. The transport sets fields of the connection and the
  /// framing itself, such as `Host`, `Content-Length` and `Connection`, and does not send yours.
  public var headers: [String: String]
  /// The body of the request. The transport sends it with its length, and sends none for `GET` and
  /// `HEAD`.
  public var body: [UInt8]

  /// Creates an HTTP request.
  /// - Parameters:
  ///   - method: the HTTP method.
  ///   - url: the absolute address.
  ///   - headers: the header fields, values by names.
  ///   - body: the body; empty for none.
  public init(
    method: String = "GET", url: String, headers: [String: String] = [:], body: [UInt8] = []
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// The HTTP response of a server: status, header fields and body.
public struct HTTPTransportAnswer: Sendable, Hashable {
  /// The HTTP status code, such as 200.
  public var status: Int
  /// The header fields: values by names in lower case. Several values of one name are joined with
  /// commas. Fields of the connection, such as `Transfer-Encoding`, are left out, and so is
  /// `Set-Cookie`: see ``setCookies``.
  public var headers: [String: String]
  /// The values of all `Set-Cookie` fields, which must not be joined with commas.
  public var setCookies: [String] = []
  /// The body of the response; empty where the call passes the body on in pieces.
  public var body: [UInt8]

  /// Creates an HTTP response, for a transport of your own or a test.
  /// - Parameters:
  ///   - status: the HTTP status code.
  ///   - headers: the header fields, values by names in lower case.
  ///   - body: the whole body.
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
