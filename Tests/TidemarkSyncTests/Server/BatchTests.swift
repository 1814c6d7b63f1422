import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Numbered batches at the server")
struct BatchTests {
  @Test(
    "a batch that is sent again is answered as before and counted once", arguments: [false, true])
  func again(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    var a = Device(1)
    var b = Device(2)
    let base = try #require(try bench.push(&b, b.put("old", "x"))[0].place)
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    a.number = 1
    let batch = a.batch([
      a.put("k", "1"), a.put("old", "y"), a.put("k2", "1"), a.put("k3", "1"), a.put("", "bad"),
    ])
    let first = try bench.handler().push(batch)
    #expect(
      first.mark.verdicts.map(\.name) == ["applied", "conflict", "applied", "applied", "invalid"])
    #expect(first.mark.verdicts[1] == .conflict(base))
    // Meanwhile somebody else goes on.
    _ = try bench.push(&b, b.put("k", "2"), b.put("more", "x"))
    let second = try bench.handler().push(batch)
    #expect(second.mark == first.mark)
    #expect(try bench.handler().hello(HelloRequest(replica: a.id)).mark == first.mark)
    let reader = Device(9)
    #expect(try bench.pullAll(reader).entries.count { $0.operation.replica == a.id } == 3)
  }

  @Test("with a hole, or with another id in its place, nothing is taken")
  func holes() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    let answer = try bench.push(&a, a.put("k", "1"))
    a.number = 3
    let hole = try bench.handler().push(a.batch([a.put("k3", "1")]))
    #expect(hole.mark.number == 1 && hole.mark.verdicts == answer)
    a.number = 1
    var other = a.batch([a.put("k4", "1")])
    other.batchID = BatchID(77)
    let taken = try bench.handler().push(other)
    #expect(taken.mark.number == 1 && taken.mark.batchID != other.batchID)
    #expect(try bench.value("k3") == nil && bench.value("k4") == nil)
    a.number = .max
    #expect(try bench.handler().push(a.batch([])).mark.number == 1)
  }

  @Test("an empty batch takes a number and nothing else")
  func empty() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    #expect(try bench.push(&a).isEmpty)
    #expect(try bench.push(&a, a.put("k", "1")).map(\.name) == ["applied"])
  }

  @Test("an atomic group applies as a whole or not at all, and the rest is judged without it")
  func atomic() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&b, b.put("taken", "x"))
    let verdicts = try bench.push(
      &a, a.put("g1", "1", group: 1), a.put("alone", "1"),
      a.put("h1", "1", group: 2), a.put("g1", "2", base: .operation(sequence: 1)),
      a.put("taken", "mine", group: 1), a.put("h2", "1", group: 2))
    #expect(
      verdicts.map(\.name) == ["aborted", "applied", "applied", "applied", "conflict", "applied"])
    #expect(try bench.value("g1") == "2" && bench.value("h2") == "1")
    // A change to the same content does not stop the others.
    let more = try bench.push(
      &a, a.put("taken", "x", group: 7), a.put("i", "1", group: 7), a.put("i", "2", group: 8),
      a.put("", "bad", group: 8))
    #expect(more.map(\.name) == ["duplicate", "applied", "aborted", "invalid"])
    #expect(try bench.value("i") == "1")
  }

  @Test("groups that fail one after the other cost little, and entangled ones are refused")
  func entangled() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&b, b.put("taken", "x"))
    var changes: [PushedChange] = []
    for group in 1...UInt64(500) {
      changes.append(a.put("k\(group)", "1", group: group))
      changes.append(a.put("taken", "y", group: group))
    }
    let verdicts = try bench.push(&a, all: changes)
    #expect(verdicts.count { $0 == .aborted } == 500)
    changes = []
    for group in 1...UInt64(500) { changes.append(a.put("l\(group)", "1", group: group)) }
    for group in 1...UInt64(500) { changes.append(a.put("taken", "y", group: group)) }
    a.number += 1
    #expect(failure { _ = try bench.handler().push(a.batch(changes)) } == .malformed)
  }

  @Test("a write of the store's own program in between is seen by the rule")
  func ownProgram() throws {
    let bench = Bench()
    var a = Device(1)
    let base = try #require(try bench.push(&a, a.put("k", "1"))[0].place)
    try bench.withEngine { engine in
      var batch = OperationBatch()
      try batch.add(.put, key: Array("k".utf8).rawSpan, value: Array("own".utf8).rawSpan)
      try batch.add(.touch, key: Array("k".utf8).rawSpan)
      try engine.commit(batch)
    }
    var b = Device(2)
    let verdicts = try bench.push(&b, b.put("k", "2", base: .position(base)))
    #expect(verdicts.map(\.name) == ["conflict"])
    // The position is that of the value, not of what renewed it.
    let own = try #require(verdicts[0].place)
    #expect(try bench.push(&b, b.put("k", "3", base: .position(own))).map(\.name) == ["applied"])
  }
}
