import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Comparing two feeds by sums")
struct DigestTests {
  private func filled(_ bench: Bench, _ keys: Int, changing: Set<Int> = []) throws -> Bench {
    var a = Device(1)
    for start in stride(from: 0, to: keys, by: 1000) {
      let changes = (start..<min(start + 1000, keys)).map {
        a.put("key/\($0)", changing.contains($0) ? "other" : "value \($0)", labels: ["l"])
      }
      _ = try bench.push(&a, all: changes)
    }
    return bench
  }

  private func digest(
    _ bench: Bench, _ path: [UInt8] = [], scope: SyncScope = .everything
  ) throws -> DigestPart {
    try #require(answer(bench, [path], scope: scope).parts.first)
  }

  private func answer(
    _ bench: Bench, _ paths: [[UInt8]] = [[]], scope: SyncScope = .everything
  ) throws -> DigestAnswer {
    try bench.handler().digest(
      DigestRequest(replica: Device(8).id, scope: scope, paths: paths))
  }

  /// The keys that differ, found as a client finds them, and how many questions that took.
  private func differences(_ a: Bench, _ b: Bench) throws -> (keys: Set<[UInt8]>, calls: Int) {
    var found: Set<[UInt8]> = []
    var paths: [[UInt8]] = [[]]
    var calls = 0
    while let path = paths.popLast() {
      calls += 1
      let (left, right) = (try digest(a, path), try digest(b, path))
      if left.total == right.total { continue }
      switch (left.content, right.content) {
      case (.sums(let left), .sums(let right)):
        for i in 0..<256 where left[i] != right[i] { paths.append(path + [UInt8(i)]) }
      case (.keys(let left), .keys(let right)):
        func entries(_ keys: [DigestKey]) -> Set<UInt128> { Set(keys.map(\.fingerprint)) }
        let same = entries(left).intersection(entries(right))
        for key in left + right where !same.contains(key.fingerprint) { found.insert(key.key) }
      default: Issue.record("one side has few keys where the other has many")
      }
    }
    return (found, calls)
  }

  @Test("equal stores are found equal by one comparison, whatever order they were written in")
  func equal() throws {
    let one = try filled(Bench(), 3000)
    let two = Bench()
    var b = Device(5)
    for start in [2000, 0, 1000] {
      let changes = (start..<(start + 1000)).map {
        b.put("key/\($0)", "value \($0)", labels: ["l"])
      }
      _ = try two.push(&b, all: changes)
    }
    _ = try two.push(&b, b.put("gone", "x"))
    _ = try two.push(&b, b.delete("gone", base: .operation(sequence: b.sequence)))
    #expect(try digest(one).total == digest(two).total)
    #expect(try differences(one, two).calls == 1)
  }

  @Test("differences are found down to the key", arguments: [200, 3000])
  func unequal(count: Int) throws {
    let one = try filled(Bench(), count)
    let two = try filled(Bench(), count, changing: [7, count - 1])
    var b = Device(5)
    _ = try one.push(&b, b.put("only/here", "x"))
    let expected = Set(["key/7", "key/\(count - 1)", "only/here"].map { Array($0.utf8) })
    #expect(try differences(one, two).keys == expected)
  }

  @Test("labels count, and a scope sums what lies within")
  func labels() throws {
    let one = Bench()
    let two = Bench()
    var a = Device(1)
    _ = try one.push(&a, a.put("k", "v", labels: ["x"]), a.put("l", "v"))
    var b = Device(1)
    _ = try two.push(&b, b.put("k", "v", labels: ["y"]), b.put("l", "v"))
    #expect(try digest(one).total != digest(two).total)
    let scope = SyncScope(keyPrefixes: ["l"])
    #expect(try digest(one, scope: scope).total == digest(two, scope: scope).total)
    #expect(try digest(one, scope: SyncScope(labels: ["x"])).total.keys == 1)
    #expect(try digest(two, scope: SyncScope(labels: ["x"])).total.keys == 0)
  }

  @Test("keys come with the positions that a pull gives them, also after a touch")
  func positions() throws {
    let bench = try filled(Bench(), 12)
    try bench.withEngine { engine in
      var batch = OperationBatch()
      try batch.add(.touch, key: Array("key/3".utf8).rawSpan)
      try engine.commit(batch)
    }
    guard case .keys(let keys) = try digest(bench).content else {
      Issue.record("twelve keys are told one by one")
      return
    }
    let pulled = try bench.pullAll(Device(9)).entries
    #expect(
      Dictionary(uniqueKeysWithValues: keys.map { ($0.key, $0.position) })
        == Dictionary(uniqueKeysWithValues: pulled.map { ($0.key, $0.position) }))
  }

  @Test("a second question reads no value again, until something changes")
  func cached() throws {
    let bench = try filled(Bench(), 1000)
    let first = try answer(bench)
    let reads = bench.disk.calls(of: .read)
    _ = try bench.handler().hello(HelloRequest(replica: Device(7).id))
    let again = try answer(bench)
    #expect(again.parts == first.parts && again.position.offset == first.position.offset + 1)
    #expect(bench.disk.calls(of: .read) - reads < 10)
    var b = Device(5)
    _ = try bench.push(&b, b.put("key/1", "changed", base: .position(first.position)))
    #expect(try answer(bench).parts == first.parts, "a conflict changes nothing")
    _ = try bench.push(&b, b.put("key/new", "x"))
    #expect(try digest(bench).total.keys == 1001)
  }

  @Test("a delete that was dropped since the last question counts")
  func droppedDelete() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"), a.put("l", "1"))
    let before = try digest(bench)
    #expect(before.total.keys == 2)
    _ = try bench.push(&a, a.delete("k", base: .operation(sequence: 1)))
    try bench.handler().forget(a.id)
    // The handler goes on, with what it remembers.
    try bench.feed().engine.compact(CompactionOptions(dropHistory: true))
    #expect(try bench.look().range.truncatedThrough > 0)
    #expect(try digest(bench).total.keys == 1)
  }

  @Test("a part that is too large for memory is summed, and its parts are gathered on their own")
  func bounded() throws {
    var chance = SeededGenerator(seed: 4)
    var small = DigestTable(paths: [[]], limit: 500)
    var large = DigestTable(paths: [[]])
    for i in 0..<2000 {
      let row = DigestTable.Row(
        hash: chance.next(),
        fingerprint: ContentFingerprint(
          bits: UInt128(chance.next()) << 64 | UInt128(chance.next())),
        offset: UInt64(i))
      small.add(row)
      large.add(row)
    }
    small.finish()
    large.finish()
    #expect(small.rowCount == 0 && !small.answers([3]) && small.answers([]))
    let (whole, other) = (small.part([]) { _ in [] }, large.part([]) { _ in [] })
    #expect(whole.total == other.total)
    guard case .sums(let a) = whole.content, case .sums(let b) = other.content else {
      Issue.record("both are sums")
      return
    }
    #expect(a == b)
    let parts = (0..<256).map { large.part([UInt8($0)]) { _ in [] } }
    #expect(parts.map(\.total) == b)
  }

  @Test("a path longer than a hash is refused, one as long as a hash is answered")
  func paths() throws {
    let bench = try filled(Bench(), 10)
    #expect(failure { _ = try digest(bench, Array(repeating: 0, count: 9)) } == .malformed)
    let full = try digest(bench, Array(repeating: 255, count: 8))
    #expect(full.total.keys == 0)
  }

  /// The keys that differ, found as clients find them, and how many calls that took.
  private func walk(
    _ a: Bench, _ b: Bench, limit: Int = DigestTable.rowLimit
  ) throws -> (keys: Set<[UInt8]>, walk: DigestWalk, calls: Int) {
    var walk = DigestWalk()
    var found: Set<[UInt8]> = []
    var calls = 0
    var table: DigestTable?
    while let first = walk.next.first {
      calls += 1
      if table?.answers(first) != true { table = try gathered(a, walk.next, limit) }
      let here = try #require(table)
      for difference in try walk.take(
        answer(b, walk.next), here,
        key: { try a.handler().feed.heads(at: [$0.offset])[$0.offset]?.key })
      {
        #expect(found.insert(difference.key).inserted)
      }
    }
    return (found, walk, calls)
  }

  private func gathered(_ bench: Bench, _ paths: [[UInt8]], _ limit: Int) throws -> DigestTable {
    var table = DigestTable(paths: paths, limit: limit)
    _ = try bench.handler().feed.scan(into: &table) { _, _ in true }
    table.finish()
    return table
  }

  @Test("hundreds of keys that differ are found with a handful of calls")
  func fewCalls() throws {
    let changing = Set((0..<800).map { $0 * 97 % 80_000 })
    let one = try filled(Bench(), 80_000)
    let two = try filled(Bench(), 80_000, changing: changing)
    let (keys, walk, calls) = try walk(one, two)
    #expect(keys == Set(changing.map { Array("key/\($0)".utf8) }))
    #expect(walk.comparisons > 800 && calls < 20, "\(calls) calls, \(walk.comparisons) parts")
  }

  @Test("with more keys than memory may hold, parts are gathered many at a time")
  func gatheredTogether() throws {
    let changing = Set((0..<300).map { $0 * 61 % 20_000 })
    let one = try filled(Bench(), 20_000)
    let two = try filled(Bench(), 20_000, changing: changing)
    let (keys, _, calls) = try walk(one, two, limit: 4_000)
    #expect(keys == Set(changing.map { Array("key/\($0)".utf8) }))
    #expect(calls < 20, "\(calls) calls")
  }

  @Test("a peer whose sums have no end takes no memory without end")
  func endless() throws {
    var walk = DigestWalk()
    var chance = SeededGenerator(seed: 3)
    let table = DigestTable(paths: [[]])
    var most = 0
    for _ in 0..<40 {
      let parts = walk.next.map { path in
        let sums = (0..<256).map { _ in
          DigestSum(keys: 1, sum: UInt128(chance.next()) << 64 | UInt128(chance.next()))
        }
        return DigestPart(
          total: sums.reduce(DigestSum(), +),
          content: path.count < DigestTable.pathBytes ? .sums(sums) : .keys([]))
      }
      let position = FeedPosition(epoch: 1, offset: 1)
      _ = try walk.take(
        DigestAnswer(position: position, range: FeedRange(epochs: [], head: 1), parts: parts),
        table, key: { _ in nil })
      most = max(most, walk.partsLeft)
    }
    #expect(most > 200_000 && most < 270_000)
  }

  @Test("a table tells of the first parts that fit, and of nothing else")
  func shed() {
    var chance = SeededGenerator(seed: 9)
    let paths = (0..<7).map { [UInt8($0 * 30), 0] }
    var table = DigestTable(paths: paths, limit: 40)
    var kept: [[UInt8]: Int] = [:]
    for i in 0..<70 {
      let path = paths[i % 7]
      let hash = UInt64(path[0]) << 56 | chance.next() >> 16
      kept[path, default: 0] += 1
      #expect(DigestTable(paths: paths).covers(hash: hash))
      #expect(!table.covers(hash: hash | 1 << 48))
      guard table.covers(hash: hash) else { continue }
      table.add(
        DigestTable.Row(
          hash: hash, fingerprint: ContentFingerprint(bits: 1), offset: UInt64(i)))
    }
    table.finish()
    #expect(table.isComplete && table.paths.count == 4 && table.rowCount == 40)
    for path in paths {
      #expect(table.answers(path) == table.paths.contains(path))
      #expect(table.answers(path + [1]) == table.paths.contains(path))
    }
    for path in table.paths {
      #expect(table.part(path) { _ in [] }.total.keys == UInt64(kept[path] ?? 0))
    }
    #expect(!table.answers([]) && !table.answers([0]) && !table.answers([255]))
  }

  @Test("an answer to many parts has as many as fit, and at least one")
  func partsOfAnAnswer() throws {
    let bench = try filled(Bench(), 60_000)
    let all = (0..<256).map { [UInt8($0)] }
    let first = try answer(bench, all)
    #expect((2..<200).contains(first.parts.count), "\(first.parts.count)")
    let rest = try answer(bench, Array(all.dropFirst(first.parts.count)))
    #expect(try rest.parts[0] == digest(bench, all[first.parts.count]))
    let total = try digest(bench).total
    guard case .sums(let sums) = try digest(bench).content else { return }
    #expect(first.parts.map(\.total) == Array(sums.prefix(first.parts.count)))
    #expect(sums.reduce(DigestSum(), +) == total)
  }
}
