import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// At most one change of each key waits.
@Suite("Changes that wait")
struct WaitingTests {
  @Test(
    "changes of one key that conflict together wait as one, and nothing old comes back",
    arguments: [true, false])
  func together(startsPlain: Bool) throws {
    let world = try SyncWorld()
    try world.put(0, "k", "base")
    try world.settle()
    if startsPlain {
      try world.put(0, "k", "plain")
      try world.writeTogether(0, [("k", "whole"), ("l", "whole")])
    } else {
      try world.writeTogether(0, [("k", "first"), ("k", "whole"), ("l", "whole")])
    }
    #expect(try world.nextPush(0)?.changes.map(\.name) == ["k", "k", "l"])
    try world.put(1, "k", "other")
    try world.settle(only: 1)
    try world.step(0)
    #expect(world.devices[0].session.outbox.waiting.count == 1)
    try world.settle()
    #expect(try world.serverState() == ["k": "whole ", "l": "whole "])
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
    try world.restart(0)
    try world.put(1, "m", "1")
    try world.settle()
    #expect(try world.serverState() == ["k": "whole ", "l": "whole ", "m": "1 "])
    try world.expectEqual()
  }

  @Test("a change that waited beside one of its key that has gone through is forgotten")
  func beside() throws {
    let world = try SyncWorld(devices: 1)
    let session = world.devices[0].session
    world.server.options.validators = [
      SyncValidator { change, _ in
        change.content.value == Array("bad".utf8) ? SyncRejection(code: "bad", message: "bad") : nil
      }
    ]
    let refused = try world.write(0, "k", "bad")
    try world.writeTogether(0, [("k", "good"), ("l", "good")])
    try world.write(0, "note", "1", after: [refused])
    try world.settle()
    #expect(try world.serverState() == ["k": "good ", "l": "good ", "note": "1 "])
    #expect(session.outbox.waiting.isEmpty)
  }

  @Test("a remote state that was read before what was sent since does not come back")
  func stale() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "base")
    try world.settle()
    try world.put(1, "k", "other")
    try world.settle(only: 1)
    let place = try #require(world.devices[1].session.range).headPosition
    try world.put(0, "k", "mine")
    try world.settle()
    // As a session of old may have left it.
    let session = world.devices[0].session
    let newest = try #require(try session.log.newestChange(ofKey: Array("k".utf8)))
    let other = world.devices[1].session
    let beside = RemoteState(
      FeedEntry(
        position: place, kind: .put, operation: OperationID(replica: other.replica, sequence: 1),
        key: newest.key, content: SyncContent(value: Array("other".utf8))))
    try session.commit { try $0.merge(newest.key, beside) }
    #expect(try world.get(0, "k") == "mine")
  }

  // MARK: What is not its key's newest any more

  @Test("a refused entry whose key was written again out of scope holds up nothing")
  func replacedOutside() throws {
    let world = try SyncWorld(devices: 1)
    world.devices[0].scope = SyncScope(labels: ["s"])
    try world.restart(0)
    world.refuse(prefix: "bad")
    try world.put(0, "bad", "1", labels: ["s"])
    let refused = world.devices[0].engine.reader.lastSequence
    try world.settle()
    #expect(world.devices[0].session.outbox.waiting.count == 1)
    try world.writeLabelled(0, "note", "1", ["s"], after: [refused])
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.put(0, "bad", "2")
    try world.settle()
    #expect(try world.serverState() == ["note": "1 s"])
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
  }

  @Test("a refused entry whose key holds a cached value since holds up nothing")
  func replacedByCache() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let refused = try world.write(0, "bad", "1")
    try world.settle()
    try world.write(0, "note", "1", after: [refused])
    var batch = WriteBatch()
    try batch.put("bad", "cached", options: PutOptions(storageClass: .cache))
    // A program cannot do that any more; an older version of it may have.
    batch.operations.mayCoverOwned = true
    try world.commit(0, batch)
    try world.settle()
    #expect(try world.serverState() == ["note": "1 "])
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
  }

  @Test("a group goes that replaces the refused entry which one of its members comes after")
  func replacedByGroup() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let refused = try world.write(0, "bad", "1")
    try world.settle()
    try world.acceptAll()
    var batch = WriteBatch(atomicAtPeer: true)
    try batch.put("bad", "2")
    try batch.put("note", "2", options: PutOptions(after: [refused]))
    try world.commit(0, batch)
    try world.settle()
    #expect(try world.serverState() == ["bad": "2 ", "note": "2 "])
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
  }
}

extension SyncWorld {
  func writeLabelled(
    _ index: Int, _ key: String, _ value: String, _ labels: [String], after: [UInt64] = []
  ) throws {
    var batch = WriteBatch()
    try batch.put(
      Key(key), value, labels: labels.map { EntryLabel($0) }, options: PutOptions(after: after))
    try devices[index].engine.commit(batch.operations)
  }

  @Test("a value as large as there can be is kept beside a change, and decided upon like any other")
  func largestBeside() throws {
    let world = try SyncWorld(devices: 1, resolver: .ask)
    try world.settle()
    try world.server.withEngine { engine in
      var batch = OperationBatch()
      let value = [UInt8](repeating: 7, count: Limits.valueBytes)
      let labels = try batch.addLabelSet(
        (0..<Limits.labelsPerEntry).map { [UInt8](repeating: 200, count: 254) + [UInt8($0)] })
      try batch.add(
        .put, key: Array("k".utf8).rawSpan, value: value.rawSpan, labelSet: labels)
      try engine.commit(batch)
    }
    try world.put(0, "k", "mine")
    try world.put(0, "l", "1")
    try world.settle(steps: 40, mayStop: true)
    #expect(try world.serverState()["l"] == "1 ")
    let session = world.devices[0].session
    #expect(try session.waitingForUser().map(\.reason) == [.needsDecision])
    #expect(try world.get(0, "k") == "mine")
    try session.decide(Array("k".utf8), .remote)
    try world.settle(steps: 40)
    #expect(try world.get(0, "k")?.utf8.count == Limits.valueBytes)
    #expect(try session.waitingForUser().isEmpty && session.isAtRest)
  }

  @Test("a conflict that is decided for what the peer has leaves no copy of it beside the key")
  func givesWay() throws {
    let world = try SyncWorld(resolver: .remoteWins)
    try world.settle()
    for number in 0..<20 { try world.put(0, "key \(number)", "ours") }
    // Its batch is on the way when the others come.
    #expect(try world.nextPush(0)?.changes.count == 20)
    for number in 0..<20 { try world.put(1, "key \(number)", "theirs") }
    try world.settle(only: 1)
    try world.step(0)
    #expect(world.devices[0].session.totals.conflicts == 20)
    try world.settle()
    #expect(try world.serverState().values.allSatisfy { $0 == "theirs " })
    #expect(!world.devices[0].session.records.hasRemoteStates)
    try world.expectEqual()
  }
}
