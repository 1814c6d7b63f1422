#if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
  import Foundation
  import Testing
  import Tidemark
  import TidemarkEngine
  import TidemarkSyncProtocol
  import TidemarkTestKit

  @testable import TidemarkHTTP
  @testable import TidemarkHTTPCache

  /// Each test is a process of its own, in whose environment a proxy and a certificate stand.
  @Suite("HTTPS, and proxies before it", .enabled(if: TLSFront.canRun), .timeLimit(.minutes(20)))
  struct ProxyTests {
    /// Answers to `CONNECT` that say more than they should.
    static let replies = [
      "HTTP/1.1 200 Connected\r\n\r\n",
      "HTTP/1.0 200 OK\r\nCache-Control: max-age=600\r\nETag: \"proxy\"\r\nX-Proxy: 1\r\n\r\n",
      "HTTP/1.1 299 Fine\r\nContent-Length: 0\r\nSet-Cookie: proxy=1\r\nX-Proxy: 1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nX-Proxy: 1\r\n\r\n",
    ]

    @Test("the answer is the server's, not the proxy's to CONNECT")
    func connect() async throws {
      await #expect(processExitsWith: .success) {
        let server = try SocketServer { request, connection in
          let head = request.path == "/hints" ? "HTTP/1.1 103 Hints\r\nX-Hint: 1\r\n\r\n" : ""
          return connection.send(
            head + "HTTP/1.1 404 No\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nno")
        }
        for reply in ProxyTests.replies {
          let front = try TLSFront(server.port, reply: reply)
          front.becomeProxy()
          for path in ["/a", "/hints", "/a"] {
            let transport = CurlTransport()
            let answer = try await transport.answer(
              to: HTTPTransportRequest(url: "https://server.test\(path)"), limit: 100)
            try #require(answer.status == 404, "\(reply)")
            try #require(
              answer.headers == ["cache-control": "no-store", "content-length": "2"], "\(reply)")
            await transport.close()
          }
        }
      }
    }

    @Test("a server's error behind a proxy is an error of the call")
    func peer() async throws {
      await #expect(processExitsWith: .success) {
        let server = try SocketServer { _, connection in connection.answer(500) }
        for reply in ProxyTests.replies {
          let front = try TLSFront(server.port, reply: reply)
          front.becomeProxy()
          let peer = try HTTPPeer("https://server.test/notes")
          let error = await #expect(throws: PeerError.self) {
            try await peer.hello(HelloRequest(replica: ReplicaID(text: "112233")))
          }
          try #require(error?.kind == .failed, "\(reply)")
          await peer.close()
        }
      }
    }

    @Test("a proxy that refuses is no answer")
    func refused() async throws {
      await #expect(processExitsWith: .success) {
        let server = try SocketServer { _, connection in connection.answer(200) }
        for status in ["407 Who", "403 No", "302 There\r\nLocation: /login", "503 Later"] {
          let front = try TLSFront(
            server.port, reply: "HTTP/1.1 \(status)\r\nContent-Length: 2\r\n\r\nno")
          front.becomeProxy()
          let transport = CurlTransport()
          let error = await #expect(throws: PeerError.self) {
            try await transport.answer(
              to: HTTPTransportRequest(url: "https://server.test/a"), limit: 100)
          }
          try #require(error?.kind == .unavailable, "\(status)")
          await transport.close()
        }
        try #require(server.requests.isEmpty)
      }
    }

    /// Whole answers, but that the end of the last two is the connection's.
    static let bodies = [
      "Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
      "X-A: 1\r\n\r\nbody", "Transfer-Encoding: identity\r\n\r\nbody",
    ]

    @Test("an answer that TLS has cut off is none, and is not kept")
    func cutOff() async throws {
      await #expect(processExitsWith: .success) {
        // A path says whether the answer is whole, and which it is.
        let server = try SocketServer { request, connection in
          let body = ProxyTests.bodies[Int(request.path.dropFirst(6)) ?? 0]
          let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
          connection.send(
            head + (request.path.hasPrefix("/half") ? String(body.dropLast(2)) : body))
          return false
        }
        for isClean in [true, false] {
          let front = try TLSFront(server.port, isClean: isClean)
          for path in (0..<4).flatMap({ ["/whole\($0)", "/half:\($0)"] }) {
            // Without a length the end of TLS alone says whether an answer is whole.
            let isUnbounded = path.hasSuffix("2") || path.hasSuffix("3")
            let isWhole = isUnbounded ? isClean : path.hasPrefix("/whole")
            let disk = SimulatedFileSystem(seed: 1)
            let store = try Store.openBlocking(
              at: "store",
              configuration: Store.Configuration(
                environment: Store.Environment(
                  fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 2)),
                usesThreads: false))
            let cache = try HTTPCache(store: store, transport: CurlTransport())
            let answer = await Result.of {
              try await cache.answer(to: HTTPTransportRequest(url: front.url + path), limit: 100)
            }
            let isKept = try cache.responses.count == 1
            let body = try? answer.get().body
            #expect((body != nil) == isWhole, "\(isClean) \(path): \(answer)")
            #expect(isKept == isWhole, "\(isClean) \(path)")
            await cache.close()
            try await store.close()
          }
        }
      }
    }
  }
#endif
