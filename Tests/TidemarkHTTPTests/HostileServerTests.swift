import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncProtocol

@testable import TidemarkHTTP

/// Answers that a server, or something on the way to it, may give.
@Suite("Servers that misbehave")
struct HostileServerTests {
  private let replica = ReplicaID(text: "00112233445566778899aabbccddeeff")

  /// Calls a server that answers with what it likes.
  /// - Returns: the error that the call ends with, and how the server was asked.
  private func hello(
    _ transport: Transports, options: HTTPPeer.Options = HTTPPeer.Options(),
    authorization: HTTPPeer.Authorization? = nil,
    _ serve: @escaping @Sendable (SocketServer.Request, Connection) -> Bool
  ) async throws -> (error: PeerError?, requests: [SocketServer.Request]) {
    let server = try SocketServer(serve)
    defer { server.stop() }
    let peer = try HTTPPeer(
      "\(server.url)/notes", transport: transport.make(), options: options,
      authorization: authorization)
    do {
      _ = try await peer.hello(HelloRequest(replica: replica))
      await peer.close()
      return (nil, server.requests)
    } catch let error as PeerError {
      await peer.close()
      return (error, server.requests)
    }
  }

  private static func answer() -> [UInt8] {
    let answer = HelloAnswer(
      feed: ReplicaID(text: "ffeeddccbbaa99887766554433221100"),
      range: FeedRange(epochs: [], head: 0), mark: ReplicaMark(), time: 1)
    return (try? WireCoder().encode(.helloAnswer(answer))) ?? []
  }

  @Test(
    "a status says what to do, an error in the body says it better", arguments: Transports.all)
  func statuses(transport: Transports) async throws {
    let cases: [(Int, PeerError.Kind)] = [
      (400, .malformed), (401, .unavailable), (403, .failed), (404, .failed),
      (407, .unavailable), (408, .unavailable), (409, .failed), (410, .failed), (413, .malformed),
      (429, .busy), (500, .failed), (502, .unavailable), (503, .unavailable), (504, .unavailable),
      (511, .unavailable), (204, .unavailable), (302, .unavailable),
    ]
    for (status, kind) in cases {
      let plain = try await hello(transport) { _, connection in
        connection.answer(status, status == 204 ? [] : Array("no".utf8), type: "text/plain")
      }
      #expect(plain.error?.kind == kind, "\(status)")
    }
    let said = try WireCoder().encode(
      .error(PeerError(.cursorGone, "words", retryAfter: .seconds(9))))
    let spoken = try await hello(transport) { _, connection in
      connection.answer(409, said, headers: ["Retry-After: 5"])
    }
    #expect(spoken.error == PeerError(.cursorGone, "words", retryAfter: .seconds(9)))
    let disguised = try await hello(transport) { _, connection in connection.answer(200, said) }
    #expect(disguised.error?.kind == .cursorGone)
  }

  @Test(
    "the server's own word is a message of the protocol, whatever the status says",
    arguments: Transports.all)
  func ownWord(transport: Transports) async throws {
    for kind in [PeerError.Kind.unauthorized, .forbidden, .cursorGone, .leaseExpired] {
      let words = PeerError(kind, "words")
      let said = try WireCoder().encode(.error(words))
      let other = try WireCoder().encode(.digestRequest(DigestRequest(replica: replica)))
      for status in [200, 401, 403, 410] {
        let spoken = try await hello(transport) { _, connection in connection.answer(status, said) }
        #expect(spoken.error == words)
      }
      for (status, body, type) in [
        (401, said, "text/html"), (403, said, "application/octet-stream"),
        (401, [], WireFrame.contentType), (403, other, WireFrame.contentType),
        (401, said.dropLast(), WireFrame.contentType), (410, said, "application/json"),
        (409, [1, 2, 3], WireFrame.contentType),
      ] {
        let portal = try await hello(transport) { _, connection in
          connection.answer(status, Array(body), type: type)
        }
        #expect([.unavailable, .failed].contains(portal.error?.kind), "\(status) \(type)")
      }
    }
  }

  @Test("Retry-After is heard as seconds and as a date", arguments: Transports.all)
  func retryAfter(transport: Transports) async throws {
    let seconds = try await hello(transport) { _, connection in
      connection.answer(429, [], type: "text/plain", headers: ["Retry-After: 17"])
    }
    #expect(seconds.error?.retryAfter == .seconds(17))
    let date = try await hello(transport) { _, connection in
      connection.answer(
        503, [], type: "text/plain", headers: ["Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"])
    }
    #expect(date.error?.retryAfter == .seconds(86_400))
    let nonsense = try await hello(transport) { _, connection in
      connection.answer(429, [], type: "text/plain", headers: ["Retry-After: -1"])
    }
    #expect(nonsense.error?.kind == .busy && nonsense.error?.retryAfter == nil)
  }

  @Test("another content type is a page on the way, not an answer", arguments: Transports.all)
  func loginPage(transport: Transports) async throws {
    for type in ["text/html", "application/json", "", "application/vnd.tidemark.sync2"] {
      let page = try await hello(transport) { _, connection in
        connection.answer(200, Self.answer(), type: type)
      }
      #expect(page.error?.kind == .unavailable, "\(type)")
    }
    let zipped = try await hello(transport) { _, connection in
      connection.answer(200, Self.answer(), headers: ["Content-Encoding: br"])
    }
    #expect(zipped.error?.kind == .unavailable)
  }

  @Test("garbage and other messages are malformed", arguments: Transports.all)
  func garbage(transport: Transports) async throws {
    var flipped = Self.answer()
    flipped[flipped.count - 1] ^= 1
    let other = try WireCoder().encode(.digestRequest(DigestRequest(replica: replica)))
    let more = Self.answer() + [0]
    for body in [[], [1, 2, 3], flipped, other, more, Array(Self.answer().dropLast())] {
      let result = try await hello(transport) { _, connection in connection.answer(200, body) }
      #expect(result.error?.kind == .malformed, "\(body.count) bytes")
    }
  }

  @Test("an answer that says it is too long is not read", arguments: Transports.all)
  func longLength(transport: Transports) async throws {
    let options = HTTPPeer.Options(largestMessage: 1 << 16)
    for length in ["70000", "999999999999999999"] {
      let result = try await hello(transport, options: options) { _, connection in
        connection.send(
          "HTTP/1.1 200 OK\r\nContent-Type: \(WireFrame.contentType)\r\n"
            + "Content-Length: \(length)\r\n\r\nsome")
        // Nothing more ever comes.
        return connection.readRequest() != nil
      }
      #expect(result.error?.kind == .malformed, "\(length)")
    }
  }

  @Test("an answer without end is given up when it is too long", arguments: Transports.all)
  func endless(transport: Transports) async throws {
    let options = HTTPPeer.Options(largestMessage: 1 << 16)
    let sent = Lock(0)
    let result = try await hello(transport, options: options) { _, connection in
      connection.send(
        "HTTP/1.1 200 OK\r\nContent-Type: \(WireFrame.contentType)\r\n"
          + "Transfer-Encoding: chunked\r\n\r\n")
      let piece = Array("10000\r\n".utf8) + [UInt8](repeating: 0, count: 65_536) + [13, 10]
      while connection.send(piece), sent.withLock({ $0 }) < 1 << 30 {
        sent.withLock { $0 += 65_536 }
      }
      return false
    }
    #expect(result.error?.kind == .malformed)
    // URLSession on Linux hears late that it is to stop.
    if transport.isBounded { #expect(sent.withLock { $0 } < 1 << 24, "everything was read") }
  }

  @Test("half an answer, and none, is no connection", arguments: Transports.all)
  func half(transport: Transports) async throws {
    let body = Self.answer()
    // URLSession on Linux ends the process when the headers are not whole.
    for part in (transport.isBounded ? ["HTTP/1.1 200 OK\r\n"] : []) + [
      "", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Type: \(WireFrame.contentType)\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n5\r\nab", "what is this\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Type: \(WireFrame.contentType)\r\nContent-Length: x\r\n\r\nab",
    ] {
      let result = try await hello(transport) { _, connection in
        connection.send(part)
        return false
      }
      #expect(result.error?.kind == .unavailable, "\(part)")
    }
    let cut = try await hello(transport) { _, connection in
      connection.send(
        "HTTP/1.1 200 OK\r\nContent-Type: \(WireFrame.contentType)\r\n"
          + "Content-Length: \(body.count)\r\n\r\n")
      connection.send(Array(body.dropLast(3)))
      return false
    }
    #expect(cut.error?.kind == .unavailable)
  }

  @Test("nobody listening is no connection", arguments: Transports.all)
  func nobody(transport: Transports) async throws {
    let server = try SocketServer { _, _ in false }
    server.stop()
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    await #expect(throws: PeerError.self) {
      try await peer.hello(HelloRequest(replica: replica))
    }
    await peer.close()
  }

  @Test("a server that never answers is given up after the time allowed", arguments: Transports.all)
  func slow(transport: Transports) async throws {
    let options = HTTPPeer.Options(timeout: .milliseconds(100))
    let result = try await hello(transport, options: options) { _, connection in
      connection.readRequest() != nil
    }
    #expect(result.error?.kind == .unavailable)
    // Neither does one that sends a byte now and then.
    let drops = try await hello(transport, options: options) { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
      while connection.send([0]) { usleep(20_000) }
      return false
    }
    #expect(drops.error?.kind == .unavailable)
  }

  @Test("a call that is cancelled ends, and the next one works", arguments: Transports.all)
  func cancelled(transport: Transports) async throws {
    let asked = Lock(0)
    let server = try SocketServer { _, connection in
      let count = asked.withLock { asked in
        asked += 1
        return asked
      }
      return count == 1 ? connection.readRequest() != nil : connection.answer(200, Self.answer())
    }
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    let request = HelloRequest(replica: replica)
    let task = Task { try await peer.hello(request) }
    while asked.withLock({ $0 }) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await peer.hello(request).time == 1)
    await peer.close()
  }

  @Test("the authorization is asked for again once a call", arguments: Transports.all)
  func authorization(transport: Transports) async throws {
    let asked = Lock<[Bool]>([])
    @Sendable func token(_ wasRefused: Bool) -> String? {
      asked.withLock { $0.append(wasRefused) }
      return wasRefused ? "Bearer new" : "Bearer old"
    }
    let renewed = try await hello(transport, authorization: token) { request, connection in
      request.headers["authorization"] == "Bearer new"
        ? connection.answer(200, Self.answer()) : connection.answer(401, [], type: "text/plain")
    }
    #expect(renewed.error == nil)
    #expect(asked.withLock { $0 } == [false, true])
    let said = try WireCoder().encode(.error(PeerError(.unauthorized, "who?")))
    let refused = try await hello(transport, authorization: token) { _, connection in
      connection.answer(401, said)
    }
    #expect(refused.error?.kind == .unauthorized)
    #expect(refused.requests.map { $0.headers["authorization"] } == ["Bearer old", "Bearer new"])
    let injected = try await hello(transport, authorization: { _ in "a\r\nX-Evil: 1" }) { _, _ in
      false
    }
    #expect(injected.error?.kind == .unauthorized && injected.requests.isEmpty)
  }

  @Test("a token that cannot be had passes, unless its closure says that somebody must sign in")
  func missingToken() async throws {
    struct Missing: Error {}
    let cases: [(any Error, PeerError.Kind)] = [
      (Missing(), .unavailable), (URLError(.notConnectedToInternet), .unavailable),
      (POSIXError(.ETIMEDOUT), .unavailable), (PeerError(.busy, "later"), .busy),
      (PeerError(.unauthorized, "sign in"), .unauthorized),
    ]
    for (error, kind) in cases {
      let failed = try await hello(.urlSession, authorization: { _ in throw error }) { _, _ in false
      }
      #expect(failed.error?.kind == kind && failed.requests.isEmpty, "\(error)")
    }
  }

  @Test("a redirect takes the authorization nowhere else", arguments: Transports.all)
  func redirects(transport: Transports) async throws {
    let elsewhere = try SocketServer { _, connection in connection.answer(200, Self.answer()) }
    defer { elsewhere.stop() }
    let url = elsewhere.url
    for status in [301, 302, 303, 307, 308] {
      let away = try await hello(transport, authorization: { _ in "Bearer secret" }) {
        $1.answer(status, [], type: "text/plain", headers: ["Location: \(url)/notes/v1/hello"])
      }
      #expect(away.error?.kind == .unavailable, "\(status)")
    }
    #expect(elsewhere.requests.isEmpty)
    let within = try await hello(transport, authorization: { _ in "Bearer secret" }) {
      request, connection in
      request.path == "/moved/v1/hello"
        ? connection.answer(200, Self.answer())
        : connection.answer(308, [], type: "text/plain", headers: ["Location: /moved/v1/hello"])
    }
    #expect(within.error == nil)
    #expect(within.requests.map(\.method) == ["POST", "POST"])
    #expect(within.requests.last?.body.isEmpty == false)
    let circle = try await hello(transport) { request, connection in
      connection.answer(307, [], type: "text/plain", headers: ["Location: \(request.path)"])
    }
    #expect(circle.error?.kind == .unavailable && circle.requests.count < 10)
  }

  @Test("cookies are not kept, and nothing is asked of a cache", arguments: Transports.all)
  func cookies(transport: Transports) async throws {
    let server = try SocketServer { _, connection in
      connection.answer(
        200, Self.answer(), headers: ["Set-Cookie: a=b; Path=/", "Cache-Control: max-age=600"])
    }
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    for _ in 0..<3 { _ = try await peer.hello(HelloRequest(replica: replica)) }
    #expect(server.requests.count == 3)
    #expect(server.requests.allSatisfy { $0.headers["cookie"] == nil })
    #expect(server.requests.allSatisfy { $0.headers["accept-encoding"] == "identity" })
    await peer.close()
  }

  @Test("addresses that make no sense are refused at once")
  func addresses() {
    for url in [
      "", "notes", "ftp://a/b", "http://a", "http://a/", "http://a/b?c", "http://u:p@a/b",
    ] {
      #expect(throws: PeerError.self, "\(url)") { try HTTPPeer(url) }
    }
  }
}

extension ReplicaID {
  init(text: String) {
    self = ReplicaID(text) ?? ReplicaID(text: String(repeating: "0", count: 32))
  }
}
