import Testing
import Tidemark

@testable import TidemarkHTTP
@testable import TidemarkHTTPCache

/// Answers whose bodies are encoded, which some transports decode.
@Suite("Compressed answers") struct CompressedAnswerTests {
  static let text = Array(String(repeating: "tidemark ", count: 40).utf8)
  static let gzip: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 43, 201, 76, 73, 205, 77, 44, 202, 86, 40, 25, 101, 208, 146,
    1,
    0, 109, 80, 179, 180, 104, 1, 0, 0,
  ]
  static let deflate: [UInt8] = [
    120, 156, 43, 201, 76, 73, 205, 77, 44, 202, 86, 40, 25, 101, 208, 146, 1, 0, 69, 219, 137, 169,
  ]

  private func server(_ coding: String, _ body: [UInt8]) throws -> SocketServer {
    try SocketServer { _, connection in
      var fields = ["Cache-Control: max-age=60", "ETag: \"a\""]
      if !coding.isEmpty { fields.append("Content-Encoding: \(coding)") }
      return connection.answer(200, body, type: "text/plain", headers: fields)
    }
  }

  @Test(
    "a compressed answer is kept, and its fields describe its body", arguments: Transports.all,
    ["gzip", "x-gzip", "deflate", "GZIP", "identity", ""])
  func kept(transport: Transports, coding: String) async throws {
    let sent =
      coding.lowercased().hasSuffix("gzip")
      ? Self.gzip : coding == "deflate" ? Self.deflate : Self.text
    let server = try server(coding, sent)
    defer { server.stop() }
    try await withCache(HTTPCachePolicy(), transport) { cache in
      var answers: [HTTPTransportAnswer] = []
      for _ in 0..<2 {
        answers.append(
          try await cache.answer(to: HTTPTransportRequest(url: server.url + "/a"), limit: 1_000))
      }
      #expect(server.requests.count == 1)
      #expect(answers[0].body == answers[1].body)
      for answer in answers {
        // Either the server's bytes with the server's fields, or the text without them.
        let isDecoded = answer.body == Self.text && answer.headers["content-encoding"] == nil
        #expect(isDecoded || answer.body == sent && answer.headers["content-encoding"] == coding)
        let length = answer.headers["content-length"]
        #expect(length == nil || length == "\(answer.body.count)")
      }
      #expect(answers[0].headers["cache-status"]?.hasSuffix("; stored") == true)
      #expect(answers[1].headers["cache-status"]?.contains("hit") == true)
    }
  }

  @Test("an answer that will not be kept is not said to be stored", arguments: Transports.all)
  func notStored(transport: Transports) async throws {
    let policy = HTTPCachePolicy(mostBodyBytes: 300)
    let long = String(repeating: "x", count: 70_000)
    for (body, fields, isKept) in [
      (300, [], true), (301, [], false), (1, ["Cache-Control: no-store"], false),
      (1, ["X-Long: \(long)"], false), (1, ["Vary: *"], false),
    ] {
      let server = try SocketServer { _, connection in
        connection.answer(
          200, [UInt8](repeating: 1, count: body), headers: fields + ["ETag: \"a\""])
      }
      try await withCache(policy, transport) { cache in
        let answer = try await cache.answer(
          to: HTTPTransportRequest(url: server.url + "/a"), limit: 1_000)
        let isSaid = answer.headers["cache-status"]?.contains("stored") == true
        #expect(try (cache.responses.count == 1) == isKept)
        #expect(isSaid == isKept, "\(body) \(fields.count)")
      }
      server.stop()
    }
  }

  @Test(
    "a body that is longer than the cache may be takes nothing else's place",
    arguments: Transports.all, [2_001, 70_000, 300_000])
  func longerThanAll(transport: Transports, length: Int) async throws {
    let servers = try [1_000, length].map { count in
      try SocketServer { _, connection in
        connection.answer(
          200, [UInt8](repeating: 1, count: count), headers: ["Cache-Control: max-age=60"])
      }
    }
    try await withCache(HTTPCachePolicy(bytes: 2_000), transport) { cache in
      for server in servers + servers {
        let answer = try await cache.answer(
          to: HTTPTransportRequest(url: server.url + "/a"), limit: 1_000_000)
        let isSaid = answer.headers["cache-status"]?.contains("stored") == true
        #expect(!isSaid || answer.body.count == 1_000)
      }
      #expect(try cache.responses.count == 1)
      #expect(cache.counts.hits == 1)
    }
    for server in servers { server.stop() }
  }

  @Test("a range is that of the body as the server has it", arguments: Transports.all)
  func ranges(transport: Transports) async throws {
    let server = try server("", Self.text)
    defer { server.stop() }
    let line = transport.make()
    for headers in [["Range": "bytes=0-3"], ["range": "bytes=0-3", "Accept-Encoding": "gzip"]] {
      _ = try await line.answer(
        to: HTTPTransportRequest(url: server.url, headers: headers), limit: 1_000)
    }
    let asked = server.requests.map { $0.headers["accept-encoding"] ?? "identity" }
    #expect(asked == ["identity", "gzip"])
    await line.close()
  }
}
