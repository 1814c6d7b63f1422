import Testing
import TidemarkSyncProtocol

@testable import TidemarkHTTP

/// Requests as programs make them, and what of them reaches a server.
@Suite("Fields of requests") struct RequestFieldTests {
  private func send(
    _ transport: Transports, _ request: HTTPTransportRequest
  ) async throws -> [SocketServer.Request] {
    let server = try SocketServer { _, connection in connection.answer(200) }
    defer { server.stop() }
    var request = request
    request.url = server.url + request.url
    let line = transport.make()
    let answer = await Result.of { try await line.answer(to: request, limit: 100) }
    await line.close()
    _ = try answer.get()
    for sent in server.requests {
      #expect(sent.headers["host"] == "127.0.0.1:\(server.port)")
    }
    return server.requests
  }

  @Test(
    "fields of framing and connection are the transport's", arguments: Transports.all,
    [
      ["Host": "other"], ["host": "other", "HOST": "third"], ["Content-Length": "0"],
      ["content-length": "5, 3"], ["Transfer-Encoding": "chunked"], ["Connection": "close, X-Hop"],
      ["TE": "trailers"], ["Upgrade": "h2c"], ["Keep-Alive": "timeout=1"], ["Trailer": "X-A"],
      ["Expect": "100-continue"], ["Proxy-Connection": "close"],
    ])
  func framing(transport: Transports, fields: [String: String]) async throws {
    let body = Array("GET /evil HTTP/1.1\r\n\r\n".utf8)
    let sent = try await send(
      transport,
      HTTPTransportRequest(
        method: "POST", url: "/a", headers: fields.merging(["X-Hop": "1", "X-Kept": "2"]) { $1 },
        body: body))
    #expect(sent.map(\.path) == ["/a"])
    #expect(sent.map(\.body) == [body])
    let headers = try #require(sent.first?.headers)
    #expect(headers["content-length"] == "\(body.count)")
    #expect(headers["x-kept"] == "2")
    #expect((headers["x-hop"] == nil) == (fields["Connection"] != nil))
    for name in ["transfer-encoding", "te", "upgrade", "trailer", "expect", "proxy-connection"] {
      #expect(headers[name] == nil, "\(name)")
    }
  }

  @Test(
    "a request that would be another one is refused", arguments: Transports.all,
    [
      HTTPTransportRequest(url: "/a", headers: ["X-A": "1\r\nX-B: 2"]),
      HTTPTransportRequest(url: "/a", headers: ["X-A": "1\nX-B: 2"]),
      HTTPTransportRequest(url: "/a", headers: ["X-A": "1\0"]),
      HTTPTransportRequest(url: "/a", headers: ["X-A: 1\r\nX-B": "2"]),
      HTTPTransportRequest(url: "/a", headers: ["Content-Length: 7, X": "2"]),
      HTTPTransportRequest(url: "/a", headers: ["Content-Length ": "7"]),
      HTTPTransportRequest(url: "/a", headers: ["": "7"]),
      HTTPTransportRequest(url: "/a", headers: ["X-\u{c9}": "7"]),
      HTTPTransportRequest(url: "/a", headers: ["X\u{200b}A": "7"]),
      HTTPTransportRequest(method: "G\u{c9}T", url: "/a"),
      HTTPTransportRequest(method: "GET / HTTP/1.1\r\nX-A:", url: "/a"),
      HTTPTransportRequest(method: "", url: "/a"),
      HTTPTransportRequest(method: "G T", url: "/a"),
      HTTPTransportRequest(method: "CONNECT", url: "/a"),
      HTTPTransportRequest(url: "/a b HTTP/1.1\r\nX-A: 1"),
    ])
  func refused(transport: Transports, request: HTTPTransportRequest) async throws {
    let error = await #expect(throws: PeerError.self) { try await send(transport, request) }
    #expect(error?.kind == .failed)
  }

  @Test(
    "names that differ in case alone are one field", arguments: Transports.all,
    [
      (["X-A": "1", "x-a": "2"], "x-a", "1, 2"), (["X-Empty": ""], "x-empty", ""),
      (["Cookie": "a=1", "cookie": "b=2"], "cookie", "a=1; b=2"),
      (["COOKIE": "a=1; b=2", "cookie": "c=3"], "cookie", "a=1; b=2; c=3"),
      (["COOKIE": "a=\"1, 2\"", "Cookie": "b", "cookie": "c="], "cookie", "a=\"1, 2\"; b; c="),
      (["cooKie": "a=1,2"], "cookie", "a=1,2"),
    ])
  func spellings(
    transport: Transports, fields: ([String: String], name: String, value: String)
  ) async throws {
    let sent = try await send(transport, HTTPTransportRequest(url: "/a", headers: fields.0))
    #expect(sent.first?.headers[fields.name] == fields.value)
  }

  @Test("methods of any name go out as they are", arguments: Transports.all)
  func methods(transport: Transports) async throws {
    for method in ["PATCH", "M-SEARCH", "OPTIONS", "DELETE"] {
      let sent = try await send(transport, HTTPTransportRequest(method: method, url: "/a"))
      #expect(sent.map(\.method) == [method])
    }
  }
}
