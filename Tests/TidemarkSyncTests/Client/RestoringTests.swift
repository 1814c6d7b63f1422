import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("Replicating with older copies")
struct RestoringTests {
  @Test("a server restored from an older copy gets back what it had lost")
  func server() throws {
    let world = try SyncWorld()
    try world.put(0, "kept", "1")
    try world.settle()
    let backup = try world.backUpServer()
    try world.put(0, "mine", "2")
    try world.put(1, "theirs", "3")
    try world.delete(1, "kept")
    try world.settle()
    let before = try world.serverState()
    try world.restoreServer(backup)
    #expect(try world.serverState() == ["kept": "1 "])
    try world.put(0, "later", "4")
    try world.settle()
    #expect(try world.serverState() == before.merging(["later": "4 "]) { $1 })
    try world.expectEqual()
  }

  @Test("a copy that wrote to a restored server first is told from its original")
  func serverAndClone() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "kept", "1")
    try world.settle()
    let server = try world.backUpServer()
    let device = try world.backUp(0)
    try world.put(0, "mine", "2")
    try world.settle()
    try world.restoreServer(server)
    try world.clone(device)
    // Under the same name, with the same sequence and number.
    try world.put(1, "copy's", "3")
    try world.settle(only: 1)
    try world.settle()
    #expect(try world.serverState() == ["kept": "1 ", "mine": "2 ", "copy's": "3 "])
    try world.expectEqual()
  }

  @Test("a change that a twice restored server has again is known under the former name")
  func restoredTwice() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "a", "1")
    try world.settle()
    let older = try world.backUpServer()
    try world.put(0, "b", "2")
    try world.settle()
    let newer = try world.backUpServer()
    let replica = world.devices[0].session.replica
    try world.restoreServer(older)
    world.devices[0].session.disconnect()
    try world.step(0)
    #expect(world.devices[0].session.replica != replica)
    #expect(world.devices[0].session.outbox.pending.count == 1)
    try world.restoreServer(newer)
    try world.restart(0)
    try world.settle()
    #expect(world.devices[0].session.totals.pushed == 0)
    #expect(try world.serverState() == ["a": "1 ", "b": "2 "])
    try world.expectEqual()
  }

  @Test("a mark of no batch makes nothing under the store's name its own")
  func noBatch() throws {
    let world = try SyncWorld(devices: 1)
    let session = world.devices[0].session
    #expect(session.progress.number == 0 && !session.isOurs(0, .none))
    while try world.step(0) {}
    let entry = FeedEntry(
      position: FeedPosition(epoch: 1, offset: 1), kind: .own,
      operation: OperationID(replica: session.replica, sequence: 1), key: [])
    #expect(session.isForeign(entry))
    try world.put(0, "k", "1")
    try world.settle()
    #expect(session.isOurs(session.progress.number, session.progress.batchID))
  }

  @Test("a feed that was opened again since the backup is read from its common end on")
  func openedSince() throws {
    let world = try SyncWorld()
    for key in 0..<5 { try world.put(0, "key\(key)", "1") }
    try world.settle()
    let backup = try world.backUpServer()
    let cursors = world.devices.map(\.session.progress.cursor.offset)
    try world.restoreServer(backup)
    try world.put(0, "since", "2")
    try world.settle()
    try world.restart(1)
    try world.restoreServer(backup)
    for (device, cursor) in zip(world.devices.indices, cursors) {
      world.devices[device].session.disconnect()
      try world.step(device)
      #expect(world.devices[device].session.progress.cursor.offset >= cursor && cursor > 5)
    }
    try world.settle()
    #expect(try world.serverState().count == 6)
    try world.expectEqual()
  }

  @Test("a remote made anew gets everything, and takes nothing away")
  func anew() throws {
    let world = try SyncWorld()
    for number in 0..<20 { try world.put(number % 2, "key \(number)", "\(number)") }
    try world.settle()
    let before = try world.serverState()
    try world.restoreServer(nil)
    try world.put(1, "later", "x")
    try world.settle()
    #expect(try world.serverState() == before.merging(["later": "x "]) { $1 })
    try world.expectEqual()
  }

  @Test("a device restored from an older copy takes back what it had sent, and sends what is new")
  func device() throws {
    let world = try SyncWorld()
    try world.put(0, "kept", "1")
    try world.settle()
    let backup = try world.backUp(0)
    try world.put(0, "sent", "2")
    try world.put(0, "kept", "changed")
    try world.settle()
    try world.restore(0, backup)
    try world.put(0, "new", "3")
    try world.settle()
    #expect(
      try world.serverState() == ["kept": "changed ", "sent": "2 ", "new": "3 "])
    try world.expectEqual()
  }

  @Test("two copies of one store, both written to, lose nothing")
  func clone() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "common", "0")
    try world.settle()
    try world.clone(try world.backUp(0))
    for round in 0..<5 {
      try world.put(0, "first \(round)", "a")
      try world.put(1, "second \(round)", "b")
      if round.isMultiple(of: 2) { try world.settle() }
    }
    try world.settle()
    #expect(try world.serverState().count == 11)
    #expect(world.devices[0].engine.reader.replicaID != world.devices[1].engine.reader.replicaID)
    try world.expectEqual()
  }

  @Test("a change that others made of one that they had brought back stays")
  func builtUpon() throws {
    let world = try SyncWorld()
    try world.put(0, "other", "value")
    try world.settle()
    let backup = try world.backUpServer()
    try world.put(0, "key", "first")
    try world.settle()
    try world.restoreServer(backup)
    try world.settle(only: 1)
    try world.put(1, "key", "second")
    try world.settle(only: 1)
    // The writer of the first comes back only now.
    try world.settle()
    #expect(try world.serverState() == ["key": "second ", "other": "value "])
    try world.expectEqual()
  }

  @Test("a put of others where they had brought a delete back stays")
  func builtUponDelete() throws {
    let world = try SyncWorld(resolver: ConflictResolver(deleteEdit: .deleteWins) { _ in .local })
    try world.put(0, "key", "first")
    try world.settle()
    let backup = try world.backUpServer()
    try world.delete(0, "key")
    try world.settle()
    try world.restoreServer(backup)
    try world.settle(only: 1)
    try world.put(1, "key", "second")
    try world.settle(only: 1)
    try world.settle()
    #expect(try world.serverState() == ["key": "second "])
    try world.expectEqual()
  }

  @Test("a device that comes late to a remote made anew takes the deletes that it has had since")
  func lateToNew() throws {
    let world = try SyncWorld(devices: 3)
    try world.put(0, "key", "value")
    try world.settle()
    try world.restoreServer(nil)
    try world.settle(only: 0)
    try world.delete(0, "key")
    try world.settle(only: 0)
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.expectEqual()
  }

  @Test("a delete that a restored server has lost goes again, with the history dropped meanwhile")
  func lostDelete() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "key", "value")
    try world.settle()
    let backup = try world.backUpServer()
    try world.put(0, "key", "never sent")
    try world.delete(0, "key")
    try world.settle()
    try world.restoreServer(backup)
    world.devices[0].session.disconnect()
    try world.step(0)
    try world.devices[0].engine.compact(CompactionOptions(dropHistory: true))
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.expectEqual()
  }

  @Test("a delete of what a former life has sent stays when others bring that back")
  func formerLife() throws {
    let world = try SyncWorld()
    try world.put(0, "other", "value")
    try world.settle()
    let server = try world.backUpServer()
    try world.put(0, "key", "value")
    let device = try world.backUp(0)
    try world.settle()
    try world.restore(0, device)
    try world.delete(0, "key")
    try world.restoreServer(server)
    try world.settle()
    #expect(try world.serverState() == ["other": "value "])
    try world.expectEqual()
  }

  @Test("entries a restored feed is read once more for do not count before what stands behind them")
  func readAgain() throws {
    let world = try SyncWorld(resolver: .remoteWins)
    world.devices[0].scope = SyncScope(labels: ["a"])
    try world.devices[0].engine.close()
    try world.reopen(0)
    try world.put(1, "key", "1", labels: ["a"])
    try world.settle()
    let backup = try world.backUpServer()
    try world.put(0, "key", "2")
    let late = try #require(try world.nextPush(0))
    try world.settle()
    // Out of scope.
    try world.put(0, "key", "3")
    try world.settle()
    try world.restoreServer(backup)
    _ = try world.answer(.pushRequest(late))
    try world.settle()
    #expect(try world.serverState() == ["key": "2 "])
    #expect(try world.get(0, "key") == "3")
  }

  @Test(
    "with restored servers and devices in a storm nothing is lost that was not undone",
    arguments: 1...16 as ClosedRange<UInt64>)
  func storm(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let world = try SyncWorld(seed: seed, devices: 3)
    var copies: [(device: Int, disk: DiskSnapshot)] = []
    var servers: [DiskSnapshot] = []
    for step in 0..<250 {
      let index = generator.int(below: 3)
      switch generator.int(below: 40) {
      case 0..<12: try world.put(index, "key \(generator.int(below: 12))", "\(index) \(step)")
      case 12..<16: try world.delete(index, "key \(generator.int(below: 12))")
      case 16: copies.append((index, try world.backUp(index)))
      case 17: servers.append(try world.backUpServer())
      case 18:
        if let copy = generator.pick(copies) { try world.restore(copy.device, copy.disk) }
      case 19: if let copy = generator.pick(servers) { try world.restoreServer(copy) }
      case 20: try world.restart(index, losesPower: generator.chance(0.5))
      default: try world.step(index, generator.pick(SyncWorld.Weather.allCases) ?? .fine)
      }
    }
    try world.settle()
    try world.expectEqual("seed \(seed)")
  }
}
