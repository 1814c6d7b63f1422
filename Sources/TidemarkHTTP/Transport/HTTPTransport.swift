internal import TidemarkSyncProtocol

/// Carries requests of HTTP to a server and answers back: what ``HTTPPeer`` needs of a library.
///
/// A transport follows no redirects, keeps no cookies and no cache, and adds no credentials. A body
/// that it decodes is handed on without `Content-Encoding` and `Content-Length`. Its calls throw
/// `PeerError` of kind `failed` for a request that cannot be sent, of kind `unavailable` when no
/// whole answer came, whatever the reason, and `CancellationError` soon after their task was
/// cancelled. Deadlines are the caller's: it cancels.
public protocol HTTPTransport: Sendable {
  /// Sends a request and waits for the whole answer; by default with ``stream(_:head:body:)``.
  /// - Parameters:
  ///   - request: what to send.
  ///   - limit: most bytes of the answer's body. What has more is given up as soon as that is
  ///     known, by its `Content-Length` or when the bytes come, with `PeerError` of kind
  ///     `malformed`.
  func answer(to request: HTTPTransportRequest, limit: Int) async throws -> HTTPTransportAnswer

  /// Sends a request and hands the answer on as it comes, however long that takes; returns when
  /// the answer ends.
  /// - Parameters:
  ///   - request: what to send.
  ///   - head: is called first, with an answer without body. When it throws, that is what the
  ///     call throws, and nothing more is read.
  ///   - body: is called with each piece, one after the other. Likewise.
  func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws

  /// Lets go of connections. Calls that are under way fail.
  func close() async
}

extension HTTPTransport {
  /// Puts the whole answer together from the pieces of a stream.
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
  /// Names and values. The fields of the connection and of the framing, such as `Host`,
  /// `Content-Length` and `Connection`, follow from the rest: what stands here of them is left out.
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

/// The answer of a server.
public struct HTTPTransportAnswer: Sendable, Hashable {
  /// Such as 200.
  public var status: Int
  /// The values by the names in lower case, several of one name joined with commas; without those
  /// of the connection, such as `Transfer-Encoding`, and without ``setCookies``.
  public var headers: [String: String]
  /// The values of `Set-Cookie`, which are no list.
  public var setCookies: [String] = []
  /// The whole body.
  public var body: [UInt8]

  /// An answer.
  public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The length that the answer says its body has; nil where it says none.
  package var contentLength: Int? { headers["content-length"].flatMap(HTTPHeaders.contentLength) }

  static func tooLong(_ limit: Int) -> PeerError {
    PeerError(.malformed, "the server's answer has more than the \(limit) bytes allowed")
  }
}
