import SyncServerKit
import Testing
import TidemarkSyncServer

@Suite("Tokens that are replaced", .timeLimit(.minutes(20)))
struct TokenReplacementTests {
  private let hello = WireMessage.helloRequest(HelloRequest(replica: .test(1)))
  private let tokens = """
    the-first-of-all-tokens *
    stays-what-it-always-was *
    """

  private func run(_ body: (TestServer) async throws -> Void) async throws {
    try await TestServer.run {
      $0.tokens = tokens
    } _: {
      try await body($0)
    }
  }

  @Test("tokens that have gone are refused, new ones are taken, and what is allowed changes")
  func replaced() async throws {
    try await run { server in
      #expect(try await server.call(hello, token: "the-first-of-all-tokens").status == 200)
      #expect(try await server.call(hello, token: "another-one-comes-later").status == 401)
      try server.replaceTokens(
        "another-one-comes-later *\nstays-what-it-always-was tasks")
      #expect(try await server.call(hello, token: "the-first-of-all-tokens").status == 401)
      #expect(try await server.call(hello, token: "another-one-comes-later").status == 200)
      #expect(try await server.call(hello, token: "stays-what-it-always-was").status == 403)
    }
  }

  @Test("a token that reaches other entries is told by another reach, in hellos and in pages")
  func reach() async throws {
    try await run { server in
      func reaches() async throws -> [UInt64?] {
        let token = "stays-what-it-always-was"
        guard case .helloAnswer(let hello) = try await server.call(hello, token: token).answer,
          case .pullAnswer(let page) = try await server.call(
            .pullRequest(PullRequest(replica: .test(1), after: .beginning)), token: token
          ).answer
        else { throw Unexpected() }
        return [hello.reach, page.reach]
      }
      var seen: [UInt64?] = []
      for scope in ["", "label=a", "label=a,b prefix=c", "label="] {
        try server.replaceTokens("stays-what-it-always-was * \(scope)")
        let found = try await reaches()
        #expect(found[0] != nil && found[0] == found[1] && !seen.contains(found[0]))
        seen.append(found[0])
      }
      #expect(seen[0] == 0)
    }
  }

  @Test("a file that makes no sense, or would keep everybody out, changes nothing")
  func refused() async throws {
    try await run { server in
      for text in ["", "# nothing", "short *", "another-one-comes-later ../x"] {
        #expect(throws: SettingsError.self) { try server.replaceTokens(text) }
        let status = try await server.call(hello, token: "the-first-of-all-tokens").status
        #expect(status == 200)
      }
    }
  }

  @Test("a server that is open takes none")
  func open() async throws {
    try await TestServer.run { server in
      #expect(throws: SettingsError.self) {
        try server.replaceTokens("another-one-comes-later *")
      }
      let status = try await server.call(hello).status
      #expect(status == 200)
    }
  }
}
