import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("What compaction keeps for peers")
struct PinTests {
  private func compact(_ world: SyncWorld) throws {
    try world.devices[0].engine.compact(CompactionOptions(dropHistory: true))
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

  @Test("what a change was made upon is there for a merge after a compaction")
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

  @Test("a peer that was not heard of for ninety days holds nothing back")
  func lapsed() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "1")
    try world.settle()
    let acknowledged = world.devices[0].engine.lastSequence
    for number in 0..<50 { try world.put(0, "k", "later \(number)") }
    try compact(world)
    #expect(try world.devices[0].engine.bounds().historyFrom <= acknowledged)
    world.clock.advance(by: .seconds(91 * 86_400))
    try compact(world)
    #expect(try world.devices[0].engine.bounds().historyFrom >= acknowledged + 50)
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
      try world.devices[0].session.receive(world.answer(.pull(pull)))
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
    let before = world.devices[0].engine.lastSequence
    try compact(world)
    #expect(try world.devices[0].engine.bounds().historyFrom + 20 > before)
  }
}
