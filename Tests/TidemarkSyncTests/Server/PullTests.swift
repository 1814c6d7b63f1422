import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Reading the feed")
struct PullTests {
  @Test("pages hold what fits by bytes and by count, and lose nothing", arguments: [false, true])
  func paging(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    var a = Device(1)
    for i in 0..<6 {
      _ = try bench.push(
        &a, all: (0..<10).map { a.put("k\(i)-\($0)", String(repeating: "v", count: 1000)) })
    }
    _ = try bench.push(&a, a.put("large", String(repeating: "v", count: 50_000)))
    let reader = Device(2)
    let all = try bench.pullAll(reader)
    #expect(all.entries.count == 61 && all.pages == 1)
    let byBytes = try bench.pullAll(reader, limits: SyncLimits(bytes: 5000))
    #expect(byBytes.entries == all.entries && byBytes.pages >= 61 / 5)
    let byCount = try bench.pullAll(reader, limits: SyncLimits(changes: 7))
    #expect(byCount.entries == all.entries && byCount.pages >= 61 / 7)
    let tiny = try bench.pullAll(reader, limits: SyncLimits(changes: 0, bytes: -5))
    #expect(tiny.entries == all.entries && tiny.pages >= 61)
    let huge = try bench.pullAll(reader, limits: SyncLimits(changes: .max, bytes: .max))
    #expect(huge.entries == all.entries)
  }

  @Test("a pull that goes on looks at nothing twice, and acknowledges nothing by that")
  func goesOn() throws {
    let bench = Bench()
    var writer = Device(1)
    let reader = Device(2)
    let handler = try bench.handler()
    _ = try handler.hello(HelloRequest(replica: reader.id))
    _ = try bench.push(&writer, writer.put("theirs/1", "v"), writer.put("theirs/2", "v"))
    var request = PullRequest(
      replica: reader.id, after: .beginning, scope: SyncScope(keyPrefixes: ["mine"]))
    let empty = try handler.pull(request)
    #expect(empty.entries.isEmpty && empty.cursor == empty.range.headPosition)
    _ = try bench.push(&writer, writer.put("mine/1", "v"))
    // With another scope it would find more, if it looked there.
    request.scope = .everything
    func keys(lookedThrough: FeedPosition) throws -> [String] {
      let answer = try handler.stage(.pullRequest(request), lookedThrough: lookedThrough)
      guard case .pullAnswer(let page) = answer.message else { return [] }
      #expect(page.cursor == page.range.headPosition)
      return page.entries.map { String(decoding: $0.key, as: UTF8.self) }
    }
    #expect(try keys(lookedThrough: empty.cursor) == ["mine/1"])
    #expect(try bench.look(at: reader.id).lease?.cursor == .beginning)
    let strange = FeedPosition(epoch: empty.cursor.epoch ^ 1, offset: empty.cursor.offset)
    #expect(try keys(lookedThrough: strange) == ["theirs/1", "theirs/2", "mine/1"])
  }

  @Test("labels count when a page or an answer about keys is filled")
  func labelsCount() throws {
    let bench = Bench()
    var a = Device(1)
    let labels = (0..<8).map { EntryLabel(Array(repeating: UInt8($0), count: 250)) }
    _ = try bench.push(&a, all: (0..<10).map { a.put("k\($0)", "v", labels: labels) })
    let pages = try bench.pullAll(Device(2), limits: SyncLimits(bytes: 5000))
    #expect(pages.entries.count == 10 && pages.pages == 5)
    bench.options.limits.bytes = 5000
    try bench.close()
    let answer = try bench.handler().values(
      ValuesRequest(replica: a.id, keys: (0..<10).map { Array("k\($0)".utf8) }))
    #expect(answer.answered == 2)
  }

  @Test("own operations come without key and value; touches and records do not come at all")
  func own() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    let labels: [EntryLabel] = ["x"]
    _ = try bench.push(&a, a.put("k", "1", labels: labels, at: 7))
    _ = try bench.push(&b, b.put("l", "2"))
    try bench.withEngine { engine in
      var batch = OperationBatch()
      try batch.add(.touch, key: Array("k".utf8).rawSpan)
      var cached = EntryAttributes()
      cached.entryClass = .cache
      try batch.add(
        .put, key: Array("cached".utf8).rawSpan, value: [1].rawSpan, attributes: cached)
      try engine.commit(batch)
    }
    let entries = try bench.pullAll(a).entries
    #expect(entries.map(\.kind) == [.own, .put])
    #expect(
      entries[0].key.isEmpty && entries[0].operation == OperationID(replica: a.id, sequence: 1))
    let others = try bench.pullAll(b).entries
    #expect(others.map(\.kind) == [.put, .own])
    #expect(others[0].content == SyncContent(value: Array("1".utf8), labels: labels))
    #expect(others[0].commitTime == Device.time(7))
  }

  @Test("hash, validity and own time travel")
  func attributes() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    var change = a.put("k", "1")
    change.content.hash = Array("W/\"1\"".utf8)
    change.content.maxAgeSeconds = 60
    change.time = Timestamp(seconds: -5, nanoseconds: 7)
    _ = try bench.push(&a, change)
    let entry = try #require(try bench.pullAll(Device(2)).entries.first)
    #expect(entry.content == change.content && entry.time == change.time)
    let value = try bench.handler().values(
      ValuesRequest(replica: a.id, keys: [change.key])
    ).entries
    #expect(value == [entry])
  }

  @Test("a scope gets what matches, and `left` for what no longer does")
  func scope() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(
      &a, a.put("n/1", "1", labels: ["x"]), a.put("n/2", "1", labels: ["y"]),
      a.put("m/1", "1"))
    _ = try bench.push(
      &a, a.put("n/1", "2", labels: ["y"], base: .operation(sequence: 1)),
      a.put("n/2", "2", labels: ["x"], base: .operation(sequence: 2)),
      a.delete("n/2", base: .operation(sequence: 5)), a.delete("m/1", base: .absent))
    let reader = Device(2)
    let labelled = try bench.pullAll(reader, scope: SyncScope(labels: ["x"])).entries
    #expect(labelled.map(\.kind) == [.put, .left, .put, .delete])
    #expect(labelled[1].key == Array("n/1".utf8) && labelled[1].content == SyncContent())
    let prefixed = try bench.pullAll(
      reader, scope: SyncScope(keyPrefixes: ["m/"])
    ).entries
    #expect(prefixed.map(\.kind) == [.delete], "by its key it is told of in any case")
  }

  @Test("cursors that the feed never gave out, or that a crash took back, are refused")
  func cursors() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    let head = try bench.pullAll(a).cursor
    for cursor in [
      FeedPosition(epoch: head.epoch, offset: head.offset + 1),
      FeedPosition(epoch: head.epoch &+ 1, offset: head.offset), FeedPosition(epoch: 0, offset: 1),
      FeedPosition(epoch: head.epoch, offset: 0), FeedPosition(epoch: .max, offset: .max),
    ] {
      #expect(
        failure { _ = try bench.handler().pull(PullRequest(replica: a.id, after: cursor)) }
          == .cursorGone, "\(cursor)")
    }
    #expect(try bench.handler().pull(PullRequest(replica: a.id, after: head)).entries.isEmpty)
  }

  @Test("after compaction a reader still gets the last change of every key, in order")
  func compacted() throws {
    let bench = Bench()
    var a = Device(1)
    for i in 0..<30 { _ = try bench.push(&a, a.put("k\(i % 10)", "\(i)"), a.put("o\(i)", "x")) }
    let middle = try bench.pullAll(
      Device(2), limits: SyncLimits(changes: 30), everyVersion: true
    ).entries[30].position
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    let entries = try bench.pullAll(Device(2), after: middle).entries
    #expect(entries.map(\.position.offset) == entries.map(\.position.offset).sorted())
    for i in 0..<10 {
      let last = entries.last { $0.key == Array("k\(i)".utf8) }
      #expect(last?.content.value == Array("\(20 + i)".utf8))
    }
  }

  @Test("a new device gets one version of each key, and as many pages as those fill")
  func oneVersion() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    for i in 0..<60 { _ = try bench.push(&a, a.put("k\(i % 6)", "\(i)"), a.put("o\(i % 2)", "x")) }
    _ = try bench.push(&a, a.delete("k0", base: .absent))
    let limits = SyncLimits(changes: 3)
    let found = try bench.pullAll(Device(2), limits: limits)
    #expect(found.entries.count == 8 && found.pages <= 4)
    let values = found.entries.map { String(decoding: $0.content.value, as: UTF8.self) }
    #expect(values.sorted() == ["", "55", "56", "57", "58", "59", "x", "x"])
    #expect(found.entries.last?.kind == .delete)
    let all = try bench.pullAll(Device(2), limits: limits, everyVersion: true)
    #expect(all.entries.count == 63 && all.cursor == found.cursor)
    #expect(try bench.pullAll(a, limits: limits).entries.count == 63, "own operations are told of")
  }

  @Test("an entry that a key has left the scope with is told of, whatever came behind it")
  func leftBeforeMore() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1", labels: ["x"]))
    let reader = Device(2)
    let scope = SyncScope(labels: ["x"])
    let cursor = try bench.pullAll(reader, scope: scope).cursor
    for number in 2..<5 {
      _ = try bench.push(&a, a.put("k", "\(number)", labels: ["y"]))
    }
    let left = try bench.pullAll(reader, after: cursor, scope: scope).entries
    #expect(left.map(\.kind) == [.left])
    _ = try bench.push(&a, a.put("k", "5", labels: ["x"]), a.put("k", "6", labels: ["x"]))
    let back = try bench.pullAll(reader, after: cursor, scope: scope).entries
    #expect(back.map(\.kind) == [.put] && back[0].content.value == Array("6".utf8))
  }

  @Test("values of keys come page by page; what is absent is left out")
  func values() throws {
    let bench = Bench(options: SyncHandler.Options(limits: SyncLimits(changes: 10, bytes: 2500)))
    var a = Device(1)
    for i in 0..<8 { _ = try bench.push(&a, a.put("k\(i)", String(repeating: "v", count: 1000))) }
    _ = try bench.push(&a, a.delete("k0", base: .operation(sequence: 1)))
    let keys = (["k0", "none", "", "k1", "k2", "k3"] + (4..<20).map { "k\($0)" }).map {
      Array($0.utf8)
    }
    var entries: [FeedEntry] = []
    var answered = 0
    var calls = 0
    while answered < keys.count {
      let answer = try bench.handler().values(
        ValuesRequest(replica: a.id, keys: Array(keys[answered...])))
      try #require(answer.answered > 0)
      entries += answer.entries
      answered += answer.answered
      calls += 1
    }
    #expect(entries.count == 8 && entries[0].kind == .delete && calls >= 4)
  }
}
