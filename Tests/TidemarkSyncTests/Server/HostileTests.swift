import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Requests that mean no good")
struct HostileTests {
  @Test("changes that the log would refuse are rejected one by one, and the batch goes on")
  func badChanges() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    var changes = [a.put("good", "1")]
    changes.append(a.put("", "x"))
    changes.append(a.put(String(repeating: "k", count: 65_536), "x"))
    changes.append(a.put("labels", "x", labels: (0..<65).map { EntryLabel("l\($0)") }))
    changes.append(a.put("empty label", "x", labels: [EntryLabel([])]))
    changes.append(a.put("long label", "x", labels: [EntryLabel(Array(repeating: 1, count: 256))]))
    var change = a.put("hash", "x")
    change.content.hash = Array(repeating: 1, count: 65)
    changes.append(change)
    change = a.put("time", "x")
    change.time = Timestamp(seconds: 0)
    change.time?.nanoseconds = 2_000_000_000
    changes.append(change)
    change = a.put("sequence", "x")
    change.sequence = 0
    changes.append(change)
    change = a.put("numbers", "x", base: .position(FeedPosition(epoch: .max, offset: .max)))
    change.commitTime = .max
    change.sequence = .max
    change.time = Timestamp(seconds: .min)
    changes.append(change)
    change = a.put("numbers 2", "x", base: .operation(sequence: .max))
    change.commitTime = .max
    change.atomicGroup = .max
    changes.append(change)
    let verdicts = try bench.push(&a, all: changes)
    #expect(
      verdicts.map(\.name)
        == ["applied"] + Array(repeating: "invalid", count: 9) + ["applied"])
    #expect(try bench.pullAll(Device(2)).entries.count == 2)
    #expect(try bench.handler().digest(DigestRequest(replica: a.id)).parts[0].total.keys == 2)
  }

  @Test("batches that are no batches are refused as a whole, and take no number")
  func badBatches() throws {
    let bench = Bench(options: SyncHandler.Options(limits: SyncLimits(changes: 3, bytes: 1000)))
    var a = Device(1)
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    let four = (0..<4).map { a.put("k\($0)", "x") }
    let twice = [a.put("k", "x"), a.put("l", "x")].map {
      var change = $0
      change.sequence = 9
      return change
    }
    let text = String(repeating: "v", count: 600)
    let large = [a.put("a", text), a.put("b", text), a.put("c", text)]
    for (number, id, changes) in [
      (0, 1, []), (1, 0, []), (1, 1, four), (1, 1, twice), (1, 1, large),
    ] as [(UInt64, UInt64, [PushedChange])] {
      let request = PushRequest(
        replica: a.id, number: number, batchID: BatchID(id), changes: changes)
      #expect(failure { _ = try bench.handler().push(request) } == .malformed)
    }
    // One entry may be larger than a message.
    let one = a.put("one", String(repeating: "v", count: 5000))
    #expect(try bench.push(&a, one, a.put("b", text)).map(\.name) == ["applied", "applied"])
  }

  @Test("positions of epochs that never were count as nothing")
  func epochs() throws {
    let bench = Bench(restarts: true)
    var a = Device(1)
    let place = try #require(try bench.push(&a, a.put("k", "1"))[0].place)
    var b = Device(2)
    for base in [
      FeedPosition(epoch: place.epoch &+ 1, offset: place.offset),
      FeedPosition(epoch: place.epoch, offset: place.offset + 1),
      FeedPosition(epoch: 0, offset: .max),
    ] {
      #expect(try bench.push(&b, b.put("k", "2", base: .position(base))) == [.conflict(place)])
    }
    let hello = HelloRequest(
      replica: Device(3).id, cursor: FeedPosition(epoch: 12, offset: .max))
    #expect(try bench.handler().hello(hello).isLeaseExpired, "it has been somewhere else")
  }

  @Test("a closed handler says that it is not available, so that nobody gives anything up")
  func closed() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    let handler = try bench.handler()
    try handler.close()
    a.number += 1
    let batch = a.batch([a.put("k", "2")])
    #expect(failure { _ = try handler.push(batch) } == .unavailable)
    #expect(failure { _ = try handler.hello(HelloRequest(replica: a.id)) } == .unavailable)
    #expect(failure { _ = try handler.digest(DigestRequest(replica: a.id)) } == .unavailable)
  }

  @Test("a full disk takes nothing of a batch, and the batch goes through when there is space")
  func fullDisk() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    bench.disk.capacity = bench.disk.usedBytes
    var batch = a.batch([])
    var failed: PeerError.Kind?
    // Room that was allocated ahead may suffice for a while.
    for round in 0..<200 where failed == nil {
      let text = "\(round)" + String(repeating: "v", count: 2500)
      a.number += 1
      batch = a.batch((0..<100).map { a.put("k\($0)", text) })
      failed = failure { _ = try bench.handler().push(batch) }
    }
    #expect(failed == .unavailable)
    bench.disk.capacity = nil
    #expect(
      try bench.handler().push(batch).mark.verdicts.map(\.name).allSatisfy { $0 == "applied" })
  }

  @Test("a mark that cannot be read stops its replica, with an error, and nobody else")
  func damagedMark() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("k", "1"))
    try bench.withEngine { engine in
      var batch = OperationBatch()
      try RecordTable.add(.feedMark, key: a.id.bytes, value: [1, 2, 3], to: &batch)
      try RecordTable.add(.feedLease, key: Device(3).id.bytes, value: [200], to: &batch)
      try engine.commit(batch)
    }
    #expect(failure { _ = try bench.handler().hello(HelloRequest(replica: a.id)) } == .failed)
    a.number += 1
    let batch = a.batch([])
    #expect(failure { _ = try bench.handler().push(batch) } == .failed)
    #expect(try bench.push(&b, b.put("l", "1")).map(\.name) == ["applied"])
    #expect(try !bench.handler().hello(HelloRequest(replica: Device(3).id)).isLeaseExpired)
    try bench.withEngine { engine in
      var batch = OperationBatch()
      try RecordTable.add(.feedPolicy, key: [], value: [1, 9], to: &batch)
      try engine.commit(batch)
    }
    #expect(throws: TidemarkError.self) { _ = try bench.handler() }
  }
}
