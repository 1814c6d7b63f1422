#if JWT
  import Crypto
  import SyncServerKit
  import Testing
  import TidemarkSyncServer

  #if canImport(Darwin)
    import Foundation
  #else
    import FoundationEssentials
  #endif

  @Suite("JSON Web Tokens")
  struct WebTokenTests {
    private static let secret = Array(String(repeating: "a secret ", count: 8).utf8)
    private static let shared = TokenSigner.hs256(secret)
    private let me = ReplicaID.test(1)

    private func run(
      _ body: (TestServer, _ shared: TokenSigner, _ paired: TokenSigner) async throws -> Void
    ) async throws {
      let key = P256.Signing.PrivateKey()
      try await TestServer.run {
        $0.webTokens.secret = Self.secret
        $0.webTokens.publicKey = key.publicKey.pemRepresentation
        $0.webTokens.audience = "tidemark"
      } _: { server in
        try await body(server, Self.shared, .es256(key))
      }
    }

    /// Claims as JSON: valid ones for the database `notes`, and others besides or instead.
    private static func claims(_ changes: [String: String?] = [:]) -> String {
      let valid: [String: String?] = [
        "exp": "\(time(60))", "aud": "\"tidemark\"", "databases": "[\"notes\"]",
      ]
      let fields = valid.merging(changes) { $1 }.compactMap { name, value in
        value.map { "\"\(name)\":\($0)" }
      }
      return "{" + fields.joined(separator: ",") + "}"
    }

    private static func time(_ seconds: Double) -> Double {
      Date(timeIntervalSinceNow: seconds).timeIntervalSince1970
    }

    private func expect(
      _ status: Int, _ server: TestServer, _ token: String, in name: String = "notes",
      _ words: String = "", at location: SourceLocation = #_sourceLocation
    ) async throws {
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      let answer = try await server.call(hello, in: name, token: token)
      #expect(answer.status == status, "\(words)", sourceLocation: location)
    }

    @Test("a pull waits no longer than its token is valid", .timeLimit(.minutes(20)))
    func waits() async throws {
      try await TestServer.run {
        $0.webTokens.secret = Self.secret
        $0.limits.wait = .seconds(3600)
      } _: { server in
        let lasting = Self.shared.token(Self.claims())
        try await expect(200, server, lasting)
        let pull = WireMessage.pullRequest(
          PullRequest(replica: me, after: .beginning, waitMilliseconds: 3_600_000))
        let token = Self.shared.token(Self.claims(["exp": "\(Self.time(3))"]))
        let answer = try await server.call(pull, token: token)
        #expect(answer.status == 200 || answer.status == 401)
      }
    }

    @Test("tokens by both algorithms are taken, for their databases")
    func valid() async throws {
      try await run { server, shared, paired in
        for signer in [shared, paired] {
          let token = signer.token(Self.claims())
          try await expect(200, server, token)
          try await expect(403, server, token, in: "other")
        }
        let reader = shared.token(Self.claims(["access": "\"read\""]))
        let push = WireMessage.pushRequest(.puts(["a"], by: me))
        #expect(try await server.call(push, token: reader).status == 403)
        for audience in ["[\"tidemark\"]", "[\"other\",\"tidemark\"]"] {
          try await expect(200, server, shared.token(Self.claims(["aud": audience])))
        }
      }
    }

    @Test("tokens that another program has signed are taken")
    func foreign() async throws {
      // Made with openssl; they are valid until the year 3000.
      let tokens = [
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJleHAiOjMyNTAzNjgwMDAwLCJkYXRhYmFzZXMiOlsibm90ZX"
          + "MiXX0.rz4DK7GJYnffNvEQCXYY-I5vQnSTp7yXRG6v-JX3z18",
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiIsImtpZCI6IjEifQ.eyJleHAiOjMyNTAzNjgwMDAwLCJkYXRhYmFzZX"
          + "MiOlsibm90ZXMiXX0.281oiVarLy-bpghWER_UG2YeaonSCW0Ub9Fn_VlxzCkdD2v8t8eopSQyiQNh3Xwzhtrk"
          + "qh-kKHwl8-smUIZKOA",
      ]
      try await TestServer.run {
        $0.webTokens.secret = Array("a-secret-of-32-bytes-or-more-for-tests".utf8)
        $0.webTokens.publicKey = """
          -----BEGIN PUBLIC KEY-----
          MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEODUtC3Gr2VrnSFsAlnZeaWzXagM1
          nz8vbiFtV8PQv+dIKea2hUsFnOqZM8BRorx0B55qzyqrxSKC+GsYljGSMg==
          -----END PUBLIC KEY-----
          """
      } _: { server in
        for token in tokens {
          try await expect(200, server, token)
          try await expect(401, server, token + "=", "padding")
        }
      }
    }

    @Test("tokens that are over, not yet, not whole or not for this server are refused")
    func invalid() async throws {
      try await run { server, shared, _ in
        let changes: [[String: String?]] = [
          ["exp": "\(Self.time(-1))"], ["exp": nil], ["exp": "\"\(Self.time(60))\""],
          ["aud": "\"else\""], ["aud": nil], ["aud": "[]"], ["aud": "[\"else\"]"],
          ["nbf": "\(Self.time(60))"], ["databases": nil], ["access": "\"all\""],
        ]
        for changes in changes {
          let token = shared.token(Self.claims(changes))
          try await expect(401, server, token, "\(changes)")
        }
      }
    }

    @Test(
      "web tokens with an issuer or audience of other bytes than in the settings are refused",
      arguments: [true, false])
    func looksAlike(isAudience: Bool) async throws {
      let names = ["caf\u{e9}", "cafe\u{301}", "\u{212B}", "\u{C5}", "A\u{30A}", "caf\u{e9} "]
      for name in names {
        try await TestServer.run {
          $0.webTokens.secret = Self.secret
          if isAudience { $0.webTokens.audience = name } else { $0.webTokens.issuer = name }
        } _: { server in
          for other in names {
            let field = isAudience ? "aud" : "iss"
            let token = Self.shared.token(Self.claims([field: "\"\(other)\""]))
            let isSame = Array(name.utf8) == Array(other.utf8)
            try await expect(isSame ? 200 : 401, server, token, "\(name) \(other)")
          }
        }
      }
    }

    @Test("web tokens with two members of one name in header or claims are refused")
    func twice() async throws {
      try await run { server, shared, _ in
        let valid = Self.claims()
        for more in ["\"exp\":1", "\"databases\":[\"*\"]", "\"a\":1,\"a\":1", "\"\\u0065xp\":9e9"] {
          let token = shared.token(valid.dropLast() + ",\(more)}")
          try await expect(401, server, token, "\(more)")
        }
        for header in ["\"alg\":\"none\",\"alg\":\"HS256\"", "\"alg\":\"HS256\",\"k\":1,\"k\":1"] {
          try await expect(401, server, shared.token(valid, header: "{\(header)}"), header)
        }
        try await expect(200, server, shared.token(valid.dropLast() + ",\"a\":{\"exp\":1}}"))
      }
    }

    @Test("web tokens signed by a replaced key are refused, and their long polls end")
    func replaced() async throws {
      let later = TokenSigner.hs256(Array(String(repeating: "b secret ", count: 8).utf8))
      try await TestServer.run {
        $0.webTokens.secret = Self.secret
      } _: { server in
        let tokens = [Self.shared, later].map { $0.token(Self.claims()) }
        try await expect(200, server, tokens[0])
        try await expect(401, server, tokens[1])
        let pull = WireMessage.pullRequest(
          PullRequest(replica: me, after: .beginning, waitMilliseconds: 3_600_000))
        async let waiting = server.call(pull, token: tokens[0])
        for secret in ["", "short"] {
          #expect(throws: SettingsError.self) {
            try server.replaceWebTokenKeys(secret: Array(secret.utf8))
          }
        }
        try server.replaceWebTokenKeys(
          secret: Array(String(repeating: "b secret ", count: 8).utf8))
        let status = try await waiting.status
        #expect(status == 200 || status == 401)
        try await expect(401, server, tokens[0])
        try await expect(200, server, tokens[1])
      }
      try await TestServer.run { server in
        #expect(throws: SettingsError.self) {
          try server.replaceWebTokenKeys(secret: Self.secret)
        }
      }
    }

    @Test("a header with `crit` is refused, whatever stands in it")
    func critical() async throws {
      try await run { server, shared, paired in
        for signer in [shared, paired] {
          for field in ["[\"exp\"]", "[]", "\"exp\"", "null", "1e300"] {
            let header = "{\"alg\":\"\(signer.algorithm)\",\"crit\":\(field),\"exp\":1}"
            let token = signer.token(Self.claims(), header: header)
            try await expect(401, server, token, "\(field)")
          }
          let header = "{\"alg\":\"\(signer.algorithm)\",\"exp\":1}"
          try await expect(200, server, signer.token(Self.claims(), header: header))
        }
      }
    }

    @Test("a token signed otherwise is refused: by nothing, by another key, by another hash")
    func forged() async throws {
      try await run { server, shared, paired in
        let other = TokenSigner.hs256(Array("another secret that has the length".utf8))
        let longer = TokenSigner(algorithm: "HS512") {
          Array(HMAC<SHA512>.authenticationCode(for: $0, using: SymmetricKey(data: Self.secret)))
        }
        let misnamed = TokenSigner(algorithm: "HS256", sign: longer.sign)
        let stranger = TokenSigner.es256(P256.Signing.PrivateKey())
        let none = TokenSigner(algorithm: "none") { _ in [] }
        let empty = TokenSigner(algorithm: "HS256") { _ in [] }
        for signer in [other, longer, misnamed, stranger, none, empty] {
          try await expect(401, server, signer.token(Self.claims()))
        }
        // Claims of one token with the signature of another.
        let one = shared.token(Self.claims()).split(separator: ".")
        let two = shared.token(Self.claims(["databases": "[\"*\"]"])).split(separator: ".")
        try await expect(401, server, "\(one[0]).\(two[1]).\(one[2])")
        // A header that names an algorithm for which the other key would be taken.
        let pair = paired.token(Self.claims()).split(separator: ".")
        try await expect(401, server, "\(pair[0]).\(one[1]).\(one[2])")
        try await expect(401, server, "a.b.c")
      }
    }
  }
#endif
