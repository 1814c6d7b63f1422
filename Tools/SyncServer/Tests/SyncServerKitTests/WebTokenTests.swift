#if JWT
  import JWTKit
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
    private struct Claims: JWTPayload {
      var exp: ExpirationClaim? = ExpirationClaim(value: Date(timeIntervalSinceNow: 60))
      var nbf: NotBeforeClaim?
      var aud: AudienceClaim? = "tidemark"
      var databases: [String]? = ["notes"]
      var labels: [String]?
      var access: String?

      func verify(using algorithm: some JWTAlgorithm) {}
    }

    private static let secret = Array(String(repeating: "a secret ", count: 8).utf8)
    private let me = ReplicaID.test(1)

    private func run(
      _ body: (TestServer, JWTKeyCollection, JWTKeyCollection) async throws -> Void
    ) async throws {
      let key = ES256PrivateKey()
      let settings = {
        var settings = WebTokenSettings()
        settings.secret = Self.secret
        settings.publicKey = key.publicKey.pemRepresentation
        settings.audience = "tidemark"
        return settings
      }()
      let shared = await JWTKeyCollection().add(
        hmac: HMACKey(from: Self.secret), digestAlgorithm: .sha256)
      let paired = await JWTKeyCollection().add(ecdsa: key)
      try await TestServer.run {
        $0.webTokens = settings
      } _: { server in
        try await body(server, shared, paired)
      }
    }

    private func status(_ server: TestServer, _ token: String, in name: String = "notes")
      async throws -> Int
    {
      try await server.call(
        .helloRequest(HelloRequest(replica: me)), in: name, token: token
      ).status
    }

    @Test("a pull waits no longer than its token is valid", .timeLimit(.minutes(20)))
    func waits() async throws {
      try await TestServer.run {
        $0.webTokens.secret = Self.secret
        $0.limits.wait = .seconds(3600)
      } _: { server in
        let keys = await JWTKeyCollection().add(
          hmac: HMACKey(from: Self.secret), digestAlgorithm: .sha256)
        let lasting = try await keys.sign(Claims(aud: nil))
        #expect(try await status(server, lasting) == 200)
        let exp = ExpirationClaim(value: Date(timeIntervalSinceNow: 3))
        let pull = WireMessage.pullRequest(
          PullRequest(replica: me, after: .beginning, waitMilliseconds: 3_600_000))
        let token = try await keys.sign(Claims(exp: exp, aud: nil))
        let answer = try await server.call(pull, token: token)
        #expect(answer.status == 200 || answer.status == 401)
      }
    }

    @Test("tokens by both algorithms are taken, for their databases")
    func valid() async throws {
      try await run { server, shared, paired in
        for keys in [shared, paired] {
          let token = try await keys.sign(Claims())
          #expect(try await status(server, token) == 200)
          #expect(try await status(server, token, in: "other") == 403)
        }
        let reader = try await shared.sign(Claims(access: "read"))
        let push = WireMessage.pushRequest(.puts(["a"], by: me))
        #expect(try await server.call(push, token: reader).status == 403)
      }
    }

    @Test("tokens that are over, not yet, not whole or not for this server are refused")
    func invalid() async throws {
      try await run { server, shared, _ in
        let past = Date(timeIntervalSinceNow: -1)
        let future = Date(timeIntervalSinceNow: 60)
        let claims = [
          Claims(exp: ExpirationClaim(value: past)), Claims(exp: nil), Claims(aud: "else"),
          Claims(aud: nil), Claims(nbf: NotBeforeClaim(value: future)), Claims(databases: nil),
          Claims(access: "all"),
        ]
        for claims in claims {
          let token = try await shared.sign(claims)
          #expect(try await status(server, token) == 401, "\(claims)")
        }
      }
    }

    @Test("a header with `crit` is refused, whatever stands in it")
    func critical() async throws {
      try await run { server, shared, paired in
        for keys in [shared, paired] {
          for field: JWTHeaderField in [.array([.string("exp")]), .array([]), .string("exp")] {
            let header = JWTHeader(fields: ["crit": field, "exp": .int(1)])
            let token = try await keys.sign(Claims(), header: header)
            #expect(try await status(server, token) == 401, "\(field)")
          }
          let token = try await keys.sign(Claims(), header: JWTHeader(fields: ["exp": .int(1)]))
          #expect(try await status(server, token) == 200)
        }
      }
    }

    @Test("a token signed otherwise is refused: by nothing, by another key, by another hash")
    func forged() async throws {
      try await run { server, shared, paired in
        let other = await JWTKeyCollection().add(
          hmac: HMACKey(from: "another secret that has the length"), digestAlgorithm: .sha256)
        let longer = await JWTKeyCollection().add(
          hmac: HMACKey(from: Self.secret), digestAlgorithm: .sha512)
        let none = await JWTKeyCollection().addUnsecuredNone()
        for keys in [other, longer, none] {
          #expect(try await status(server, try await keys.sign(Claims())) == 401)
        }
        // Claims of one token with the signature of another.
        let one = try await shared.sign(Claims()).split(separator: ".")
        let two = try await shared.sign(Claims(databases: ["*"])).split(separator: ".")
        #expect(try await status(server, "\(one[0]).\(two[1]).\(one[2])") == 401)
        // A header that names an algorithm for which the other key would be taken.
        let pair = try await paired.sign(Claims()).split(separator: ".")
        #expect(try await status(server, "\(pair[0]).\(one[1]).\(one[2])") == 401)
        #expect(try await status(server, "a.b.c") == 401)
      }
    }
  }
#endif
