#if PostgreSQL && JWT
  import Foundation
  import Logging
  import SyncServerKit
  import Testing
  import Tidemark
  import TidemarkSyncServer

  private enum Trial {
    static var url: String? { ProcessInfo.processInfo.environment["TIDEMARK_TEST_POSTGRES"] }
  }

  @Suite("Servers over PostgreSQL", .enabled(if: Trial.url != nil))
  struct PostgresTests {
    private static let secret = Array("a secret of 32 bytes, or of more".utf8)
    private let name = "test-\(UUID())"

    private func options(_ options: inout ServerOptions) {
      options.postgres = PostgresOptions(url: Trial.url ?? "")
      options.postgres?.appliesSchema = true
      options.webTokens.secret = Self.secret
    }

    private func token(_ claims: String = "") -> String {
      let end = Int(Date().timeIntervalSince1970) + 600
      return TokenSigner.hs256(Self.secret).token(
        "{\"exp\":\(end),\"databases\":[\"*\"]\(claims)}")
    }

    private static func replica(_ digit: UInt8) throws -> ReplicaID {
      try #require(ReplicaID(Array(repeating: digit * 17, count: 16)))
    }

    /// Runs `body` with a port that is administered by a token.
    private func administered(
      _ server: TestServer, _ body: (Int) async throws -> Void
    ) async throws {
      let (ports, source) = AsyncStream.makeStream(of: Int.self)
      var logger = Logger(label: "test")
      logger.logLevel = .critical
      let admin = try AdminServer(
        of: server.server, port: 0, token: "0123456789abcdef", logger: logger
      ) { source.yield($0) }
      let task = Task { try await admin.run() }
      defer { task.cancel() }
      var iterator = ports.makeAsyncIterator()
      try await body(try #require(await iterator.next()))
    }

    private func admin(
      _ port: Int, _ method: String, _ path: String, token: String = "0123456789abcdef"
    ) async throws -> (status: Int, text: String) {
      try await RawConnection.open(to: port) { connection in
        try await connection.request(
          method, path, [("Authorization", "Bearer \(token)")], body: nil)
        let answer = try await connection.answer()
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
      }
    }

    @Test("over HTTP operators do what the command line does, and nobody else")
    func administration() async throws {
      try await TestServer.run(options) { server in
        try await administered(server) { (port: Int) async throws in
          #expect(try await admin(port, "GET", "/list", token: "0123456789abcdeF").status == 401)
          #expect(try await admin(port, "POST", "/create/\(name)").status == 200)
          #expect(try await admin(port, "GET", "/stat/\(name)").text.contains("\"quota\":0"))
          #expect(
            try await admin(port, "POST", "/quota/\(name)/1000").text.contains("\"quota\":1000"))
          #expect(try await admin(port, "POST", "/quota/\(name)/much").status == 400)
          #expect(try await admin(port, "GET", "/quota/\(name)/7").status == 405)
          #expect(try await admin(port, "GET", "/nothing").status == 404)
          #expect(try await admin(port, "GET", "/stat/\(name)-no").status == 404)
          #expect(try await admin(port, "GET", "/stat/..%2f..").status == 400)
          #expect(try await admin(port, "POST", "/quota/%zz/\(name)/7").status == 400)
          #expect(try await admin(port, "GET", "/stat/\(name)").text.contains("\"quota\":1000"))
          #expect(try await admin(port, "POST", "/delete/\(name)").status == 200)
          #expect(try await admin(port, "GET", "/stat/\(name)").status == 404)
        }
      }
    }

    @Test("who is revoked at one server is refused at another one, also while waiting")
    func revocation() async throws {
      try await TestServer.run(options) { one in
        try await TestServer.run(options) { two in
          let user = "user-\(UUID())"
          let token = token(",\"sub\":\"\(user)\"")
          let replica = try Self.replica(1)
          let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
          let (status, answer) = try await two.call(hello, in: name, token: token)
          guard status == 200, case .helloAnswer(let found) = answer else {
            Issue.record("\(answer)")
            return
          }
          var pull = PullRequest(replica: replica, after: found.range.headPosition)
          pull.waitMilliseconds = 600_000
          let question = WireMessage.pullRequest(pull)
          let waiting = Task { try await two.call(question, in: name, token: token) }
          try await administered(one) { port in
            #expect(try await admin(port, "POST", "/revoke/subject/\(user)").status == 200)
            // The long poll ends, and the next call is refused.
            let ended = try await waiting.value.status
            #expect([200, 403].contains(ended))
            while try await two.call(hello, in: name, token: token).status != 403 {
              try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try await two.call(hello, in: name, token: self.token()).status == 200)
            #expect(try await admin(port, "POST", "/restore/subject/\(user)").status == 200)
          }
        }
      }
    }

    @Test("a token with the claim replica is for that replica alone")
    func boundToken() async throws {
      try await TestServer.run(options) { server in
        let digits = String(repeating: "22", count: 16)
        let token = token(",\"replica\":\"\(digits)\"")
        for (digit, status) in [(2, 200), (3, 403)] as [(UInt8, Int)] {
          let hello = HelloRequest(replica: try Self.replica(digit))
          #expect(
            try await server.call(.helloRequest(hello), in: name, token: token).status == status)
        }
      }
    }

    @Test("a server that drains is not ready, and answers all the same")
    func draining() async throws {
      try await TestServer.run(options) { server in
        #expect(try await server.request("GET", "/ready").status == 200)
        server.server.drain()
        #expect(try await server.request("GET", "/ready").status == 503)
        let hello = WireMessage.helloRequest(HelloRequest(replica: try Self.replica(1)))
        #expect(try await server.call(hello, in: name, token: token()).status == 200)
        let metrics = try await server.request(
          "GET", "/metrics", [("Authorization", "Bearer \(token())")])
        #expect(
          String(decoding: metrics.body, as: UTF8.self).contains("tidemark_postgres_connections"))
      }
    }
  }
#endif
