import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkHTTP
import TidemarkTestKit

@testable import TidemarkHTTPCache

#if !canImport(Darwin)
  import FoundationNetworking
#endif

@Suite("HTTP cache") struct HTTPCacheTests {
  @Test("long bodies are attachments, streamed both ways, and a 304 keeps them")
  func longBodies() async throws {
    let bench = try CacheBench(HTTPCachePolicy(inlineBytes: 1_000))
    let body = String(repeating: "0123456789", count: 200_000)
    bench.origin.say(
      Said(headers: ["Cache-Control": "max-age=10", "ETag": "\"a\""], body: body))
    #expect(try await bench.ask().body.count == 2_000_000)
    #expect(try bench.store.attachmentUsage().count == 1)
    #expect(try await String(decoding: bench.ask().body, as: UTF8.self) == body)
    bench.clock.advance(by: .seconds(20))
    bench.origin.say(
      Said(status: 304, headers: ["Cache-Control": "max-age=10", "ETag": "\"a\""]))
    #expect(try await bench.ask().body.count == 2_000_000)
    let pieces = Lock<[Int]>([])
    try await bench.cache.stream(HTTPTransportRequest(url: bench.origin.url + "/a")) { _ in
    } body: { bytes in
      pieces.withLock { $0.append(bytes.count) }
    }
    #expect(pieces.withLock { $0.count } > 1)
    #expect(pieces.withLock { $0.reduce(0, +) } == 2_000_000)
    #expect(bench.origin.received.count == 2)
    #expect(bench.cache.counts.revalidated == 1)
    try await bench.close()
  }

  @Test("bodies beyond the bound are handed on and not kept")
  func hugeBodies() async throws {
    let bench = try CacheBench(HTTPCachePolicy(inlineBytes: 10, mostBodyBytes: 100))
    for _ in 0..<2 {
      bench.origin.say(
        Said(
          headers: ["Cache-Control": "max-age=10"], body: String(repeating: "x", count: 5_000)))
      #expect(try await bench.ask().body.count == 5_000)
    }
    #expect(bench.cache.counts.storeFailures == 2)
    #expect(try bench.store.sweepAttachmentsNow() == 0)
    try await bench.close()
  }

  @Test("10,000 variants of one address stay within the bound, and other responses stay")
  func variants() async throws {
    let bench = try CacheBench()
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=9999"], body: "other"))
    _ = try await bench.ask("/other")
    for number in 0..<10_000 {
      bench.origin.say(
        Said(headers: ["Cache-Control": "max-age=9999", "Vary": "X-A"], body: "\(number)"))
      _ = try await bench.ask("/a", ["X-A": "\(number)"])
    }
    #expect(try bench.cache.responses.count <= 34)
    #expect(try await bench.ask("/a", ["X-A": "9999"]).body == Array("9999".utf8))
    #expect(try await bench.ask("/other").body == Array("other".utf8))
    #expect(bench.origin.received.count == 10_001)
    try await bench.close()
  }

  @Test("a megabyte of Vary is handed on and not kept")
  func hugeVary() async throws {
    let bench = try CacheBench()
    // Longer lines are refused by the transport.
    let names = (0..<9_000).map { "X-\($0)" }.joined(separator: ", ")
    for _ in 0..<2 {
      bench.origin.say(
        Said(headers: ["Cache-Control": "max-age=60", "Vary": names], body: "1"))
      #expect(try await bench.ask().body == Array("1".utf8))
    }
    #expect(try bench.cache.responses.count == 0)
    let huge = String(repeating: "x, ", count: 350_000)
    bench.origin.say(Said(headers: ["Vary": huge], body: "1"))
    await #expect(throws: (any Error).self) { try await bench.ask() }
    try await bench.close()
  }

  @Test("requests that are alike go to the server once")
  func sharing() async throws {
    let bench = try CacheBench()
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<20 { group.addTask { try await bench.ask().body } }
      for try await body in group { #expect(body == Array("1".utf8)) }
    }
    #expect(bench.origin.received.count == 1)
    try await bench.close()
  }

  @Test(
    "a response that has come since a reader looked is read, and its server is not asked again",
    arguments: [false, true])
  func overtaken(isStale: Bool) async throws {
    let bench = try CacheBench()
    let (store, clock, address) = (bench.store, bench.clock, bench.origin.url + "/a")
    let isAhead = Lock(false)
    // Whether there is a network is asked right behind the look.
    let cache = try HTTPCache(
      store: store,
      isOnline: {
        let isAhead = isAhead.withLock { isAhead in
          defer { isAhead = false }
          return isAhead
        }
        guard isAhead else { return true }
        let now = clock.now().milliseconds
        let response = StoredResponse(
          status: 200, headers: ["cache-control": "max-age=60"], requestTime: now,
          responseTime: now, body: Array("2".utf8))
        #expect(throws: Never.self) {
          try store.cache(prefix: "http/").blocking.put(address, response.encoded() ?? [])
        }
        return true
      })
    let request = HTTPTransportRequest(url: address)
    if isStale {
      let control = "max-age=10, stale-while-revalidate=100"
      bench.origin.say(Said(headers: ["Cache-Control": control], body: "1"))
      _ = try await cache.answer(to: request, limit: 10)
      clock.advance(by: .seconds(20))
    }
    isAhead.withLock { $0 = true }
    let body = try await cache.answer(to: request, limit: 10).body
    #expect(body == Array((isStale ? "1" : "2").utf8))
    await cache.waitForRefreshes()
    #expect(try await cache.answer(to: request, limit: 10).body == Array("2".utf8))
    #expect(bench.origin.received.count == (isStale ? 1 : 0))
    await cache.close()
    try await bench.close()
  }

  @Test("responses stay when the store is opened again")
  func reopening() async throws {
    let clock = ManualClock()
    let disk = SimulatedFileSystem(seed: 1)
    let origin = try ScriptedOrigin(clock)
    func open() throws -> Store {
      try Store.openBlocking(
        at: "store",
        configuration: Store.Configuration(
          environment: Store.Environment(
            fileSystem: disk, clock: clock, random: SeededRandom(seed: 2)),
          usesThreads: false))
    }
    let request = HTTPTransportRequest(url: origin.url)
    origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
    var store = try open()
    var cache = try HTTPCache(store: store)
    _ = try await cache.answer(to: request, limit: 10)
    await cache.close()
    try await store.close()
    store = try open()
    cache = try HTTPCache(store: store)
    #expect(try await cache.answer(to: request, limit: 10).body == Array("1".utf8))
    #expect(origin.received.count == 1)
    await cache.close()
    try await store.close()
    origin.stop()
  }

  @Test("a disk that is full costs no answer")
  func fullDisk() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let bench = try CacheBench(on: disk)
    disk.capacity = disk.usedBytes
    for _ in 0..<2 {
      bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
      #expect(try await bench.ask().body == Array("1".utf8))
    }
    #expect(bench.cache.counts.storeFailures == 2)
    await bench.cache.close()
    bench.origin.stop()
  }

  @Test("bytes that are no response are asked for anew")
  func damagedRecords() async throws {
    let bench = try CacheBench()
    let key = Key("http://\(bench.origin.url.dropFirst(7))/a")
    for bytes in [
      "", "tidemark-http 1\n", "tidemark-http-vary 1\n", "tidemark-http 1\n200 1 x\n\n",
    ] {
      try await bench.cache.responses.put(key, Array(bytes.utf8))
      bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
      #expect(try await bench.ask().body == Array("1".utf8))
    }
    #expect(bench.origin.received.count == 4)
    try await bench.close()
  }

  @Test("an entry of the user's own under the prefix stays, and answers nothing")
  func owned() async throws {
    let bench = try CacheBench()
    let key = "http/\(bench.origin.url)/a"
    try await bench.store.put(key, "mine")
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
    #expect(try await bench.ask().body == Array("1".utf8))
    #expect(try bench.store.value(forKey: key) == Array("mine".utf8))
    try await bench.close()
  }

  @Test(
    "addresses of any length and with characters that none should have are kept",
    arguments: [
      "/" + String(repeating: "x", count: 2_100), "/?q=" + String(repeating: "y", count: 9_000),
      "/a|b", "/{id}", "/a^b`c\\", "/x?a=<1>&b=\"2\"",
    ])
  func oddAddresses(path: String) async throws {
    let bench = try CacheBench()
    let headers = ["Cache-Control": "max-age=60", "Vary": "X-A"]
    bench.origin.say(Said(headers: headers, body: "1"))
    bench.origin.say(Said(headers: headers, body: "2"))
    for _ in 0..<2 {
      #expect(try await bench.ask(path).body == Array("1".utf8))
      #expect(try await bench.ask(path + "z").body == Array("2".utf8))
    }
    #expect(bench.origin.received.count == 2)
    try await bench.cache.remove(bench.origin.url + path)
    bench.origin.say(Said(headers: headers, body: "3"))
    #expect(try await bench.ask(path).body == Array("3".utf8))
    #expect(try await bench.ask(path + "z").body == Array("2".utf8))
    try await bench.close()
  }

  @Test("an answer says that the cache has no part in its address")
  func noAddresses() async throws {
    let bench = try HeldBench()
    for (number, url) in ["http://me@a.example/", "http://a.example/\u{e9}", "ftp://a/"]
      .enumerated()
    {
      bench.transport.answer(number, "1", ["cache-control": "max-age=60"])
      let answer = try await bench.cache.answer(to: HTTPTransportRequest(url: url), limit: 9)
      #expect(answer.headers["cache-status"] == "Tidemark; fwd=bypass; detail=address")
    }
    #expect(try bench.cache.responses.count == 0)
    try await bench.close()
  }

  @Test("a cache is marked stale by server and answers only after asking")
  func marking() async throws {
    let bench = try CacheBench()
    let headers = ["Cache-Control": "max-age=600", "ETag": "\"a\""]
    bench.origin.say(Said(headers: headers, body: "1"))
    _ = try await bench.ask()
    let server = String(bench.origin.url.dropFirst(7))
    try await bench.cache.responses.markStale(labels: LabelFilter(all: [EntryLabel(server)]))
    bench.origin.say(Said(status: 304, headers: headers))
    #expect(try await bench.ask().body == Array("1".utf8))
    #expect(try await bench.ask().body == Array("1".utf8))
    #expect(bench.origin.received.count == 2)
    try await bench.close()
  }

  @Test("data(for:) follows redirects through the cache")
  func redirects() async throws {
    let bench = try CacheBench()
    bench.origin.say(Said(status: 301, headers: ["Location": "/b", "Cache-Control": "max-age=9"]))
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=9"], body: "there"))
    let url = try #require(URL(string: bench.origin.url + "/a"))
    for _ in 0..<2 {
      let (data, response) = try await bench.cache.data(from: url)
      #expect(data == Data("there".utf8))
      #expect(response.statusCode == 200)
      #expect(response.url?.path == "/b")
    }
    #expect(bench.origin.received.count == 2)
    try await bench.close()
  }

  @Test("data(for:) heeds the cache policy of a request")
  func cachePolicies() async throws {
    let bench = try CacheBench()
    let url = try #require(URL(string: bench.origin.url + "/a"))
    var request = URLRequest(url: url)
    request.cachePolicy = .returnCacheDataDontLoad
    let missing = request
    await #expect(throws: URLError.self) { try await bench.cache.data(for: missing) }
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=1"], body: "1"))
    _ = try await bench.cache.data(from: url)
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.cache.data(for: request).0 == Data("1".utf8))
    request.cachePolicy = .returnCacheDataElseLoad
    #expect(try await bench.cache.data(for: request).0 == Data("1".utf8))
    request.cachePolicy = .reloadIgnoringLocalCacheData
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "2"))
    #expect(try await bench.cache.data(for: request).0 == Data("2".utf8))
    try await bench.close()
  }

  @Test("cookies reach the reader for whom the server was asked, and nobody else")
  func cookies() async throws {
    let bench = try CacheBench()
    func say(_ status: Int, _ cookie: String, _ body: String = "", _ range: String = "-") {
      bench.origin.say(
        Said(
          status: status,
          headers: [
            "Cache-Control": "max-age=1", "ETag": "\"a\"", "Set-Cookie": cookie,
            "Content-Range": range,
          ], body: body))
    }
    func ask(_ path: String, _ range: String? = nil) async throws -> [String] {
      try await bench.ask(path, range.map { ["Range": "bytes=\($0)"] } ?? [:]).setCookies
    }
    say(200, "new=1", "01")
    #expect(try await ask("/a") == ["new=1"])
    #expect(try await ask("/a") == [])
    bench.clock.advance(by: .seconds(2))
    say(304, "confirmed=1; Path=/")
    #expect(try await ask("/a") == ["confirmed=1; Path=/"])
    #expect(try await ask("/a") == [])
    say(206, "part=1", "0", "bytes 0-0/3")
    #expect(try await ask("/p", "0-0") == ["part=1"])
    say(206, "range=1", "1", "bytes 1-1/3")
    #expect(try await ask("/p", "0-1") == ["range=1"])
    say(206, "whole=1", "2", "bytes 2-2/3")
    #expect(try await ask("/p") == ["whole=1"])
    #expect(try await ask("/p") == [])
    try await bench.close()
  }

  @Test("endless redirects end")
  func endlessRedirects() async throws {
    let bench = try CacheBench()
    bench.origin.say(
      Said(status: 308, headers: ["Location": "/a", "Cache-Control": "max-age=9"]))
    let url = try #require(URL(string: bench.origin.url + "/a"))
    await #expect(throws: URLError.self) { try await bench.cache.data(from: url) }
    #expect(bench.origin.received.count == 1)
    try await bench.close()
  }

  @Test("a reader that throws ends the exchange, and others get a whole answer")
  func throwingReaders() async throws {
    struct Enough: Error {}
    let bench = try CacheBench()
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
    await #expect(throws: Enough.self) {
      try await bench.cache.stream(HTTPTransportRequest(url: bench.origin.url + "/a")) { _ in
      } body: { _ in
        throw Enough()
      }
    }
    // All of it may have come, and been kept, before the reader threw.
    bench.origin.say(Said(headers: ["Cache-Control": "max-age=60"], body: "1"))
    #expect(try await bench.ask().body == Array("1".utf8))
    try await bench.close()
  }

  @Test("records and directives stand whatever bytes come")
  func hostileBytes() {
    var random = SeededGenerator(seed: 20_261_124)
    let alphabet = Array("tidemark-http 1\n:,=\"\\max-age no-store*; 0123456789\u{7f}\u{ff}".utf8)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...80, using: &random)
      let bytes = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
      let text = String(decoding: bytes, as: UTF8.self)
      _ = CacheControl(text).seconds("max-age")
      _ = StoredResponse(Array("tidemark-http 1\n".utf8) + bytes)
      _ = StoredResponse(
        Array("tidemark-http-parts 1\n200 1 1\netag: \"a\"\ncontent-length: 9\n\n".utf8) + bytes)
      _ = ByteRange(text)?.resolved(in: 9)
      _ = ContentRange("bytes " + text)
      _ = Variants(Array("tidemark-http-vary 1\n".utf8) + bytes)
      let response = StoredResponse(
        status: 200, headers: ["cache-control": text, "etag": text, "age": text, "date": text],
        requestTime: .min, responseTime: .max)
      _ = Freshness(response, now: .min)
      _ = Preconditions.isMet(by: response, ["if-none-match": text])
    }
  }
}

extension Store {
  /// How many attachments stay after a sweep.
  fileprivate func sweepAttachmentsNow() throws -> Int {
    _ = try blocking.sweepAttachments()
    return try attachmentUsage().count
  }
}
