import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// An entry goes once the peer has taken those that it comes after, not where they were refused.
@Suite("Changes that come after others wait for the verdict", .timeLimit(.minutes(20)))
struct VerdictOrderTests {
  /// The fate of the change that others come after.
  enum Fate: CaseIterable {
    case refused, ofRefusedGroup, behindRefused, undecided, replacedAndRefused, deleteOfUnreached
  }

  @Test(
    "nothing that comes after a change is applied by the batch that has not applied that",
    arguments: Fate.allCases)
  func sameBatch(fate: Fate) throws {
    let world = try SyncWorld(devices: 1, resolver: .ask)
    world.refuse(prefix: "bad")
    let target = try write(fate, world)
    try world.write(0, "child", "1", after: [target])
    try world.write(0, "urgent child", "1", after: [target], priority: 2)
    let low = try world.write(0, "low child", "1", after: [target], priority: -1)
    try world.write(0, "grandchild", "1", after: [low])
    try world.put(0, "other", "1")
    try world.settle()
    let held = try world.serverState().keys.filter { $0.contains("child") }
    #expect(held.isEmpty, "\(held)")
    #expect(try world.serverState()["other"] != nil)
    // It holds as well when the program was ended meanwhile, and all goes once the peer takes it.
    try world.restart(0)
    try world.settle()
    try world.acceptAll()
    world.devices[0].access = .everything
    for (change, reason) in try world.devices[0].session.waitingForUser() {
      if reason == .needsDecision {
        try world.devices[0].session.decide(change.key, .local)
      } else {
        _ = try world.devices[0].session.retry([change.sequence])
      }
    }
    try world.settle()
    #expect(try world.serverState().keys.count { $0.contains("child") } == 4)
  }

  /// - Returns: the change that others are to come after.
  private func write(_ fate: Fate, _ world: SyncWorld) throws -> UInt64 {
    switch fate {
    case .refused: return try world.write(0, "bad", "1")
    case .ofRefusedGroup:
      try world.writeTogether(0, [("bad", "1"), ("good", "1")])
      return world.devices[0].engine.reader.lastSequence
    case .behindRefused:
      let first = try world.write(0, "bad", "1")
      return try world.write(0, "good", "1", after: [first])
    case .undecided:
      try world.addDevice("other")
      try world.put(1, "k", "theirs")
      try world.settle(only: 1)
      return try world.write(0, "k", "mine")
    case .replacedAndRefused:
      let first = try world.write(0, "bad", "1")
      try world.write(0, "bad", "2")
      return first
    case .deleteOfUnreached:
      try world.put(0, "away/k", "1")
      try world.settle()
      world.devices[0].access = SyncAccess(
        to: SyncScope(keyPrefixes: ["child", "urgent", "low", "grand", "other"]))
      try world.delete(0, "away/k")
      return world.devices[0].engine.reader.lastSequence
    }
  }

  @Test("a batch is not prepared of entries that come after one in flight", arguments: [1, 3, 50])
  func prepared(children: Int) throws {
    let world = try SyncWorld(devices: 1)
    let target = try world.write(0, "parent", "1")
    for number in 0..<children { try world.write(0, "child \(number)", "1", after: [target]) }
    #expect(try world.nextPush(0)?.changes.map(\.name) == ["parent"])
    try world.write(0, "late child", "1", after: [target])
    #expect(try world.devices[0].session.prepareBatch() == nil)
    try world.step(0)
    #expect(try world.nextPush(0)?.changes.count == children + 1)
    try world.settle()
    #expect(try world.serverState().count == children + 2)
  }

  @Test("two changes of a key are never in one batch where the later one comes after others")
  func oneOfAKey() throws {
    let world = try SyncWorld(devices: 1)
    let target = try world.write(0, "photo", "1")
    try world.settle()
    try world.write(0, "album", "1")
    try world.write(0, "album", "2", after: [target])
    for value in ["1", "2"] {
      let push = try #require(try world.nextPush(0))
      #expect(push.changes.map(\.name) == ["album"])
      #expect(push.changes.first?.content.value == Array(value.utf8))
      try world.step(0)
    }
    try world.settle()
    #expect(try world.serverState() == ["album": "2 ", "photo": "1 "])
  }

  @Test("a lost answer, a restored peer and a killed program leave the order as it is")
  func again() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "before", "1")
    try world.settle()
    let backup = try world.backUpServer()
    let target = try world.write(0, "parent", "1")
    let child = try world.write(0, "child", "1", after: [target])
    try world.write(0, "grandchild", "1", after: [child])
    while try world.nextPush(0) != nil {
      try world.step(0, .answerLost)
      try world.restart(0)
      try world.step(0)
    }
    try world.settle()
    #expect(try world.serverState().count == 4)
    // All are to be sent again, one behind the other.
    try world.restoreServer(backup)
    try world.settle()
    #expect(try world.serverState().count == 4)
    #expect(world.devices[0].session.isAtRest)
  }
}
