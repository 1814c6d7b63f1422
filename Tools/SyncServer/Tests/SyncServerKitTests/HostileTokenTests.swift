#if JWT
  import Crypto
  import Testing
  import TidemarkSyncServer
  import TidemarkTestKit

  @testable import SyncServerKit

  @Suite("Hostile web tokens", .timeLimit(.minutes(20)))
  struct HostileTokenTests {
    private static let secret = Array(String(repeating: "a secret ", count: 8).utf8)
    private static let signer = TokenSigner.hs256(secret)
    private static let valid = "{\"exp\":32503680000,\"databases\":[\"*\"]}"

    /// Texts that readers of JSON have been seen to trap at, and some that look alike.
    private static let values =
      [
        "1e300", "-1e300", "1e400", "-1e19", "9223372036854775808", "-9223372036854775809",
        "1e-400", String(repeating: "9", count: 400), "NaN", "Infinity", "0x1p5", "\"\\ud800\"",
        "\"\\u0000\"",
        "null", "true", "{}", "[]", "[[]]", "[null]", "[1]", "\"\"", "{\"a\":[-1e19]}", "\r", "",
        "\"" + String(repeating: "x", count: 5000) + "\"",
      ]
      + [63, 64, 65, 511, 512, 513, 514, 600].flatMap { depth in
        let open = String(repeating: "[", count: depth)
        return [open, open + String(repeating: "]", count: depth)]
      }

    private static func payloads() -> [String] {
      ["exp", "nbf", "iss", "sub", "aud", "databases", "labels", "prefixes", "access"].flatMap {
        name in
        values.map { value in
          valid.dropLast() + (name == "exp" ? "" : ",") + "\"\(name)\":\(value)}"
        }
      } + values
    }

    @Test("no unsigned token ends the server, whatever stands in header and claims")
    func unsigned() async throws {
      try await TestServer.run {
        $0.webTokens.secret = Self.secret
        $0.limits.requestsPerSecond = 0
      } _: { server in
        let header = "{\"alg\":\"HS256\"}"
        let headers = Self.values.flatMap {
          ["{\"alg\":\"HS256\",\"x\":\($0)}", "{\"alg\":\($0)}", $0]
        }
        let parts = Self.payloads().map { (header, $0) } + headers.map { ($0, Self.valid) }
        try await RawConnection.open(to: server.port) { connection in
          for (header, payload) in parts {
            let token = [header, payload].map { TokenSigner.base64URL(Array($0.utf8)) }
            for signature in ["", ".", ".AA", ".AA.AA"] {
              let field = ("Authorization", "Bearer \(token.joined(separator: "."))\(signature)")
              try await connection.request("GET", "/metrics", [field])
              #expect(try await connection.answer().status == 401, "\(header) \(payload)")
            }
          }
        }
      }
    }

    @Test("a signed token is taken or refused, whatever stands in header and claims")
    func signed() throws {
      let tokens = try Self.tokens()
      for payload in Self.payloads() { _ = tokens.caller(Self.signer.token(payload).utf8) }
      for value in Self.values {
        let header = "{\"alg\":\"HS256\",\"x\":\(value)}"
        _ = tokens.caller(Self.signer.token(Self.valid, header: header).utf8)
      }
      let claims = "{\"exp\":1e300,\"databases\":[\"a\"],\"aud\":[],\"nbf\":-1e300}"
      let caller = try #require(tokens.caller(Self.signer.token(claims).utf8))
      #expect(caller.validFor == .seconds(1e9))
      for exp in ["-1e300", "0", "1e400", "1e-400", "true"] {
        let claims = "{\"exp\":\(exp),\"databases\":[\"a\"]}"
        #expect(tokens.caller(Self.signer.token(claims).utf8) == nil, "\(exp)")
      }
    }

    @Test("calls are answered within whatever scope a token has")
    func scopes() async throws {
      try await TestServer.run {
        $0.webTokens.secret = Self.secret
      } _: { server in
        let me = ReplicaID.test(1)
        let hello = WireMessage.helloRequest(HelloRequest(replica: me))
        let all = Self.signer.token(Self.valid)
        _ = try await server.call(hello, token: all)
        let long = "\"" + String(repeating: "x", count: 5000) + "\""
        let many = (0..<1000).map { "\"\($0)\"" }.joined(separator: ",")
        var number: UInt64 = 0
        for part in ["\"\"", "\"\",\"\"", "\"\\u0000\"", long, many, ""] {
          for field in ["labels", "prefixes"] {
            let claims = Self.valid.dropLast() + ",\"\(field)\":[\(part)]}"
            let token = Self.signer.token(String(claims))
            number += 1
            let push = PushRequest.puts(["a"], by: me, number: number, labels: ["a"])
            let calls: [WireMessage] = [
              hello, .pushRequest(push),
              .pullRequest(PullRequest(replica: .test(2), after: .beginning)),
              .valuesRequest(ValuesRequest(replica: me, keys: [[0x61]])),
              .digestRequest(DigestRequest(replica: me)),
            ]
            for call in calls {
              let status = try await server.call(call, token: token).status
              #expect(status < 500, "\(field) \(part)")
            }
          }
        }
        #expect(try await server.call(hello, token: all).status == 200)
      }
    }

    @Test("the name under which a caller's requests are counted has a bound")
    func names() throws {
      let tokens = try Self.tokens()
      let long = String(repeating: "é", count: 2000)
      for field in ["\"sub\":\"\(long)\",\"databases\":[]", "\"databases\":[\"\(long)\"]"] {
        let caller = tokens.caller(Self.signer.token("{\"exp\":32503680000,\(field)}").utf8)
        #expect(try #require(caller).id.utf8.count <= 300)
      }
    }

    @Test("tokens that chance has changed end nothing, and let nobody in unless they are signed")
    func random() throws {
      let seed = UInt64.random(in: 0 ... .max)
      var random = SeededGenerator(seed: seed)
      let tokens = try Self.tokens()
      let pieces = Self.values.map { Array($0.utf8) } + [[0xff], [0], [0xef, 0xbb, 0xbf]]
      for round in 0..<5_000 {
        var header = Array("{\"alg\":\"HS256\",\"typ\":\"JWT\"}".utf8)
        var payload = Array(Self.valid.utf8)
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          Self.change(&header, pieces, &random)
          Self.change(&payload, pieces, &random)
        }
        let token = Self.signer.token(payload, header: header)
        if let caller = tokens.caller(token.utf8) { #expect(caller.validFor ?? .zero > .zero) }
        let forged = token.dropLast(2) + (token.hasSuffix("AA") ? "BA" : "AA")
        #expect(tokens.caller(forged.utf8) == nil, "seed \(seed), round \(round)")
      }
    }

    private static func tokens() throws -> WebTokens {
      var settings = WebTokenSettings()
      settings.secret = secret
      return try WebTokens(settings)
    }

    private static func change(
      _ text: inout [UInt8], _ pieces: [[UInt8]], _ random: inout SeededGenerator
    ) {
      let place = Int.random(in: 0...text.count, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: text.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: place)
      case 1: text.removeSubrange(place..<min(place + 4, text.count))
      case 2: text.insert(.random(in: 0 ... .max, using: &random), at: place)
      default: break
      }
    }
  }
#endif
