import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkHTTP
import TidemarkTestKit

@testable import TidemarkHTTPCache

@Suite("Parts of contents in an HTTP cache") struct PartialContentTests {
  /// A cache before a server of one content.
  struct Bench {
    let server: RangeServer
    let store: Store
    let cache: HTTPCache

    init(_ count: Int, _ policy: HTTPCachePolicy = HTTPCachePolicy()) throws {
      server = RangeServer(Self.content(count, 0))
      store = try Store.openBlocking(at: .inMemory)
      cache = try HTTPCache(store: store, policy: policy, transport: server)
    }

    static func content(_ count: Int, _ version: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: ($0 * 31) ^ ($0 >> 8) &+ version * 77) }
    }

    func ask(_ range: String? = nil, _ headers: [String: String] = [:]) async throws
      -> HTTPTransportAnswer
    {
      var headers = headers
      headers["Range"] = range.map { "bytes=\($0)" }
      return try await cache.answer(
        to: HTTPTransportRequest(url: "http://a.example/film", headers: headers), limit: 1 << 26)
    }

    var sent: Int { server.state.withLock { $0.sent } }
    var requests: Int { server.state.withLock { $0.requests.count } }

    func close() async throws {
      await cache.close()
      try await store.close()
    }
  }

  @Test("a film that is played in pieces is fetched once, is whole in the end, and plays offline")
  func playing() async throws {
    let bench = try Bench(1_000_000, HTTPCachePolicy(inlineBytes: 4_096))
    let content = Bench.content(1_000_000, 0)
    #expect(try await bench.ask("0-1").body == Array(content[0..<2]))
    // The user seeks, and comes back.
    for start in [600_000, 0, 300_000, 900_000] {
      for step in 0..<6 where start + step * 50_000 < 1_000_000 {
        let range = start + step * 50_000..<start + (step + 1) * 50_000
        let answer = try await bench.ask("\(range.lowerBound)-\(range.upperBound - 1)")
        #expect(answer.status == 206)
        #expect(answer.body == Array(content[range]))
      }
    }
    #expect(bench.sent == 1_000_000)
    let requests = bench.requests
    #expect(try await bench.ask("123456-").body == Array(content[123_456...]))
    #expect(try await bench.ask().body == content)
    #expect(bench.requests == requests)
    #expect(try bench.cache.responses.count == 1)
    bench.cache.isOffline = true
    #expect(try await bench.ask("-77777").body == Array(content.suffix(77_777)))
    try await bench.close()
  }

  @Test("an answer that breaks off is completed by the next one", arguments: [nil, "0-", "500-"])
  func breaking(range: String?) async throws {
    let bench = try Bench(100_000, HTTPCachePolicy(inlineBytes: 1_000))
    let content = Array(Bench.content(100_000, 0)[(range == "500-" ? 500 : 0)...])
    bench.server.change { $0.breaksAfter = 30_000 }
    for _ in 0..<2 { await #expect(throws: (any Error).self) { try await bench.ask(range) } }
    #expect(bench.sent == 60_000)
    bench.server.change { $0.breaksAfter = .max }
    let answer = try await bench.ask(range)
    #expect(answer.status == (range == nil ? 200 : 206))
    #expect(answer.body == content)
    #expect(bench.sent == content.count)
    try await bench.close()
  }

  @Test("bytes that a reader has got before it left are not fetched again")
  func leaving() async throws {
    struct Enough: Error {}
    let bench = try Bench(2_000_000)
    let content = Bench.content(2_000_000, 0)
    let request = HTTPTransportRequest(
      url: "http://a.example/film", headers: ["Range": "bytes=0-"])
    await #expect(throws: Enough.self) {
      try await bench.cache.stream(request) { _ in
      } body: { _ in
        throw Enough()
      }
    }
    // The question ends once its thread has heard of it; it keeps the part, then the response,
    // without which nobody finds the part.
    while try bench.cache.responses.count < 2 { try await Task.sleep(for: .milliseconds(1)) }
    let before = bench.sent
    #expect(before < 2_000_000)
    #expect(try await bench.ask("0-").body == content)
    #expect(bench.sent == 2_000_000)
    try await bench.close()
  }

  @Test(
    "parts whose response was given up alone go with the address, or with its next whole answer",
    arguments: ["0-999", "500-"], [true, false])
  func orphans(range: String, isRemoved: Bool) async throws {
    let bench = try Bench(10_000, HTTPCachePolicy(inlineBytes: 1_000))
    let responses = bench.cache.responses
    _ = try await bench.ask(range)
    #expect(try responses.count == 2)
    // As a cache does that makes room, where its parts were used later.
    #expect(try await responses.remove("http://a.example/film"))
    if isRemoved {
      try await bench.cache.remove("http://a.example/film")
    } else {
      _ = try await bench.ask()
    }
    #expect(try responses.count == (isRemoved ? 0 : 1))
    // Another user's content, of a server that gives it the same tag.
    let other = Bench.content(10_000, 5)
    bench.server.change { $0.content = other }
    if isRemoved {
      #expect(try await bench.ask("0-99").body == Array(other[0..<100]))
      #expect(try await bench.ask().body == other)
    }
    try await bench.close()
  }

  @Test("a content that changed is put together with nothing of the former one")
  func changing() async throws {
    let bench = try Bench(10_000)
    _ = try await bench.ask("0-4999")
    bench.server.change { $0 = RangeServer.State(content: Bench.content(9_000, 1), tag: "\"1\"") }
    let content = Bench.content(9_000, 1)
    #expect(try await bench.ask("1000-8000").body == content)
    #expect(try await bench.ask("1000-1999").body == Array(content[1_000..<2_000]))
    #expect(try bench.cache.responses.count == 1)
    try await bench.close()
  }

  @Test("parts stay within their bound, and what is left of them serves", arguments: [10, 11])
  func bound(step: Int) async throws {
    // Parts of ten bytes, one beside the other or with gaps between.
    let bench = try Bench(20_000)
    let content = Bench.content(20_000, 0)
    var random = SeededGenerator(seed: UInt64(step))
    for number in step == 10 ? Array(0..<300) : (0..<300).shuffled(using: &random) {
      let range = number * step..<number * step + 10
      let answer = try await bench.ask("\(range.lowerBound)-\(range.upperBound - 1)")
      #expect(answer.body == Array(content[range]))
      #expect(try bench.cache.responses.count <= ContentParts.most + 1)
    }
    // The shortest went where there were gaps; of neighbours nothing may be missing in the end.
    #expect(try await bench.ask("0-2999").body == Array(content[..<3_000]))
    #expect(bench.sent == 3_000 || step > 10)
    try await bench.close()
  }

  @Test("ranges that are asked for at a time are all kept")
  func concurrent() async throws {
    let bench = try Bench(64_000)
    let content = Bench.content(64_000, 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<16 {
        group.addTask {
          let range = number * 4_000..<(number + 1) * 4_000
          let answer = try await bench.ask("\(range.lowerBound)-\(range.upperBound - 1)")
          #expect(answer.body == Array(content[range]))
        }
      }
      try await group.waitForAll()
    }
    #expect(try await bench.ask().body == content)
    #expect(bench.sent == 64_000)
    #expect(try bench.cache.responses.count == 1)
    try await bench.close()
  }

  @Test("parts go with their response")
  func removing() async throws {
    let bench = try Bench(10_000)
    func fill() async throws {
      for start in [0, 2_000, 5_000] { _ = try await bench.ask("\(start)-\(start + 99)") }
      #expect(try bench.cache.responses.count == 4)
    }
    try await fill()
    try await bench.cache.remove("http://a.example/film")
    #expect(try bench.cache.responses.count == 0)
    try await fill()
    bench.server.change { $0.tag = "\"1\"" }
    _ = try await bench.ask("9000-9099")
    #expect(try bench.cache.responses.count == 2)
    try await bench.close()
  }

  @Test("a part that made room is fetched again")
  func evicted() async throws {
    let bench = try Bench(10_000)
    let content = Bench.content(10_000, 0)
    _ = try await bench.ask("0-999")
    _ = try await bench.ask("1000-1999")
    let parts = try bench.cache.responses.entries().map(\.key).filter {
      String(decoding: $0.bytes, as: UTF8.self).contains("#part-")
    }
    #expect(parts.count == 2)
    for part in parts {
      try await bench.cache.responses.remove(keys: [part])
      #expect(try await bench.ask("0-1999").body == Array(content[..<2_000]))
    }
    try await bench.close()
  }

  @Test(
    "bytes are right whatever is asked, changed, lost or broken off",
    arguments: 0..<6 as Range<UInt64>)
  func model(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let bench = try Bench(3_000, HTTPCachePolicy(capacity: 12, inlineBytes: 500))
    var versions = ["\"0\"": Bench.content(3_000, 0)]
    var current = "\"0\""
    for step in 0..<400 {
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        current = "\"\(versions.count)\""
        // Another length tells contents apart that tags alone would.
        let length = Bool.random(using: &random) ? 3_000 : Int.random(in: 1...4_000, using: &random)
        let content = Bench.content(length, versions.count)
        versions[current] = content
        bench.server.change { [current] state in (state.content, state.tag) = (content, current) }
      case 1: bench.server.change { $0.isUp.toggle() }
      case 2:
        let limit =
          Bool.random(using: &random) ? Int.max : Int.random(in: 0..<2_000, using: &random)
        bench.server.change { $0.breaksAfter = limit }
      case 3: bench.cache.isOffline.toggle()
      case 4:
        let control = ["max-age=600", "max-age=0", "no-cache", "no-store"].randomElement(
          using: &random)
        bench.server.change { $0.control = control ?? "" }
      default: break
      }
      let first = Int.random(in: 0..<3_500, using: &random)
      let last = first + Int.random(in: 0..<1_500, using: &random)
      let range = ["\(first)-\(last)", "\(first)-", "-\(first)", nil].randomElement(using: &random)
      guard let range, let answer = try? await bench.ask(range) else { continue }
      let text = Comment("seed \(seed), step \(step), \(range ?? "all")")
      guard answer.status == 200 || answer.status == 206 else { continue }
      let content = try #require(versions[answer.headers["etag"] ?? ""], text)
      #expect(answer.headers["content-length"] == "\(answer.body.count)", text)
      guard answer.status == 206 else {
        #expect(answer.body == content, text)
        continue
      }
      let told = try #require(ContentRange(answer.headers["content-range"]), text)
      #expect(told.total == content.count && answer.body == Array(content[told.range]), text)
      let asked = try #require(range.flatMap { ByteRange("bytes=\($0)") }, text)
      #expect(asked.resolved(in: content.count)?.lowerBound == told.range.lowerBound, text)
    }
    try await bench.close()
  }

  @Test(
    "text that is no range is none",
    arguments: [
      "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=1-2,4-5", "lines=1-2",
      "bytes=--1", "bytes=1-2-3", "bytes=+1-2", "bytes=99999999999999999999-", "bytes 1-2",
    ])
  func noRanges(text: String) { #expect(ByteRange(text) == nil) }

  @Test(
    "text that is no range of a content is none",
    arguments: [
      "", "bytes", "bytes */10", "bytes 0-1/*", "bytes 5-2/10", "bytes 0-10/10", "bytes 0-1",
      "lines 0-1/10", "bytes -1-2/10", "bytes 0-1/99999999999999999999", "bytes 0-1/10/10",
    ])
  func noContentRanges(text: String) { #expect(ContentRange(text) == nil) }
}
