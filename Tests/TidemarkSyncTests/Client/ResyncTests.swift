import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("Comparing everything with a peer")
struct ResyncTests {
  private static let day = 86_400

  /// Two devices with the same keys, of which the first then stays away past its lease, while
  /// the second deletes some and compacts the server's log.
  private func longAway(
    deleting count: Int, of keys: Int, resolver: ConflictResolver = .localWins
  ) throws -> SyncWorld {
    let world = try SyncWorld(resolver: resolver)
    for number in 0..<keys { try world.put(1, "key \(number)", "\(number)") }
    try world.settle()
    for number in 0..<count { try world.delete(1, "key \(number)") }
    for _ in 0..<10 {
      world.clock.advance(by: .seconds(10 * Self.day))
      try world.settle(only: 1)
    }
    try world.server.withEngine { engine in
      _ = try engine.compact(CompactionOptions(dropHistory: true))
    }
    return world
  }

  @Test("a device past its lease does not bring back what was deleted meanwhile")
  func deletesSurvive() throws {
    let world = try longAway(deleting: 5, of: 20)
    try world.put(0, "new", "x")
    try world.settle()
    #expect(
      try world.serverState().keys.sorted() == (5..<20).map { "key \($0)" }.sorted() + ["new"])
    try world.expectEqual()
    #expect(world.devices[0].session.totals.resyncs == 1)
  }

  @Test("an edit of a key that was deleted meanwhile survives by default")
  func editSurvives() throws {
    let world = try longAway(deleting: 5, of: 20)
    try world.put(0, "key 1", "edited")
    try world.settle()
    #expect(try world.serverState()["key 1"] == "edited ")
    #expect(try world.serverState()["key 2"] == nil)
    try world.expectEqual()
  }

  @Test("a delete of many keys there is asked about, and done when the user says so")
  func guarded() throws {
    let world = try longAway(deleting: 150, of: 200)
    try world.put(0, "new", "x")
    try world.settle(mayStop: true)
    #expect(try SyncWorld.state(world.devices[0].engine).count == 201)
    #expect(world.devices[0].session.progress.resync?.purge == .undecided)
    try world.restart(0)
    try world.settle(mayStop: true)
    #expect(world.devices[0].session.progress.resync?.purge == .undecided)
    try world.devices[0].session.decidePurge(true)
    try world.settle()
    #expect(try world.serverState().count == 51)
    try world.expectEqual()
  }

  @Test("the user's word counts for as many keys as it was given for")
  func moreThanAgreed() throws {
    let world = try longAway(deleting: 150, of: 2000)
    try world.settle(mayStop: true)
    #expect(world.devices[0].session.undecidedDeletions == 150)
    try world.devices[0].session.decidePurge(true)
    // Meanwhile nearly everything goes.
    for number in 150..<1900 { try world.delete(1, "key \(number)") }
    try world.settle(only: 1)
    try world.server.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    try world.settle(mayStop: true)
    #expect(world.devices[0].session.undecidedDeletions == 1900)
    #expect(try SyncWorld.state(world.devices[0].engine).count == 2000)
  }

  @Test("keys whose delete the user refuses come back into the feed")
  func refused() throws {
    let world = try longAway(deleting: 150, of: 200)
    try world.settle(mayStop: true)
    try world.devices[0].session.decidePurge(false)
    try world.settle()
    #expect(try world.serverState().count == 200)
    try world.expectEqual()
  }

  @Test("nothing differs: one comparison and nothing fetched")
  func equal() throws {
    let world = try longAway(deleting: 0, of: 300)
    try world.settle()
    #expect(world.devices[0].session.totals.comparisons == 1)
    #expect(world.devices[0].session.totals.pulled == 300)
    try world.expectEqual()
  }

  @Test("hundreds of keys that differ are compared and fetched with a handful of calls")
  func fewCalls() throws {
    let world = try longAway(deleting: 0, of: 3000)
    for number in stride(from: 0, to: 3000, by: 10) { try world.put(1, "key \(number)", "other") }
    try world.settle(only: 1)
    try world.server.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    var calls = 0
    world.devices[0].session.disconnect()
    repeat { calls += 1 } while try world.step(0) && !world.devices[0].session.isAtRest
    #expect(world.devices[0].session.totals.resyncs == 1)
    #expect(world.devices[0].session.totals.comparisons > 100)
    #expect(calls < 15, "\(calls) calls")
    try world.expectEqual()
  }

  @Test("a wider scope brings what lies before the cursor")
  func widened() throws {
    let world = try SyncWorld()
    for number in 0..<30 {
      try world.put(1, "key \(number)", "\(number)", labels: [number.isMultiple(of: 3) ? "a" : "b"])
    }
    world.devices[0].scope = SyncScope(labels: ["a"])
    try world.restart(0)
    try world.settle()
    #expect(try SyncWorld.state(world.devices[0].engine).count == 10)
    world.devices[0].scope = SyncScope(labels: ["a", "b"])
    try world.restart(0)
    try world.put(0, "key 1", "mine", labels: ["b"])
    try world.settle()
    #expect(try world.serverState()["key 1"] == "mine b")
    try world.expectEqual()
  }
}
