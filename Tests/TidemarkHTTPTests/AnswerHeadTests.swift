import Testing
import TidemarkSyncProtocol

@testable import TidemarkHTTP

/// Heads of answers, as servers and what stands before them send them.
@Suite("Heads of answers") struct AnswerHeadTests {
  private func ask(
    _ transport: Transports, _ method: String = "GET", _ pieces: String...
  ) async throws -> HTTPTransportAnswer {
    let server = try SocketServer { _, connection in
      for piece in pieces { connection.send(piece) }
      return false
    }
    defer { server.stop() }
    let line = transport.make()
    let answer = await Result.of {
      try await line.answer(
        to: HTTPTransportRequest(method: method, url: server.url + "/a"), limit: 1 << 20)
    }
    await line.close()
    return try answer.get()
  }

  private static let whole = "HTTP/1.1 404 No\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok"

  @Test(
    "the head is that of the final answer, whatever came before", arguments: Transports.all,
    [
      "HTTP/1.1 100 Continue\r\n\r\n",
      "HTTP/1.1 102 Processing\r\nX-A: 9\r\nX-B: 9\r\n\r\n",
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-B: 1\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nCache-Control: max-age=9\r\n\r\n",
      "HTTP/1.1 199 Odd\r\nContent-Length: 7\r\n\r\n",
    ])
  func interim(transport: Transports, before: String) async throws {
    let answer = try await ask(transport, "GET", before, Self.whole)
    #expect(answer.status == 404)
    #expect(answer.headers == ["x-a": "1", "content-length": "2"])
    #expect(answer.body == Array("ok".utf8))
  }

  @Test(
    "a field that continues on further lines is one field", arguments: Transports.all,
    [
      ("X-A: one\r\n  two: 2\r\n\tthree", ["x-a": "one two: 2 three"]),
      ("Cache-Control: no-store,\r\n max-age=60", ["cache-control": "no-store, max-age=60"]),
      ("X-A:\r\n one\r\nX-B: b", ["x-a": "one", "x-b": "b"]),
      ("X-A: one,\r\n\t two\r\nX-B: b\r\n : c", ["x-a": "one, two", "x-b": "b : c"]),
      ("X-A: 1\r\nX-A: 2,\r\n Content-Encoding: gzip", ["x-a": "1, 2, Content-Encoding: gzip"]),
    ])
  func folded(
    transport: Transports, head: (lines: String, fields: [String: String])
  ) async throws {
    guard transport.unfolds else { return }
    let answer = try await ask(
      transport, "GET", "HTTP/1.1 200 OK\r\n\(head.lines)\r\nContent-Length: 2\r\n\r\nok")
    #expect(answer.headers == head.fields.merging(["content-length": "2"]) { $1 })
  }

  @Test(
    "each Set-Cookie stands alone, other fields of a name are a list", arguments: Transports.all)
  func cookies(transport: Transports) async throws {
    // URLSession on Linux hands one of them on.
    guard transport.isBounded else { return }
    let cookies = ["a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT; Path=/", "b=x y", "c=3, d"]
    let answer = try await ask(
      transport, "GET",
      "HTTP/1.1 200 OK\r\nVia: 1.1 a\r\nSet-Cookie: \(cookies[0])\r\nset-cookie: \(cookies[1])\r\n"
        + "Via: 1.1 b\r\nSET-COOKIE: \(cookies[2])\r\nContent-Length: 0\r\n\r\n")
    #expect(answer.setCookies == cookies)
    #expect(answer.headers == ["via": "1.1 a, 1.1 b", "content-length": "0"])
  }

  @Test("cookies that a session has joined are taken apart again")
  func joinedCookies() {
    for cookies in [
      ["a=1"], ["a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT; Path=/", "b=2", "c=3, d"],
      ["", "x=,"], ["flag", "b=\"q, r\"", "__Host-s=; Expires=Thu, 01-Jan-1970 00:00:00 GMT"],
    ] {
      #expect(SessionReception.cookies(in: cookies.joined(separator: ", ")) == cookies)
    }
  }

  @Test("fields of the connection are not handed on", arguments: Transports.all)
  func hopByHop(transport: Transports) async throws {
    // URLSession on Linux ends the process at trailers.
    guard transport.isBounded else { return }
    let answer = try await ask(
      transport, "GET",
      "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
        + "Proxy-Connection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n"
        + "X-End: 1\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 2\r\nCache-Control: max-age=9\r\n\r\n")
    #expect(answer.headers == ["x-end": "1"])
    #expect(answer.body == Array("ok".utf8))
  }

  @Test(
    "a malformed head is no answer", arguments: Transports.all,
    [
      "HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 1000 High\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 20 Short\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 101 Other\r\nUpgrade: x\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
    ])
  func malformed(transport: Transports, bytes: String) async throws {
    // URLSession on Linux ends the process.
    guard transport.isBounded else { return }
    let error = await #expect(throws: PeerError.self) { try await ask(transport, "GET", bytes) }
    #expect(error?.kind == .unavailable)
  }

  @Test("a second status line does not begin another head", arguments: Transports.all)
  func secondStatus(transport: Transports) async throws {
    let answer = try? await ask(
      transport, "GET",
      "HTTP/1.1 404 No\r\nCache-Control: no-store\r\nHTTP/1.1 200 OK\r\n"
        + "Content-Length: 2\r\n\r\nok")
    // A transport may also call it damaged.
    #expect(answer == nil || answer?.status == 404)
    #expect(answer == nil || answer?.headers["cache-control"] == "no-store")
  }

  @Test("equal lengths count as one", arguments: Transports.all)
  func equalLengths(transport: Transports) async throws {
    for lengths in ["Content-Length: 2\r\nContent-Length: 2", "Content-Length: 2, 2"] {
      let answer = try? await ask(transport, "GET", "HTTP/1.1 200 OK\r\n\(lengths)\r\n\r\nok")
      #expect(answer == nil || answer?.headers["content-length"] == "2")
    }
  }

  @Test("a head without end is given up", arguments: Transports.all)
  func endless(transport: Transports) async throws {
    guard transport.isBounded else { return }
    for line in ["X-\(String(repeating: "a", count: 1000)): 1\r\n", "HTTP/1.1 103 Hints\r\n\r\n"] {
      let server = try SocketServer { _, connection in
        if line.hasPrefix("X-") { connection.send("HTTP/1.1 200 OK\r\n") }
        let piece = String(repeating: line, count: 1 + 60_000 / line.utf8.count)
        while connection.send(piece) {}
        return false
      }
      let transport = transport.make()
      let error = await #expect(throws: PeerError.self) {
        try await transport.answer(to: HTTPTransportRequest(url: server.url), limit: 1)
      }
      #expect(error?.kind == .unavailable)
      await transport.close()
      server.stop()
    }
  }

  @Test("bytes that no field may have reach nobody", arguments: Transports.all)
  func bytes(transport: Transports) async throws {
    let answer = try? await ask(
      transport, "GET",
      "HTTP/1.1 200 OK\r\nX-A: a\rX-B: 2\r\nX C: 3\r\nX(D): 4\r\n: 5\r\nX-É: 6\r\nX-E : 7\r\n"
        + "X-F: \u{e9}\r\nContent-Length: 2\r\n\r\nok")
    guard let answer else { return }
    #expect(answer.headers["x-b"] == nil)
    #expect(answer.headers["x-f"] == "\u{e9}")
    for (name, value) in answer.headers {
      #expect(name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x28 && $0 != 0x3a })
      #expect(!value.utf8.contains { $0 == 0x0d || $0 == 0x0a || $0 == 0 })
    }
  }

  @Test(
    "a stream that breaks off is told, by whatever its length is known", arguments: Transports.all)
  func brokenStreams(transport: Transports) async throws {
    for rest in [
      "Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n9\r\nhalf",
      "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
      let server = try SocketServer { _, connection in
        connection.send("HTTP/1.1 200 OK\r\n\(rest)")
        return false
      }
      let line = transport.make()
      let error = await #expect(throws: PeerError.self, "\(rest)") {
        try await line.stream(HTTPTransportRequest(url: server.url)) { _ in
        } body: { _ in
        }
      }
      #expect(error?.kind == .unavailable)
      await line.close()
      server.stop()
    }
  }
}

extension Result where Failure == any Error {
  /// The outcome of something that takes time.
  static func of(_ body: () async throws -> Success) async -> Self {
    do { return .success(try await body()) } catch { return .failure(error) }
  }
}
