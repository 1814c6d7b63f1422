#if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
  import Testing

  @testable import TidemarkHTTP

  @Suite("The transport over libcurl", .timeLimit(.minutes(20)))
  struct CurlTransportTests {
    @Test("calls go on while others of the same transport are cancelled")
    func cancellations() async throws {
      let server = try SocketServer { _, connection in
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
      defer { server.stop() }
      let transport = CurlTransport(connections: 2)
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<200 {
          let task = Task {
            try await transport.answer(
              to: HTTPTransportRequest(url: server.url), limit: 100
            ).body == Array("ok".utf8)
          }
          if number % 2 == 0 { task.cancel() } else { group.addTask { try await task.value } }
        }
        for try await isRight in group { #expect(isRight) }
      }
      await transport.close()
    }
  }
#endif
