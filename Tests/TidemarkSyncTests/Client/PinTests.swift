import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("The versions that compaction keeps for peers")
struct PinTests {
  private func compact(_ world: SyncWorld) throws {
    // As a replicator that has nothing to do.
    try world.devices[0].session.writeDown()
    try world.devices[0].engine.compact(CompactionOptions(dropHistory: true))
  }

  /// How many versions of a key a device has on its disk, deletes included.
  private func versions(_ world: SyncWorld, _ key: String) throws -> Int {
    let engine = world.devices[0].engine
    return try engine.reader.history.versions(ofKey: Array(key.utf8).rawSpan).count
  }

  /// How many entries a device has on its disk, without records.
  private func entries(_ world: SyncWorld) throws -> Int {
    let engine = world.devices[0].engine
    var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
    var count = 0
    while try cursor.next() != nil { count += 1 }
    return count
  }

  /// The store is sound, and holds what it held.
  private func verify(_ world: SyncWorld) throws {
    let device = world.devices[0]
    let state = try SyncWorld.state(device.engine)
    try device.engine.close()
    let environment = EngineEnvironment(
      fileSystem: device.disk, clock: world.clock, random: SeededRandom(seed: 7))
    let report = try StoreVerifier.verify("/store", environment: environment)
    #expect(report.findings == [])
    try world.reopen(0)
    #expect(try SyncWorld.state(world.devices[0].engine) == state)
  }

  @Test("a delete that was not sent yet survives a compaction")
  func delete() throws {
    let world = try SyncWorld()
    try world.put(0, "gone", "1")
    try world.put(0, "other", "1")
    try world.settle()
    try world.delete(0, "gone")
    try compact(world)
    try world.restart(0)
    try compact(world)
    try world.settle()
    #expect(try world.serverState() == ["other": "1 "])
    try world.expectEqual()
  }

  @Test("the base of a change is there for a merge after a compaction")
  func base() throws {
    let world = try SyncWorld(resolver: .mergeFields())
    try world.put(0, "k", #"{"a":1,"b":1}"#)
    try world.settle()
    try world.put(0, "k", #"{"a":2,"b":1}"#)
    try world.put(1, "k", #"{"a":1,"b":2}"#)
    try world.settle(only: 1)
    try compact(world)
    try world.settle()
    #expect(try world.serverState()["k"] == #"{"a":2,"b":2} "#)
    try world.expectEqual()
  }

  @Test("a peer that was not heard of for ninety days holds back deletes alone")
  func lapsed() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "1")
    try world.put(0, "gone", "1")
    try world.settle()
    for number in 0..<50 { try world.put(0, "k", "later \(number)") }
    try world.delete(0, "gone")
    try compact(world)
    #expect(try versions(world, "k") == 2 && versions(world, "gone") == 2)
    world.clock.advance(by: .seconds(91 * 86_400))
    try compact(world)
    #expect(try versions(world, "k") == 1 && versions(world, "gone") == 2)
    try world.settle()
    #expect(try world.serverState() == ["k": "later 49 "])
    try world.expectEqual()
  }

  @Test("a peer that answers and has nothing to say is heard of")
  func quiet() throws {
    let world = try SyncWorld()
    try world.put(0, "gone", "1")
    try world.settle()
    for _ in 0..<10 {
      world.clock.advance(by: .seconds(10 * 86_400))
      // Also while it waits for news, without a hello.
      let pull = try world.devices[0].session.pullRequest()
      try world.devices[0].session.receive(world.answer(.pullRequest(pull)))
    }
    try world.delete(0, "gone")
    try compact(world)
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.expectEqual()
  }

  @Test("acknowledged history goes with the first compaction")
  func released() throws {
    let world = try SyncWorld()
    for number in 0..<50 {
      try world.put(0, "k", "\(number)")
      try world.settle(only: 0)
    }
    let before = world.devices[0].engine.reader.lastSequence
    try compact(world)
    #expect(try world.devices[0].engine.reader.bounds().historyFrom + 20 > before)
  }

  @Test("a pending key keeps its newest version, and the one that it was made upon")
  func between() throws {
    let world = try SyncWorld(resolver: .mergeFields())
    for number in 0..<20 { try world.put(0, "other", "\(number)") }
    try world.put(0, "k", #"{"a":1,"b":1}"#)
    try world.settle()
    for number in 0..<100 { try world.put(0, "k", #"{"a":\#(number),"b":1}"#) }
    try world.put(1, "k", #"{"a":1,"b":2}"#)
    try world.settle(only: 1)
    for _ in 0..<2 {
      try compact(world)
      #expect(try versions(world, "k") == 2 && versions(world, "other") == 1)
      try verify(world)
    }
    try world.settle()
    #expect(try world.serverState()["k"] == #"{"a":99,"b":2} "#)
    try world.expectEqual()
    try compact(world)
    #expect(try versions(world, "k") == 1)
  }

  @Test("a key that nobody has heard of keeps no older version, and a delete of it sends nothing")
  func unheard() throws {
    let world = try SyncWorld()
    try world.put(0, "first", "1")
    try world.settle()
    for number in 0..<20 { try world.put(0, "k", "\(number)") }
    for number in 0..<20 { try world.put(0, "gone", "\(number)") }
    try world.delete(0, "gone")
    try compact(world)
    #expect(try versions(world, "k") == 1)
    try verify(world)
    let before = world.devices[0].session.totals.pushed
    try world.settle()
    #expect(world.devices[0].session.totals.pushed - before == 1)
    try world.expectEqual()
  }

  @Test("a batch under way is sent again as it was, though its changes were replaced meanwhile")
  func inFlight() throws {
    let world = try SyncWorld()
    for number in 0..<5 { try world.put(0, "k\(number)", "1") }
    let push = try #require(try world.nextPush(0))
    for number in 0..<5 { try world.put(0, "k\(number)", "2") }
    try compact(world)
    try world.restart(0)
    #expect(try world.nextPush(0)?.changes == push.changes)
    try world.settle()
    try world.expectEqual()
  }

  @Test("one refused delete keeps itself, and nothing of other keys")
  func parked() throws {
    let world = try SyncWorld()
    world.server.options.validators = [
      SyncValidator { change, _ in
        change.kind == .delete && change.key == "mine"
          ? SyncRejection(code: "no", message: "it stays") : nil
      }
    ]
    try world.put(0, "mine", "1")
    try world.settle()
    try world.delete(0, "mine")
    try world.settle(only: 0)
    for number in 0..<30 {
      try world.put(0, "k", "\(number)")
      try world.put(0, "short", "\(number)")
      try world.delete(0, "short")
      try world.settle(only: 0)
    }
    try compact(world)
    #expect(try versions(world, "k") == 1 && versions(world, "short") == 0)
    #expect(try versions(world, "mine") >= 1 && entries(world) <= 3)
    try verify(world)
    try compact(world)
    world.server.options.validators = []
    try world.server.close()
    let sequence = try #require(world.devices[0].session.outbox.waiting.keys.first)
    _ = try world.devices[0].session.retry([sequence])
    try world.settle()
    #expect(try world.serverState() == ["k": "29 "])
    try world.expectEqual()
    try compact(world)
    #expect(try entries(world) == 1)
  }

  @Test("a device that was off for a hundred days and compacts deletes what it has deleted")
  func longOff() throws {
    let world = try SyncWorld()
    try world.put(0, "gone", "1")
    try world.put(0, "other", "1")
    try world.settle()
    try world.delete(0, "gone")
    world.clock.advance(by: .seconds(100 * 86_400))
    try world.settle(only: 1)
    for _ in 0..<2 {
      try compact(world)
      try verify(world)
      try world.devices[0].engine.checkpointer.writeRun()
    }
    try world.settle()
    #expect(try world.serverState() == ["other": "1 "])
    try world.expectEqual()
  }

  @Test("a device that only takes keeps one version of a key")
  func pullOnly() throws {
    let world = try SyncWorld()
    world.devices[1].direction = .push
    world.devices[0].direction = .pull
    for round in 0..<20 {
      for key in 0..<5 { try world.put(1, "k\(key)", "\(round)") }
      try world.settle(only: 1)
      world.devices[0].session.disconnect()
      while try world.step(0) {}
    }
    try world.delete(1, "k0")
    try world.settle(only: 1)
    world.devices[0].session.disconnect()
    while try world.step(0) {}
    #expect(try world.get(0, "k1") == "19" && world.get(0, "k0") == nil)
    try compact(world)
    #expect(try entries(world) == 4)
    #expect(
      world.devices[0].session.outbox.frontier + 5 > world.devices[0].engine.reader.lastSequence)
  }

  @Test("edits synced one by one leave two versions of the last key to a compaction, one of others")
  func live() throws {
    let world = try SyncWorld(devices: 1)
    for number in 0..<40 {
      try world.put(0, "k", "\(number)")
      if number == 20 { try world.put(0, "other", "1") }
      while try world.step(0) {}
    }
    #expect(world.devices[0].session.hasUnwritten)
    try world.devices[0].engine.compact(CompactionOptions(dropHistory: true))
    #expect(try versions(world, "k") <= 2 && versions(world, "other") == 1)
    try compact(world)
    #expect(try versions(world, "k") == 1)
    try world.settle()
    try world.expectEqual()
  }

  @Test("a device that only sends, and is the only one, keeps one version of a key and no deletes")
  func pushOnly() throws {
    let world = try SyncWorld(devices: 1)
    world.devices[0].direction = .push
    for round in 0..<20 {
      for key in 0..<5 { try world.put(0, "k\(key)", "\(round)") }
      try world.put(0, "gone", "\(round)")
      try world.delete(0, "gone")
      if round % 5 == 0 { try world.restart(0) }
      world.devices[0].session.disconnect()
      while try world.step(0) {}
    }
    try compact(world)
    #expect(try entries(world) == 5)
    try world.delete(0, "k0")
    while try world.step(0) {}
    try compact(world)
    #expect(try entries(world) == 4)
    try world.expectEqual()
  }

  @Test("a device that only sends keeps its deletes behind what others have written, and reads on")
  func pushedAmongOthers() throws {
    let world = try SyncWorld()
    world.devices[0].direction = .push
    try world.put(0, "k", "1")
    while try world.step(0) {}
    try world.put(1, "foreign", "1")
    try world.put(1, "again", "1")
    try world.settle(only: 1)
    try world.put(0, "again", "mine")
    try world.put(0, "k", "2")
    world.devices[0].session.disconnect()
    while try world.step(0) {}
    try world.delete(0, "again")
    while try world.step(0) {}
    try compact(world)
    #expect(try world.get(0, "foreign") == nil)
    #expect(try versions(world, "again") == 1 && versions(world, "k") == 1)
    try verify(world)
    world.devices[0].direction = .both
    try world.settle()
    #expect(try world.serverState() == ["k": "2 ", "foreign": "1 "])
    try world.expectEqual()
    try compact(world)
    #expect(try versions(world, "again") == 0)
  }

  @Test("an entry that comes after an older version of a key still does after a compaction")
  func order() throws {
    let world = try SyncWorld(devices: 1)
    try world.settle()
    let photo = try world.write(0, "photo", "1")
    try world.write(0, "note", "1", after: [photo])
    try world.put(0, "photo", "2")
    try world.writeTogether(0, [("a", "1"), ("b", "1")])
    try world.put(0, "a", "2")
    try compact(world)
    try verify(world)
    let changes = try #require(try world.nextPush(0)).changes
    #expect(changes.contains { $0.atomicGroup != 0 && $0.key == Array("a".utf8) })
    let keys = changes.map { String(decoding: $0.key, as: UTF8.self) }
    let first = try #require(keys.firstIndex(of: "photo"))
    #expect(first < keys.firstIndex(of: "note") ?? keys.count)
    try world.settle()
    #expect(try world.serverState() == ["photo": "2 ", "note": "1 ", "a": "2 ", "b": "1 "])
  }
}
