import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("How far an authorization reaches")
struct AccessTests {
  private let mine = SyncAccess(to: SyncScope(labels: ["me"]))

  /// Puts a key as a program does that owns the store.
  private func write(
    _ key: String, _ labels: [String], origin: EntryAttributes.Origin? = nil, _ bench: Bench
  ) throws {
    try bench.withEngine { engine in
      var batch = OperationBatch()
      var attributes = EntryAttributes()
      attributes.origin = origin
      try batch.add(
        .put, key: Array(key.utf8).rawSpan, value: [1].rawSpan,
        labelSet: batch.addLabelSet(labels.map { Array($0.utf8) }), attributes: attributes)
      try engine.commit(batch)
    }
  }

  @Test("a key that lies outside is neither written nor told of")
  func outside() throws {
    let bench = Bench()
    var other = Device(1)
    var me = Device(2)
    _ = try bench.push(
      &other, other.put("secret", "s", labels: ["them"]), other.put("shared", "1", labels: ["me"]))
    let verdicts = try bench.push(
      &me, me.put("secret", "s", labels: ["them"]), me.put("secret", "s", labels: ["me"]),
      me.put("new", "x"), me.delete("secret", base: .absent),
      me.put("mine", "x", labels: ["me"]), access: mine)
    #expect(
      verdicts.map(\.name)
        == ["outOfScope", "outOfScope", "outOfScope", "outOfScope", "applied"])
    #expect(verdicts.prefix(4).allSatisfy { $0.place == nil })
    #expect(try bench.value("secret") == "s")
    let reader = Device(3)
    let entries = try bench.pullAll(reader, access: mine).entries
    #expect(entries.map(\.key) == [Array("shared".utf8), Array("mine".utf8)])
    let values = try bench.handler().values(
      ValuesRequest(replica: reader.id, keys: [Array("secret".utf8), Array("shared".utf8)]),
      access: mine)
    #expect(values.entries.map(\.key) == [Array("shared".utf8)] && values.answered == 2)
    let digest = try bench.handler().digest(DigestRequest(replica: reader.id), access: mine)
    #expect(digest.parts[0].total.keys == 2)
  }

  @Test("taking the last label that is mine from an entry is told as `left`, without its value")
  func taken() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(&other, other.put("k", "1", labels: ["me"]))
    _ = try bench.push(
      &other, other.put("k", "2", labels: ["them"], base: .operation(sequence: 1)))
    let entries = try bench.pullAll(Device(3), access: mine).entries
    #expect(entries.map(\.kind) == [.put, .left] && entries[1].content == SyncContent())
  }

  @Test("an empty scope is nothing, and who may not write is told so")
  func nothing() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1", labels: ["x"]))
    let none = SyncAccess(to: SyncScope())
    #expect(try bench.pullAll(Device(2), access: none).entries.isEmpty)
    let seen = try bench.handler().digest(DigestRequest(replica: a.id), access: none)
    #expect(seen.parts[0].total.keys == 0)
    a.number += 1
    let batch = a.batch([a.put("k", "2")])
    #expect(
      failure { _ = try bench.handler().push(batch, access: SyncAccess(to: nil, canPush: false)) }
        == .forbidden)
  }

  @Test("a key that has left is told to who knew it, also when compaction dropped that version")
  func leftBeforeCompaction() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(&other, other.put("moved", "1", labels: ["me"]))
    let reader = Device(2)
    let cursor = try bench.pullAll(reader, access: mine).cursor
    for number in 2...4 {
      _ = try bench.push(
        &other, other.put("moved", "\(number)", labels: ["them"]),
        other.put("secret", "\(number)", labels: ["them"]))
    }
    _ = try bench.push(&other, other.put("last", "1"))
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    let entries = try bench.pullAll(reader, after: cursor, access: mine).entries
    #expect(entries.map(\.kind) == [.left] && entries[0].key == Array("moved".utf8))
    let scoped = try bench.pullAll(reader, after: cursor, scope: SyncScope(labels: ["me"]))
    #expect(scoped.entries.map(\.kind) == [.left])
    // It has heard of that: later changes of the key are none of its business.
    let after = try bench.pullAll(reader, after: cursor, access: mine).cursor
    _ = try bench.push(&other, other.put("moved", "5", labels: ["them"]))
    #expect(try bench.pullAll(reader, after: after, access: mine).entries.isEmpty)
  }

  @Test("a key whose leaving was dropped is told of by what is left, wherever a page has ended")
  func leftBetweenPages() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(&other, other.put("moved", "1", labels: ["me"]))
    let reader = Device(2)
    let cursor = try bench.pullAll(reader, access: mine).cursor
    _ = try bench.push(&other, other.put("moved", "2", labels: ["them"]))
    _ = try bench.push(&other, other.put("mine", "1", labels: ["me"]))
    _ = try bench.push(&other, other.put("moved", "3", labels: ["them"]), other.put("last", "1"))
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    let limits = SyncLimits(changes: 1)
    let page = try bench.pullAll(reader, after: cursor, access: mine, limits: limits)
    #expect(page.entries.map(\.kind) == [.put, .left] && page.pages > 1)
    _ = try bench.push(&other, other.put("moved", "4", labels: ["them"]))
    #expect(try bench.pullAll(reader, after: page.cursor, access: mine).entries.isEmpty)
  }

  @Test("a new reader hears that a key has left which has lost more labels than are kept")
  func leftAmongMany() throws {
    let bench = Bench()
    var other = Device(1)
    let labels = (0..<40).map { EntryLabel("label \($0)") }
    _ = try bench.push(&other, other.put("many", "1", labels: labels))
    _ = try bench.push(&other, other.put("many", "2", base: .operation(sequence: 1)))
    for label in labels {
      let access = SyncAccess(to: SyncScope(labels: [label]))
      let kinds = try bench.pullAll(Device(3), access: access).entries.map(\.kind)
      #expect(kinds == [.put, .left], "\(label): \(kinds)")
    }
  }

  @Test("a key that the store's own program writes and then a device sends nobody to compare")
  func writtenByBoth() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(&other, other.put("first", "1", labels: ["me"]))
    let reader = Device(2)
    let cursor = try bench.pullAll(reader, access: mine).cursor
    try write("theirs", ["them"], bench)
    let found = try bench.handler().values(
      ValuesRequest(replica: other.id, keys: [Array("theirs".utf8)]))
    let base = ChangeBase.position(try #require(found.entries.first).position)
    _ = try bench.push(&other, other.put("theirs", "2", labels: ["them"], base: base))
    #expect(try bench.pullAll(reader, after: cursor, access: mine).entries.isEmpty)
  }

  @Test("a key that the store's own program takes away is told as `left`, whoever it says wrote it")
  func takenByProgram() throws {
    let origin = EntryAttributes.Origin(replica: Device(9).id.bytes, sequence: 5)
    for origin in [nil, origin] {
      let bench = Bench()
      var other = Device(1)
      _ = try bench.push(&other, other.put("k", "1", labels: ["me"]))
      let cursor = try bench.pullAll(Device(2), access: mine).cursor
      try write("k", ["them"], origin: origin, bench)
      let entries = try bench.pullAll(Device(2), after: cursor, access: mine).entries
      #expect(entries.map(\.kind) == [.left])
    }
  }

  @Test("a key that keeps a label that may be read and loses the one asked for is told as `left`")
  func leftWhatIsAskedFor() throws {
    let bench = Bench()
    var other = Device(1)
    let asked = SyncScope(labels: ["open"])
    _ = try bench.push(&other, other.put("k", "1", labels: ["me", "open"]))
    let cursor = try bench.pullAll(Device(2), scope: asked, access: mine).cursor
    _ = try bench.push(&other, other.put("k", "2", labels: ["me"], base: .operation(sequence: 1)))
    let page = try bench.pullAll(Device(2), after: cursor, scope: asked, access: mine)
    #expect(page.entries.map(\.kind) == [.left])
  }

  @Test("where only the log told what an entry replaced, a key is not told to strangers")
  func forgottenHistory() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(&other, other.put("first", "1", labels: ["me"]))
    let reader = Device(2)
    let cursor = try bench.pullAll(reader, access: mine).cursor
    for _ in 0..<2 { try write("secret", ["them"], bench) }
    _ = try bench.push(&other, other.put("last", "1"))
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    #expect(
      failure {
        _ = try bench.handler().pull(
          PullRequest(replica: reader.id, after: cursor), access: mine)
      } == .cursorGone)
    #expect(try bench.pullAll(Device(3), access: mine).entries.map(\.kind) == [.put])
    // A reader that may see everything gets `left` for what it has no use for.
    let all = try bench.pullAll(reader, after: cursor, scope: SyncScope(labels: ["me"])).entries
    #expect(all.map(\.kind) == [.left])
  }

  @Test("a verdict does not tell whether a key outside is there")
  func untold() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(&other, other.put("theirs/live", "1"), other.put("theirs/gone", "1"))
    _ = try bench.push(&other, other.delete("theirs/gone", base: .operation(sequence: 2)))
    var me = Device(2)
    let verdicts = try bench.push(
      &me, me.delete("theirs/live", base: .absent), me.delete("theirs/gone", base: .absent),
      me.delete("theirs/never", base: .absent), me.put("mine/k", "1"),
      access: SyncAccess(to: SyncScope(keyPrefixes: ["mine/"])))
    #expect(verdicts.map(\.name) == ["outOfScope", "outOfScope", "outOfScope", "applied"])
  }

  @Test("a token for labels learns by deletes whether others have a key, and not what it holds")
  func toldByLabels() throws {
    let bench = Bench()
    var other = Device(1)
    _ = try bench.push(
      &other, other.put("live", "1", labels: ["them"]), other.put("gone", "1", labels: ["them"]))
    _ = try bench.push(&other, other.delete("gone", base: .operation(sequence: 2)))
    var me = Device(2)
    let verdicts = try bench.push(
      &me, me.delete("live", base: .absent), me.delete("gone", base: .absent),
      me.delete("never", base: .absent), me.put("live", "2", labels: ["me"], base: .absent),
      access: mine)
    #expect(verdicts.map(\.name) == ["outOfScope", "duplicate", "duplicate", "outOfScope"])
    #expect(try bench.value("live") == "1")
  }
}
