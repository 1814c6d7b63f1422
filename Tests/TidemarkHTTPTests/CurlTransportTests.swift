#if os(Linux)
  import Testing

  @testable import TidemarkHTTP

  @Suite("The transport over libcurl", .timeLimit(.minutes(20)))
  struct CurlTransportTests {
    @Test("an exchange ends once: a late cancellation leaves alone who has the connection next")
    func endsOnce() async throws {
      let outcome = CurlOutcome()
      var steps: [String] = []
      try await withCheckedThrowingContinuation { continuation in
        outcome.expect(continuation)
        outcome.end(.success(())) { steps.append("given back") }
      }
      outcome.end(.failure(CancellationError())) { steps.append("cancelled") }
      #expect(steps == ["given back"])
    }

    @Test("an exchange that was cancelled before anybody waited for it ends for whoever does")
    func endsBefore() async {
      let outcome = CurlOutcome()
      outcome.end(.failure(CancellationError())) {}
      await #expect(throws: CancellationError.self) {
        try await withCheckedThrowingContinuation { outcome.expect($0) }
      }
    }

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
