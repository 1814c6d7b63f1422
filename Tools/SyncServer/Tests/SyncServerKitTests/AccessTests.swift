import SyncServerKit
import Testing
import TidemarkSyncServer

@Suite("The server's access")
struct AccessTests {
  private let me = ReplicaID.test(1)
  private static let tokens = """
    # for tests
    all-of-everything *
    all-of-one-database one
    reads-one-database one read
    only-its-own-labels one label=mine
    nothing-at-all-here one label=
    """

  private func run(_ body: (TestServer) async throws -> Void) async throws {
    try await TestServer.run {
      $0.tokens = Self.tokens
    } _: {
      try await body($0)
    }
  }

  @Test("without a valid token nothing is answered, and no database is made")
  func wrongToken() async throws {
    try await run { server in
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      for token in [nil, "", "all-of-everythin", "all-of-everything2", "ALL-OF-EVERYTHING"] {
        let (status, answer) = try await server.call(hello, in: "one", token: token)
        #expect(status == 401 && answer.errorKind == .unauthorized, "\(token ?? "none")")
      }
      #expect(try await server.request("GET", "/metrics").status == 401)
      #expect(try await server.request("GET", "/health").status == 200)
      let metrics = try await server.request(
        "GET", "/metrics", [("Authorization", "Bearer all-of-everything")])
      #expect(metrics.text.contains("tidemark_open_databases 0\n"))
    }
  }

  @Test("a token is for its databases only")
  func otherDatabase() async throws {
    try await run { server in
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      let token = "all-of-one-database"
      #expect(try await server.call(hello, in: "one", token: token).status == 200)
      let (status, answer) = try await server.call(hello, in: "two", token: token)
      #expect(status == 403 && answer.errorKind == .forbidden)
      let fields = [("Authorization", "Bearer \(token)")]
      #expect(try await server.request("GET", "/metrics", fields).status == 403)
    }
  }

  @Test("a token to read does not write")
  func readOnly() async throws {
    try await run { server in
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      // It makes no database either.
      #expect(try await server.call(hello, in: "one", token: "reads-one-database").status == 404)
      _ = try await server.call(hello, in: "one", token: "all-of-everything")
      let (status, answer) = try await server.call(
        .pushRequest(.puts(["a"], by: me)), in: "one", token: "reads-one-database")
      #expect(status == 403 && answer.errorKind == .forbidden)
    }
  }

  @Test("one caller makes so many databases in a minute, and others are none the worse for it")
  func newDatabases() async throws {
    try await TestServer.run {
      $0.tokens = Self.tokens + "\nanother-of-everything *"
      // One, and the next one after a quarter of an hour.
      $0.limits.newDatabasesPerMinute = 0.06
    } _: { server in
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      let token = "all-of-everything"
      #expect(try await server.call(hello, in: "a", token: token).status == 200)
      let (status, answer) = try await server.call(hello, in: "d", token: token)
      #expect(status == 429 && answer.errorKind == .busy)
      #expect(try await server.call(hello, in: "a", token: token).status == 200, "it is there")
      let other = "another-of-everything"
      #expect(try await server.call(hello, in: "d", token: other).status == 200)
      #expect(try await server.call(hello, in: "d", token: token).status == 200)
    }
  }

  @Test("values outside a token's labels are neither read nor written")
  func labels() async throws {
    try await run { server in
      let other = ReplicaID.test(2)
      for replica in [me, other] {
        let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
        _ = try await server.call(hello, in: "one", token: "all-of-everything")
      }
      let batches = [
        PushRequest.puts(["hers"], by: me, labels: ["hers"]),
        PushRequest.puts(["mine"], by: me, number: 2, labels: ["mine"]),
      ]
      for batch in batches {
        _ = try await server.call(.pushRequest(batch), in: "one", token: "all-of-everything")
      }
      for (token, expected) in [("only-its-own-labels", ["mine"]), ("nothing-at-all-here", [])] {
        let keys = ["hers", "mine"].map { Array($0.utf8) }
        guard
          case .valuesAnswer(let values) = try await server.call(
            .valuesRequest(ValuesRequest(replica: other, keys: keys)), in: "one", token: token
          ).answer,
          case .pullAnswer(let page) = try await server.call(
            .pullRequest(PullRequest(replica: other, after: .beginning)), in: "one",
            token: token
          ).answer
        else { throw Unexpected() }
        #expect(values.entries.map(\.key) == expected.map { Array($0.utf8) })
        #expect(page.entries.map(\.key) == expected.map { Array($0.utf8) })
      }
      let push = PushRequest.puts(["hers", "new"], by: other, labels: ["hers"])
      guard
        case .pushAnswer(let answer) = try await server.call(
          .pushRequest(push), in: "one", token: "only-its-own-labels"
        ).answer
      else { throw Unexpected() }
      for verdict in answer.mark.verdicts {
        guard case .rejected(let rejection) = verdict else { throw Unexpected() }
        #expect(rejection.code == "outOfScope")
      }
    }
  }

  @Test(
    "tokens that make no sense are refused at the start",
    arguments: [
      "short *", "long-enough-to-be-one", "long-enough-to-be-one ../x",
      "long-enough-to-be-one one lable=x",
    ])
  func badTokens(text: String) async throws {
    await #expect(throws: SettingsError.self) {
      try await TestServer.run {
        $0.tokens = text
      } _: { _ in
      }
    }
  }

  @Test("a server that others can reach does not start without tokens")
  func reachable() async throws {
    await #expect(throws: SettingsError.self) {
      try await TestServer.run {
        $0.host = "0.0.0.0"
      } _: { _ in
      }
    }
  }
}
