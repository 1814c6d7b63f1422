import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("A database over the years")
struct UpkeepTests {
  private func count(_ type: RecordType, _ bench: Bench) throws -> Int {
    try bench.withEngine { engine in
      var cursor = LogCursor(
        engine.reader, from: 1, through: engine.reader.lastSequence, includesRecords: true)
      var found = 0
      while let entry = try cursor.next() {
        if try entry.attributes().recordType == type.rawValue { found += 1 }
      }
      return found
    }
  }

  @Test("a change that lost to another writer goes with the history that it is part of")
  func losers() throws {
    let bench = Bench()
    try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("k", "a", at: 50))
    #expect(try bench.push(&b, b.put("k", "b", at: 40)).map(\.name) == ["lost"])
    _ = try bench.push(&a, a.put("l", "a", at: 60))
    #expect(try count(.loser, bench) == 1)
    try bench.handler().compact()
    #expect(try count(.loser, bench) == 1)
    bench.clock.advance(by: .seconds(100))
    try bench.use(bench.configuration(retention: Retention(age: .seconds(10))))
    try bench.handler().compact()
    #expect(try count(.loser, bench) == 0)
    #expect(try bench.value("k") == "a")
  }

  @Test("a lease of the time when they had no end gets one")
  func endless() throws {
    let bench = Bench(options: SyncHandler.Options(lease: nil))
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    _ = try bench.handler().hello(HelloRequest(replica: a.id, cursor: .beginning))
    try bench.close()
    bench.options.lease = .seconds(1000)
    let end = bench.clock.now().sinceEpoch + 1_000_000
    func expires() throws -> UInt64? { try bench.look(at: a.id).lease?.expires }
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
    let feed = try bench.feed()
    var cursor = FeedPosition.beginning
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

  @Test("each of several losers of a key is kept as long as the history")
  func manyLosers() throws {
    let bench = Bench()
    try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("k", "a", at: 50))
    for (seconds, text) in [(30, "x"), (40, "y"), (45, "")] as [(UInt64, String)] {
      #expect(try bench.push(&b, b.put("k", text, at: seconds)).map(\.name) == ["lost"])
    }
    try bench.handler().compact()
    #expect(try count(.loser, bench) == 3)
    bench.clock.advance(by: .seconds(100))
    try bench.use(bench.configuration(retention: Retention(age: .seconds(10))))
    try bench.handler().compact()
    #expect(try count(.loser, bench) == 0)
  }

  private func upload(_ bench: Bench) throws -> Int {
    try bench.attach(Device(1), content(300_000), 0..<3 * AttachRequest.partBytes).received
  }

  @Test("an abandoned upload goes also when the clock was far ahead when it came")
  func clockAhead() throws {
    let bench = Bench()
    bench.clock.jump(by: .seconds(400 * 86_400))
    #expect(try upload(bench) == 3 * AttachRequest.partBytes)
    bench.clock.jump(by: .seconds(-400 * 86_400))
    try bench.close()
    #expect(try bench.feed().uploads.uploads.withLock { $0.count } == 1)
    bench.clock.advance(by: .seconds(8 * 86_400))
    try bench.handler().compact()
    #expect(try bench.feed().uploads.uploads.withLock { $0.count } == 0)
  }

  @Test("an abandoned upload makes a compaction worth while")
  func worth() throws {
    let bench = Bench()
    #expect(try upload(bench) == 3 * AttachRequest.partBytes)
    let fresh = try bench.handler().space(from: 1).reclaimable
    bench.clock.advance(by: .seconds(8 * 86_400))
    #expect(try bench.handler().space(from: 1).reclaimable > fresh)
    try bench.handler().compact()
    #expect(try bench.handler().space(from: 1).reclaimable <= fresh)
  }

  @Test("a reader that goes further than somebody wants is not lent to him")
  func readers() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, all: (0..<60).map { a.put("k\($0)", "1") })
    let feed = try bench.feed()
    let end = try bench.look().range.head
    let first = try feed.read(FeedQuery(after: 1, through: end, limit: 10))
    #expect(first.through < 30)
    var through: UInt64 = 1
    while through < 30 {
      let page = try feed.read(FeedQuery(after: through, through: 30, limit: 10))
      #expect(page.through <= 30 && page.rows.allSatisfy { $0.head.offset <= 30 })
      through = page.through
    }
    #expect(through == 30)
  }
}
