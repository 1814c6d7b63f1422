import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("A peer that fails on a change")
struct GivingUpTests {
  /// Works until nothing is left, at a peer that fails whenever it sees one of the keys.
  private func settle(
    _ world: SyncWorld, failingOn keys: Set<String>, kind: PeerError.Kind = .failed,
    calls most: Int = 2_000
  ) throws -> Int {
    let session = world.devices[0].session
    for call in 0..<most {
      guard let next = try session.next() else { return call }
      if case .pushRequest(let push) = next,
        push.changes.contains(where: { keys.contains(String(decoding: $0.key, as: UTF8.self)) })
      {
        try session.failed(PeerError(kind, "it cannot digest that"))
        continue
      }
      do { try session.receive(world.answer(next)) } catch let error as PeerError {
        try session.failed(error)
      }
      if session.isAtRest { return call }
    }
    return most
  }

  @Test("a change that the peer fails on is parked alone, and all others go through")
  func poison() throws {
    let world = try SyncWorld(devices: 1)
    for number in 0..<100 { try world.put(0, "key \(number)", "\(number)") }
    let calls = try settle(world, failingOn: ["key 37", "key 38", "key 99"])
    #expect(calls < 2_000)
    #expect(try world.serverState().count == 97)
    let waiting = world.devices[0].session.outbox.waiting
    #expect(waiting.count == 3)
    for reason in waiting.values {
      #expect(reason == .parked(SyncRejection(code: "failed", message: "it cannot digest that")))
    }
    #expect(try world.repeatedOperations().isEmpty)
    // A later put is the user's word, and clears it.
    try world.put(0, "key 37", "better")
    try world.settle()
    #expect(try world.serverState()["key 37"] == "better ")
    #expect(world.devices[0].session.outbox.waiting.count == 2)
  }

  @Test("nothing is left of what waited for a peer that was made anew, also after a restart")
  func madeAnew() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    try world.put(0, "bad", "1")
    try world.settle(mayStop: true)
    #expect(world.devices[0].session.outbox.waiting.count == 1)
    world.server.options.validators = []
    try world.restoreServer(nil)
    try world.settle()
    try world.restart(0)
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
    #expect(try world.serverState() == ["bad": "1 "])
    try world.expectEqual()
  }

  @Test("a peer that refuses everything is sent no more than the user can be asked about")
  func refusesAll() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    world.devices[0].session.mostWaiting = 10
    for number in 0..<12 { try world.put(0, "bad \(number)", "1") }
    try world.settle(mayStop: true)
    #expect(world.devices[0].session.tooManyWaiting == nil, "there is nothing more to send")
    try world.put(0, "good", "1")
    world.devices[0].session.disconnect()
    while try world.step(0) {}
    #expect(world.devices[0].session.tooManyWaiting == 12)
    #expect(try world.serverState().isEmpty)
    // They are known after a restart, though they are not written down with every commit.
    let waiting = world.devices[0].session.outbox.waiting
    #expect(try PeerState(progress: world.devices[0].session.progress).encoded().count < 80)
    try world.restart(0)
    #expect(world.devices[0].session.outbox.waiting == waiting)
    world.devices[0].session.mostWaiting = 10
    for sequence in waiting.keys.sorted().prefix(3) {
      var table = PendingTable(after: world.devices[0].session.outbox.frontier)
      try table.refresh(world.devices[0].session)
      _ = try world.devices[0].session.discard([sequence], table)
    }
    while try world.step(0), !world.devices[0].session.isAtRest {}
    #expect(try world.serverState() == ["good": "1 "])
  }

  @Test(
    "a failure that may pass parks nothing, however often it comes",
    arguments: [PeerError.Kind.unavailable, .busy, .unauthorized])
  func transient(kind: PeerError.Kind) throws {
    let world = try SyncWorld(devices: 1)
    for number in 0..<10 { try world.put(0, "key \(number)", "\(number)") }
    #expect(try settle(world, failingOn: ["key 3"], kind: kind, calls: 300) == 300)
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
    #expect(try world.serverState().isEmpty)
    try world.settle()
    #expect(try world.serverState().count == 10)
  }
}
