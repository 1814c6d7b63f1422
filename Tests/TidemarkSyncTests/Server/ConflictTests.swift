import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("The rule of conflicts")
struct ConflictTests {
  @Test(
    "a change upon what the key holds applies, another one is a conflict with what stands there",
    arguments: [false, true])
  func detect(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    var a = Device(1)
    var b = Device(2)
    let first = try bench.push(&a, a.put("k", "1"))
    let base = try #require(first[0].place)
    #expect(first == [.applied(base)])
    let second = try bench.push(&b, b.put("k", "2", base: .position(base)))
    #expect(second.map(\.name) == ["applied"])
    let third = try bench.push(&b, b.put("new", "x"), b.put("k", "3", base: .position(base)))
    #expect(third.map(\.name) == ["applied", "applied"], "an own earlier change stands there")
    let current = try #require(third[1].place)
    let fourth = try bench.push(&a, a.put("k", "4", base: .position(base)), a.put("k", "5"))
    #expect(fourth == [.conflict(current), .conflict(current)])
    #expect(try bench.value("k") == "3")
  }

  @Test("own changes apply one after the other, in one batch and in several")
  func ownChanges() throws {
    let bench = Bench()
    var a = Device(1)
    let first = try bench.push(
      &a, a.put("k", "1"), a.put("k", "2", base: .operation(sequence: 1)),
      a.delete("k", base: .operation(sequence: 2)), a.put("k", "3"))
    #expect(first.map(\.name) == ["applied", "applied", "applied", "applied"])
    #expect(first.compactMap { $0.place?.offset } == Array(2...5))
    let second = try bench.push(&a, a.put("k", "4", base: .operation(sequence: 4)))
    #expect(second.map(\.name) == ["applied"])
    #expect(try bench.value("k") == "4")
    // An older one that arrives late does not count as made upon the newer one.
    var late = a.put("k", "late", base: .position(FeedPosition(epoch: 1, offset: 1)))
    late.sequence = 2
    #expect(try bench.push(&a, late).map(\.name) == ["conflict"])
  }

  @Test("equal content, and a delete of what is not there, are duplicates of what stands there")
  func duplicates() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    let place = try #require(try bench.push(&a, a.put("k", "1", labels: ["x", "y"]))[0].place)
    let verdicts = try bench.push(
      &b, b.put("k", "1", labels: ["y", "x", "x"]), b.put("k", "1", labels: ["x"]),
      b.delete("none", base: .absent))
    #expect(verdicts == [.duplicate(place), .conflict(place), .duplicate(.beginning)])
    let gone = try #require(try bench.push(&a, a.delete("k", base: .position(place)))[0].place)
    #expect(try bench.push(&b, b.delete("k", base: .position(place))) == [.duplicate(gone)])
  }

  @Test("absent and deleted are one state, but what somebody deleted is not what was there")
  func deleted() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    let put = try #require(try bench.push(&a, a.put("k", "1"))[0].place)
    let gone = try #require(try bench.push(&a, a.delete("k", base: .position(put)))[0].place)
    #expect(
      try bench.push(&b, b.put("k", "edit", base: .position(put))) == [.conflict(gone)])
    #expect(try bench.push(&b, b.put("k", "2")).map(\.name) == ["applied"])
    let base = try #require(
      try bench.push(&b, b.delete("k", base: .operation(sequence: 2)))[0].place)
    // Upon any tombstone, also an older one.
    #expect(try bench.push(&a, a.put("k", "3", base: .position(gone))).map(\.name) == ["applied"])
    #expect(try bench.push(&b, b.put("k", "4", base: .position(base))).map(\.name) == ["conflict"])
    // A position of another epoch, or of another key, is no tombstone of this one.
    var c = Device(3)
    let other = try #require(try bench.push(&c, c.put("o", "1"))[0].place)
    let otherGone = try #require(try bench.push(&c, c.delete("o", base: .position(other)))[0].place)
    #expect(
      try bench.push(&c, c.put("p", "1", base: .position(otherGone))) == [.conflict(.beginning)])
  }

  @Test("with last-writer-wins the later commit stays, on either side", arguments: [false, true])
  func lastWriterWins(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "s/")
    var a = Device(1)
    var b = Device(2)
    let first = try #require(try bench.push(&a, a.put("s/k", "a", at: 50))[0].place)
    #expect(try bench.push(&b, b.put("s/k", "b", at: 40)) == [.lost(first)])
    #expect(try bench.value("s/k") == "a")
    #expect(try bench.push(&b, b.put("s/k", "c", at: 60)).map(\.name) == ["applied"])
    // A tie goes to the higher replica; without the policy it is a conflict.
    #expect(try bench.push(&a, a.put("s/k", "d", at: 60)).map(\.name) == ["lost"])
    _ = try bench.push(&a, a.put("t/k", "a", at: 50))
    #expect(try bench.push(&b, b.put("t/k", "b", at: 60)).map(\.name) == ["conflict"])
    // The losers are kept in the log, with who wrote them.
    let losers = try bench.withEngine { engine in
      var cursor = LogCursor(
        engine.reader, from: 1, through: engine.reader.lastSequence, includesRecords: true)
      var found: [String] = []
      while let entry = try cursor.next() {
        let attributes = try entry.attributes()
        guard attributes.recordType == RecordType.loser.rawValue else { continue }
        try engine.reader.withValue(of: entry.sequence) { (value, _) throws(TidemarkError) in
          found.append(
            String(decoding: [UInt8](copying: value), as: UTF8.self)
              + "\(attributes.origin?.sequence ?? 0)")
        }
      }
      return found
    }
    #expect(losers == ["b1", "d2"])
  }

  @Test("a device that lives in the future wins only until the server's own time")
  func future() throws {
    let bench = Bench()
    try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    var a = Device(1)
    var b = Device(2)
    let year: UInt64 = 365 * 86_400
    _ = try bench.push(&a, a.put("k", "future", at: year))
    bench.clock.advance(by: .seconds(60))
    #expect(try bench.push(&b, b.put("k", "b", at: 650)).map(\.name) == ["applied"])
  }

  @Test("the policy with the longest prefix counts, and can be taken back")
  func policies() throws {
    let bench = Bench(restarts: true)
    try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "a")
    try bench.handler().setPolicy(.detect, forKeysWithPrefix: "a/b")
    #expect(
      try bench.handler().policies == [
        CollectionPolicy(prefix: "a/b", policy: .detect),
        CollectionPolicy(prefix: "a", policy: .lastWriterWins),
      ])
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("a/b/k", "1"), a.put("a/c", "1"))
    #expect(
      try bench.push(&b, b.put("a/b/k", "2", at: 9), b.put("a/c", "2", at: 9)).map(\.name)
        == ["conflict", "applied"])
    try bench.handler().setPolicy(nil, forKeysWithPrefix: "a/b")
    #expect(try bench.push(&a, a.put("a/b/k", "3", at: 99)).map(\.name) == ["applied"])
    #expect(try bench.handler().policies.count == 1)
  }

  @Test("validators refuse with a reason, each for its prefix, and the rest of the batch goes on")
  func validators() throws {
    let bench = Bench(restarts: true)
    bench.options.validators = [
      SyncValidator(prefix: "n/") { change, _ in
        change.content.value.isEmpty
          ? SyncRejection(code: "empty", message: "write something") : nil
      },
      SyncValidator { _, _ in SyncRejection(code: "no", message: String(repeating: "ä", count: 900))
      },
    ]
    var a = Device(1)
    let verdicts = try bench.push(&a, a.put("n/1", ""), a.put("m/1", ""))
    #expect(verdicts[0] == .rejected(SyncRejection(code: "empty", message: "write something")))
    #expect(verdicts[1].name == "no")
    guard case .rejected(let cut) = verdicts[1] else { return }
    #expect(cut.message == String(repeating: "ä", count: 256))
    #expect(try bench.value("n/1") == nil)
  }

  @Test("a validator sees the key as text and when the change was committed and by whom")
  func validated() throws {
    let bench = Bench()
    let seen = Lock<[ProposedChange]>([])
    let folder = "n"
    bench.options.validators = [
      SyncValidator(prefix: folder + "/") { change, replica in
        seen.withLock { $0.append(change) }
        let isOld = change.commitTime < Timestamp(seconds: 1_767_225_010)
        return isOld && change.key.hasPrefix("n/1") && replica == Device(1).id
          ? SyncRejection(code: "old", message: "\(change.key)") : nil
      }
    ]
    var a = Device(1)
    let delete = a.delete("n/2", base: .absent, at: 20)
    let verdicts = try bench.push(&a, a.put("n/10", "x", at: 5), delete, a.put("m", "x"))
    #expect(verdicts[0] == .rejected(SyncRejection(code: "old", message: "n/10")))
    #expect(verdicts.dropFirst().map(\.name) == ["duplicate", "applied"])
    #expect(
      seen.withLock { $0 } == [
        ProposedChange(
          kind: .put, key: "n/10", content: SyncContent(value: Array("x".utf8)),
          commitTime: Timestamp(seconds: 1_767_225_005)),
        ProposedChange(kind: .delete, key: "n/2", commitTime: Timestamp(seconds: 1_767_225_020)),
      ])
  }
}
