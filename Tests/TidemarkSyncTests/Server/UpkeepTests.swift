import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("What a database keeps over the years")
struct UpkeepTests {
  private func count(_ type: RecordType, _ bench: Bench) throws -> Int {
    try bench.withEngine { engine in
      var cursor = LogCursor(engine, from: 1, through: engine.lastSequence, includesRecords: true)
      var found = 0
      while let entry = try cursor.next() {
        if try entry.attributes().recordType == type.rawValue { found += 1 }
      }
      return found
    }
  }

  @Test("what has lost to another writer goes with the history that it is part of")
  func losers() throws {
    let bench = Bench()
    try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: [])
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("k", "a", at: 50))
    #expect(try bench.push(&b, b.put("k", "b", at: 40)).map(\.name) == ["lost"])
    _ = try bench.push(&a, a.put("l", "a", at: 60))
    #expect(try count(.loser, bench) == 1)
    try bench.handler().compact()
    #expect(try count(.loser, bench) == 1)
    bench.clock.advance(by: .seconds(100))
    try bench.use(bench.configuration(retention: Retention(ageSeconds: 10)))
    try bench.handler().compact()
    #expect(try count(.loser, bench) == 0)
    #expect(try bench.value("k") == "a")
  }

  @Test("a lease of the time when they had no end gets one")
  func endless() throws {
    let bench = Bench(options: SyncHandler.Options(leaseSeconds: nil))
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    _ = try bench.handler().hello(HelloRequest(replica: a.id, cursor: .beginning))
    try bench.close()
    bench.options.leaseSeconds = 1000
    let end = bench.clock.now().sinceEpoch + 1_000_000
    func expires() throws -> UInt64? {
      try bench.handler().state.withLock { $0.leases[a.id]?.expires }
    }
    #expect(try expires() == .max)
    try bench.handler().compact()
    #expect(try expires() == end)
    try bench.close()
    #expect(try expires() == end)
    bench.clock.advance(by: .seconds(2000))
    try bench.handler().compact()
    #expect(try expires() == nil)
  }

  @Test("pages of a compacted feed are read on, not each from the start of its file")
  func pages() throws {
    let bench = Bench()
    var a = Device(1)
    for round in 0..<10 {
      _ = try bench.push(&a, all: (0..<100).map { a.put("k\((37 * $0) % 100) \(round)", "1") })
    }
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    let feed = try #require(try bench.handler().feed as? StoreFeed)
    var cursor = Position.beginning
    var keys: [[UInt8]] = []
    while true {
      let page = try bench.handler().pull(
        PullRequest(replica: Device(2).id, after: cursor, limits: SyncLimits(changes: 30)))
      keys += page.entries.map(\.key)
      cursor = page.cursor
      if cursor.offset >= page.range.head { break }
      #expect(feed.readers.withLock { $0.count } == 1)
    }
    #expect(keys.count == 1000 && Set(keys).count == 1000)
    // Somebody else begins anew, and what comes later is found.
    _ = try bench.push(&a, a.put("last", "1"))
    #expect(try bench.pullAll(Device(3)).entries.count == 1001)
    let rest = try bench.handler().pull(PullRequest(replica: Device(2).id, after: cursor))
    #expect(rest.entries.map(\.key) == [Array("last".utf8)])
  }
}
