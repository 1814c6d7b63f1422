import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("Replicating with a server")
struct SyncSessionTests {
  @Test("a write on one device arrives at the server and at another device, deletes too")
  func arrives() throws {
    let world = try SyncWorld()
    for number in 0..<50 { try world.put(0, "key \(number)", "value", labels: ["a", "b"]) }
    try world.settle()
    #expect(try world.serverState().count == 50)
    #expect(try SyncWorld.state(world.devices[1].engine) == world.serverState())
    try world.delete(0, "key 7")
    try world.put(1, "key 8", "other")
    try world.settle()
    #expect(try world.get(1, "key 7") == nil)
    #expect(try world.get(0, "key 8") == "other")
    #expect(world.devices[0].session.totals.conflicts == 0)
  }

  @Test("the last of several unsent changes of a key goes, nothing of one put and deleted unsent")
  func coalesces() throws {
    let world = try SyncWorld(devices: 1)
    for number in 0..<10 { try world.put(0, "key", "\(number)") }
    try world.put(0, "gone", "x")
    try world.delete(0, "gone")
    try world.settle()
    #expect(world.devices[0].session.totals.pushed == 1)
    #expect(try world.serverState() == ["key": "9 "])
  }

  @Test("an edit made while its predecessor was under way stays pending and arrives")
  func editInFlight() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "key", "one")
    let push = try #require(try world.nextPush(0))
    try world.put(0, "key", "two")
    let answer = try world.answer(.pushRequest(push))
    try world.devices[0].session.receive(answer)
    try world.settle()
    #expect(try world.serverState() == ["key": "two "])
  }

  @Test("a batch whose answer was lost counts once", arguments: [false, true])
  func lostAnswer(restarts: Bool) throws {
    let world = try SyncWorld(devices: 2)
    try world.put(0, "key", "one")
    let push = try #require(try world.nextPush(0))
    _ = try world.answer(.pushRequest(push))
    world.devices[0].session.disconnect()
    if restarts { try world.restart(0, losesPower: true) }
    try world.settle()
    #expect(world.devices[0].session.progress.number == 1)
    #expect(try world.get(1, "key") == "one")
    #expect(world.devices[1].session.totals.pulled == 1)
  }

  @Test("a batch prepared while another one travelled is sent as it was prepared")
  func prepared() throws {
    let world = try SyncWorld(devices: 1)
    try world.settle()
    world.devices[0].session.limits.changes = 1
    try world.put(0, "a", "1")
    try world.put(0, "b", "2")
    let first = try #require(try world.nextPush(0))
    let next = try #require(try world.devices[0].session.prepareBatch())
    #expect(next.changes.map(\.name) == ["b"])
    // It belongs to no feed that holds another batch there.
    #expect(first.previousBatchID == BatchID.none && next.previousBatchID == first.batchID)
    try world.devices[0].session.receive(world.answer(.pushRequest(first)))
    #expect(try world.nextPush(0) == next)
    try world.settle()
    #expect(try world.serverState() == ["a": "1 ", "b": "2 "])
  }

  @Test("two edits offline: each resolver gives its result on both sides")
  func conflict() throws {
    let cases: [(ConflictResolver, [String: String])] = [
      (.localWins, ["key": "second "]), (.remoteWins, ["key": "first "]),
      (.keepBoth(), ["key": "first ", "key (local)": "second "]),
    ]
    for (resolver, expected) in cases {
      let world = try SyncWorld(resolver: resolver)
      try world.put(0, "key", "base")
      try world.settle()
      try world.put(0, "key", "first")
      try world.put(1, "key", "second")
      try world.settle()
      #expect(try world.serverState() == expected)
      for device in world.devices { #expect(try SyncWorld.state(device.engine) == expected) }
    }
  }

  @Test("two values that are laid beside their keys at once get keys of their own")
  func bothTwice() throws {
    let world = try SyncWorld(resolver: .keepBoth())
    for (device, round) in [(0, "first"), (1, "second")] {
      try world.put(device, "a", round)
      try world.put(device, "a (local)", "beside \(round)")
    }
    try world.settle(only: 0)
    try world.settle()
    let values = try Set(world.serverState().values)
    #expect(values == ["first ", "beside first ", "second ", "beside second "])
    try world.expectEqual()
  }

  @Test("a value that was changed and changed back is a change: the resolver is asked")
  func changedBack() throws {
    let world = try SyncWorld(resolver: .localWins)
    try world.put(0, "key", "A")
    try world.settle()
    try world.put(0, "key", "B")
    try world.put(0, "key", "A")
    try world.put(1, "key", "C")
    try world.settle(only: 1)
    try world.settle()
    #expect(try world.serverState() == ["key": "A "])
    try world.expectEqual()
  }

  @Test("a three-way merge keeps the fields of both")
  func merge() throws {
    let world = try SyncWorld(resolver: .mergeFields())
    try world.put(0, "key", #"{"a":1,"b":1}"#)
    try world.settle()
    try world.put(0, "key", #"{"a":2,"b":1}"#)
    try world.put(1, "key", #"{"a":1,"b":3}"#)
    try world.settle()
    for index in 0..<2 { #expect(try world.get(index, "key") == #"{"a":2,"b":3}"#) }
  }

  @Test(
    "every change arrives once and all end equal, over any network",
    arguments: 1...12 as ClosedRange<UInt64>)
  func storm(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let world = try SyncWorld(seed: seed, devices: 3)
    for _ in 0..<300 {
      let index = generator.int(below: 3)
      switch generator.int(below: 20) {
      case 0..<6:
        try world.put(
          index, "key \(generator.int(below: 12))", "\(index) \(generator.int(below: 1000))")
      case 6..<8: try world.delete(index, "key \(generator.int(below: 12))")
      case 8: try world.restart(index, losesPower: generator.chance(0.5))
      case 9: try world.server.close()
      default:
        try world.step(index, generator.pick(SyncWorld.Weather.allCases) ?? .fine)
      }
    }
    try world.settle()
    let server = try world.serverState()
    for (index, device) in world.devices.enumerated() {
      #expect(try SyncWorld.state(device.engine) == server, "seed \(seed), device \(index)")
      #expect(device.session.outbox.waiting.isEmpty, "seed \(seed)")
    }
    #expect(try world.repeatedOperations().isEmpty, "seed \(seed)")
  }

  @Test("conflicts that came to an end do not count for later ones of the key")
  func rounds() throws {
    let world = try SyncWorld(resolver: .mergeFields())
    try world.put(0, "key", #"{"a":0,"b":0}"#)
    try world.settle()
    for number in 1...SyncSession.mostRounds * 2 {
      try world.put(0, "key", #"{"a":\#(number),"b":\#(number - 1)}"#)
      try world.put(1, "key", #"{"a":\#(number - 1),"b":\#(number)}"#)
      try world.settle()
      for index in 0..<2 {
        #expect(try world.get(index, "key") == #"{"a":\#(number),"b":\#(number)}"#)
      }
    }
  }

  @Test("a resolver whose results are overtaken again and again gives way to the user")
  func roundsWithoutEnd() throws {
    let world = try SyncWorld()
    try world.put(0, "key", "base")
    try world.settle()
    try world.put(1, "key", "mine")
    var pushes = 0
    while pushes < 20, let push = try world.nextPush(1) {
      pushes += 1
      // Before it arrives the other device has written again.
      try world.put(0, "key", "theirs \(pushes)")
      try world.settle(only: 0)
      try world.devices[1].session.receive(world.answer(.pushRequest(push)))
    }
    #expect(pushes == SyncSession.mostRounds + 1)
    #expect(Array(world.devices[1].session.outbox.waiting.values) == [.needsDecision])
    #expect(try world.get(1, "key") == "mine")
  }

  @Test("a conflict that a push meets before the feed was read is put to the resolver")
  func conflictBeforePull() throws {
    let world = try SyncWorld()
    try world.put(0, "k", "first")
    try world.settle()
    // Both write; the second hears of the first one's change by the verdict on its own only.
    try world.put(0, "k", "by the first")
    try world.put(1, "k", "by the second")
    let push = try #require(try world.nextPush(1))
    try world.settle(only: 0)
    try world.devices[1].session.receive(world.answer(.pushRequest(push)))
    #expect(!world.devices[1].session.outbox.waiting.isEmpty)
    // Only the values are asked for: the feed has not been read yet.
    let keys = try world.devices[1].session.keysToFetch()
    #expect(keys == [Array("k".utf8)])
    let request = ValuesRequest(replica: world.devices[1].session.replica, keys: keys)
    try world.devices[1].session.receive(world.answer(.valuesRequest(request)))
    #expect(try world.get(1, "k") == "by the second")
    try world.settle()
    #expect(try world.serverState() == ["k": "by the second "])
    try world.expectEqual()
  }

  @Test("a change that another has made alike keeps no second copy, and is built upon")
  func duplicates() throws {
    let world = try SyncWorld()
    try world.put(0, "other", "1")
    try world.settle()
    for index in 0..<2 { try world.put(index, "k", "same") }
    let push = try #require(try world.nextPush(1))
    try world.settle(only: 0)
    try world.devices[1].session.receive(world.answer(.pushRequest(push)))
    #expect(world.devices[1].session.totals.duplicates == 1)
    try world.settle()
    #expect(world.devices.allSatisfy { !$0.session.records.hasRemoteStates })
    for index in 0..<2 {
      try world.put(index, "k", "\(index)")
      try world.settle()
      #expect(try world.serverState() == ["k": "\(index) ", "other": "1 "])
    }
    #expect(world.devices.allSatisfy { $0.session.totals.conflicts == 0 })
    try world.expectEqual()
  }

  @Test("an edit sent by itself costs one commit more, and its verdict is told again after a kill")
  func unwritten() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "k", "1")
    try world.settle()
    let before = world.devices[0].engine.reader.lastSequence
    try world.put(0, "k", "2")
    while try world.step(0) {}
    #expect(world.devices[0].session.hasUnwritten)
    // The edit, and what is known of the peer.
    #expect(world.devices[0].engine.reader.lastSequence == before + 2)
    try world.reopenKilled(0)
    #expect(world.devices[0].session.batchInFlight != nil && !world.devices[0].session.hasUnwritten)
    try world.settle()
    #expect(world.devices[0].session.batchInFlight == nil)
    #expect(try world.serverState() == ["k": "2 "])
    try world.expectEqual()
  }
}
