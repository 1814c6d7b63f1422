import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import TidemarkHTTP
import TidemarkHTTPCache

/// The requests of one connection.
struct ProxyExchange: Sendable {
  let origin: String
  let cache: HTTPCache
  let channel: any Channel

  /// Most bytes of a request's body.
  private static let mostBytes = 8 << 20
  /// Fields that concern one connection, or that the transport sets.
  private static let ofTheConnection: Set<String> = [
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
  ]

  func serve(
    _ connection: NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>
  ) async throws {
    try await connection.executeThenClose { parts, _ in
      var head: HTTPRequestHead?
      var body: [UInt8] = []
      do {
        for try await part in parts {
          switch part {
          case .head(let next):
            if let status = Self.refusal(of: next) { return try await refuse(status) }
            if next.headers[canonicalForm: "expect"].contains("100-continue") {
              try await channel.writeAndFlush(
                HTTPServerResponsePart.head(.init(version: .http1_1, status: .continue)))
            }
            (head, body) = (next, [])
          case .body(let buffer):
            guard body.count + buffer.readableBytes <= Self.mostBytes else {
              return try await refuse(.payloadTooLarge)
            }
            body.append(contentsOf: buffer.readableBytesView)
          case .end:
            guard let head, try await answer(head, body), head.isKeepAlive else { return }
          }
        }
      } catch let error as HTTPParserError {
        switch error {
        // The parser knows those that are registered, and no others.
        case .invalidMethod: try await refuse(.notImplemented)
        case .headerOverflow: try await refuse(.requestHeaderFieldsTooLarge)
        default: try await refuse(.badRequest)
        }
      }
    }
  }

  /// Why a request is not passed on; nil for one that is.
  private static func refusal(of head: HTTPRequestHead) -> HTTPResponseStatus? {
    // Behind a request for another protocol the parser keeps what comes, without a bound.
    if head.method == .CONNECT || head.headers.contains(name: "upgrade") { return .notImplemented }
    // Anything else behind the origin's address could make it another server's.
    guard head.uri.hasPrefix("/") else { return .badRequest }
    let length = head.headers.first(name: "content-length").map { Int($0) ?? .max }
    return length ?? 0 <= mostBytes ? nil : .payloadTooLarge
  }

  /// - Returns: whether the connection can go on.
  private func answer(_ head: HTTPRequestHead, _ body: [UInt8]) async throws -> Bool {
    var request = HTTPTransportRequest(
      method: head.method.rawValue, url: origin + head.uri, body: body)
    let named = head.headers[canonicalForm: "connection"].map { $0.lowercased() }
    for (name, value) in head.headers {
      let name = name.lowercased()
      guard !Self.ofTheConnection.contains(name), !named.contains(name) else { continue }
      let separator = name == "cookie" ? "; " : ", "
      request.headers[name] = request.headers[name].map { $0 + separator + value } ?? value
    }
    // Whether the head of the answer has gone out.
    let sent = NIOLockedValueBox(false)
    do {
      // A client that is slow is waited for, without a thread: nothing piles up.
      try await cache.respond(to: request) { answer in
        try await channel.writeAndFlush(HTTPServerResponsePart.head(Self.head(answer)))
        sent.withLockedValue { $0 = true }
      } body: { bytes in
        let part = HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: bytes)))
        try await channel.writeAndFlush(part)
      }
      try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
      return true
    } catch {
      // An answer that has begun can only break off.
      if !sent.withLockedValue({ $0 }) {
        try await refuse(.badGateway, "The server cannot be reached: \(error)\n")
      }
      return false
    }
  }

  /// Answers a request that is not passed on, the last of its connection.
  private func refuse(_ status: HTTPResponseStatus, _ text: String = "") async throws {
    let headers: HTTPHeaders = ["connection": "close", "content-length": "\(text.utf8.count)"]
    let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
    channel.write(HTTPServerResponsePart.head(head), promise: nil)
    channel.write(
      HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text))), promise: nil)
    try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
  }

  private static func head(_ answer: HTTPTransportAnswer) -> HTTPResponseHead {
    var headers = HTTPHeaders()
    for (name, value) in answer.headers.sorted(by: { $0.key < $1.key })
    where (!ofTheConnection.contains(name) || name == "content-length")
      && isField(name, value)
    {
      headers.add(name: name, value: value)
    }
    for cookie in answer.setCookies where isField("set-cookie", cookie) {
      headers.add(name: "set-cookie", value: cookie)
    }
    return HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
  }

  /// Whether a field can be passed on (RFC 9110, 5.1 and 5.5): the origin may have sent anything.
  private static func isField(_ name: String, _ value: String) -> Bool {
    let marks = "!#$%&'*+-.^_`|~".utf8
    return !name.isEmpty
      && name.utf8.allSatisfy {
        (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || marks.contains($0)
      }
      && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }
  }
}
