import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Changes that the peer has not heard of, or not any more")
struct UnheardTests {
  private static let day = 86_400

  private func compact(_ world: SyncWorld, _ index: Int) throws {
    try world.devices[index].engine.compact(CompactionOptions(dropHistory: true))
  }

  private func change(
    _ world: SyncWorld, _ index: Int, scope labels: [String]
  ) throws {
    world.devices[index].scope = SyncScope(labels: labels.map { EntryLabel($0) })
    try world.restart(index)
  }

  // MARK: Scopes

  @Test("a key that leaves the scope by us is sent")
  func leaves() throws {
    let world = try SyncWorld()
    try change(world, 0, scope: ["a"])
    try world.put(0, "k", "1", labels: ["a"])
    try world.settle()
    try world.put(0, "k", "2", labels: ["b"])
    try world.settle()
    #expect(try world.serverState() == ["k": "2 b"])
    #expect(try world.get(1, "k") == "2")
  }

  @Test("a write out of scope is not lost to what comes within it")
  func outside() throws {
    let world = try SyncWorld()
    try change(world, 0, scope: ["a"])
    try world.put(0, "k", "mine", labels: ["b"])
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.put(1, "k", "theirs", labels: ["a"])
    try world.settle()
    #expect(try world.get(0, "k") == "mine")
    #expect(try world.serverState() == ["k": "mine b"])
  }

  @Test("a key that has left the scope comes back when that is widened")
  func evicted() throws {
    let world = try SyncWorld()
    try change(world, 0, scope: ["a"])
    try world.put(0, "k", "1", labels: ["a"])
    try world.settle()
    try world.put(1, "k", "2", labels: ["b"])
    try world.settle()
    #expect(try world.get(0, "k") == nil)
    try change(world, 0, scope: [])
    try world.settle()
    #expect(try world.get(0, "k") == "2")
    try world.expectEqual()
  }

  @Test("a key that left the scope before our own change of it came in stays")
  func leftBefore() throws {
    let world = try SyncWorld()
    try world.server.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    try change(world, 0, scope: ["a"])
    try world.put(0, "k", "1", labels: ["a"])
    try world.settle()
    try world.put(1, "k", "2")
    try world.settle(only: 1)
    world.clock.advance(by: .seconds(1))
    try world.put(0, "k", "3", labels: ["a"])
    #expect(try world.step(0))
    try world.settle()
    #expect(try world.get(0, "k") == "3")
    #expect(try world.serverState() == ["k": "3 a"])
  }

  @Test("a key that a remote made anew has lost out of scope is brought back when that is widened")
  func lostOutside() throws {
    let world = try SyncWorld()
    try world.put(1, "k", "1", labels: ["b"])
    try world.settle()
    try change(world, 0, scope: ["a"])
    try world.settle(only: 0)
    try world.restoreServer(nil)
    try world.settle(only: 0)
    #expect(try world.serverState().isEmpty)
    try change(world, 0, scope: [])
    try world.settle(only: 0)
    #expect(try world.serverState() == ["k": "1 b"])
  }

  // MARK: Restored servers

  @Test("a change that was only brought back gives way to what others have made of it")
  func broughtBack() throws {
    let world = try SyncWorld(devices: 3)
    let empty = try world.backUpServer()
    try world.put(1, "k", "old")
    try world.settle(only: 1)
    try world.settle(only: 2)
    let backup = try world.backUpServer()
    try world.restoreServer(empty)
    try world.settle(only: 2)
    try world.put(0, "k", "new")
    try world.settle(only: 0)
    try world.restoreServer(backup)
    try world.settle()
    #expect(try world.serverState() == ["k": "new "])
    try world.expectEqual()
  }

  @Test("a delete is not undone by those who bring back what a server made anew had lost")
  func deleted() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "1")
    try world.settle()
    try world.restoreServer(nil)
    try world.delete(0, "k")
    try world.settle(only: 0)
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.expectEqual()
  }

  @Test("an independent edit survives such a delete")
  func deletedAndEdited() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "1")
    try world.settle(only: 0)
    try world.restoreServer(nil)
    try world.delete(0, "k")
    try world.settle(only: 0)
    try world.put(1, "k", "2")
    try world.settle()
    #expect(try world.serverState() == ["k": "2 "])
    try world.expectEqual()
  }

  @Test("a restored device deletes what its former life has sent")
  func deletedByRestored() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "1")
    let backup = try world.backUp(0)
    try world.settle()
    try world.restore(0, backup)
    try world.delete(0, "k")
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.expectEqual()
  }

  @Test("an own operation that the feed has again does not win over what was made of it")
  func confirmed() throws {
    let world = try SyncWorld()
    let empty = try world.backUpServer()
    try world.put(0, "k", "1")
    try world.settle()
    let backup = try world.backUpServer()
    try world.restoreServer(empty)
    // It is pending again, and meets the feed that has it before that is found out.
    world.devices[0].session.disconnect()
    #expect(try world.step(0))
    #expect(try world.step(0))
    try world.restoreServer(backup)
    try world.put(1, "k", "2")
    try world.settle(only: 1)
    try world.settle()
    #expect(try world.serverState() == ["k": "2 "])
    try world.expectEqual()
  }

  // MARK: Compaction

  @Test("a change upon a delete that the feed has let go of is sent in the end")
  func deleteGone() throws {
    let world = try SyncWorld()
    try world.put(1, "k", "1")
    try world.settle()
    for _ in 0..<10 {
      world.clock.advance(by: .seconds(10 * Self.day))
      try world.settle(only: 0)
    }
    try world.delete(0, "k")
    try world.settle(only: 0)
    try world.put(1, "k", "2")
    world.devices[1].session.disconnect()
    #expect(try world.nextPush(1)?.changes.count == 1)
    try world.server.withEngine { engine in
      _ = try engine.compact(CompactionOptions(dropHistory: true))
    }
    try world.settle()
    #expect(try world.serverState() == ["k": "2 "])
    try world.expectEqual()
  }

  @Test("the base of a refused change is known after a compaction")
  func refusedBase() throws {
    let world = try SyncWorld(resolver: .remoteWins)
    world.server.options.validators = [
      SyncValidator { change, _ in
        change.content.value.starts(with: Array("bad".utf8))
          ? SyncRejection(code: "bad", message: "not here") : nil
      }
    ]
    try world.put(1, "k", "1")
    try world.settle()
    try world.put(0, "k", "bad")
    try world.settle(only: 0)
    try compact(world, 0)
    try world.put(0, "k", "2")
    try world.settle()
    #expect(try world.serverState() == ["k": "2 "])
    try world.expectEqual()
  }

  @Test("a delete whose put was never sent keeps what that was made upon, whatever is compacted")
  func deleteOfUnsentPut() throws {
    let world = try SyncWorld()
    try world.put(1, "k", "1")
    try world.settle()
    try world.put(0, "k", "2")
    try world.delete(0, "k")
    // The batch is given up for one that the server has in its place.
    let push = try #require(try world.nextPush(0))
    for _ in 0..<BatchInFlight.mostFailures {
      try world.devices[0].session.failed(PeerError(.failed, "no"))
      #expect(try world.nextPush(0) != nil)
    }
    #expect(push.changes.count == 1)
    try compact(world, 0)
    try world.restart(0)
    try compact(world, 0)
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.expectEqual()
  }

  @Test("a refused change that another has replaced out of scope does not wait for ever")
  func refusedAndGone() throws {
    let world = try SyncWorld()
    world.server.options.validators = [
      SyncValidator { _, _ in SyncRejection(code: "no", message: "not here") }
    ]
    try change(world, 0, scope: ["a"])
    try world.put(0, "k", "1", labels: ["a"])
    try world.settle(only: 0)
    #expect(world.devices[0].session.outbox.waiting.count == 1)
    try world.put(0, "k", "2")
    try world.put(0, "other", "1", labels: ["a"])
    try world.settle(only: 0)
    try compact(world, 0)
    try world.restart(0)
    #expect(world.devices[0].session.outbox.waiting.count == 1)
  }

  @Test("a delete that is gone from the log counts, when a feed that is restored is read once more")
  func deletedLongAgo() throws {
    let world = try SyncWorld()
    try world.put(1, "k", "1")
    try world.settle()
    try world.delete(0, "k")
    try world.settle(only: 0)
    let backup = try world.backUpServer()
    try world.restoreServer(backup)
    try world.put(0, "other", "1")
    try world.settle(only: 0)
    try compact(world, 0)
    // The epoch that the cursor speaks of was never there.
    try world.restoreServer(backup)
    try world.settle()
    #expect(try world.get(0, "k") == nil)
    try world.expectEqual()
  }
}
