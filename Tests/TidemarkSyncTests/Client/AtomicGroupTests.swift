import Testing
@testable import Tidemark
@testable import TidemarkSync
import TidemarkEngine

@testable import TidemarkSyncProtocol

@Suite("Writes that apply at a peer together")
struct AtomicGroupTests {
  @Test("all of a group travel in one batch, each change by itself, and apply")
  func together() throws {
    let world = try SyncWorld()
    // So many before it that the group does not fit into their batch.
    for number in 0..<3990 { try world.put(0, "key \(number)", "1") }
    try world.writeTogether(0, (0..<20).map { ("key \($0 * 7)", "together") })
    try world.put(0, "key 7", "later")
    var groups: [[String]] = []
    while let push = try world.nextPush(0) {
      groups.append(push.changes.filter { $0.atomicGroup != 0 }.map(\.name))
      try world.step(0)
    }
    #expect(groups.map(\.count) == [0, 20, 0])
    try world.settle()
    #expect(try world.get(1, "key 14") == "together")
    #expect(try world.get(1, "key 7") == "later")
    #expect(try world.repeatedOperations().isEmpty)
  }

  @Test("one that is refused lets none apply, and all of them are parked")
  func refused() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    try world.writeTogether(0, [("a", "1"), ("bad", "1"), ("b", "1")])
    try world.put(0, "c", "alone")
    try world.settle()
    #expect(try world.serverState() == ["c": "alone "])
    #expect(world.devices[0].session.outbox.waiting.count == 3)
    let codes = world.devices[0].session.outbox.waiting.values.map { reason in
      if case .parked(let rejection) = reason { rejection.code } else { "none" }
    }
    #expect(codes.sorted() == ["aborted", "aborted", "bad"])
    // A later put of one of the keys goes by itself.
    try world.put(0, "a", "2")
    try world.settle()
    #expect(try world.serverState() == ["a": "2 ", "c": "alone "])
  }

  @Test("a group of which one is in conflict goes whole once that is decided for it")
  func conflict() throws {
    let world = try SyncWorld(resolver: .localWins)
    try world.put(0, "a", "1")
    try world.settle()
    try world.writeTogether(0, [("a", "2"), ("b", "2")])
    #expect(try world.nextPush(0)?.changes.count == 2)
    try world.put(1, "a", "other")
    try world.settle(only: 1)
    try world.step(0)
    #expect(try world.serverState() == ["a": "other "])
    try world.settle()
    #expect(try world.serverState() == ["a": "2 ", "b": "2 "])
    #expect(try world.get(1, "a") == "2")
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
  }

  @Test("a group of which one loses its conflict does not apply; the rest waits for the user")
  func lost() throws {
    let world = try SyncWorld(resolver: .remoteWins)
    try world.put(0, "a", "1")
    try world.settle()
    try world.writeTogether(0, [("a", "2"), ("b", "2")])
    #expect(try world.nextPush(0)?.changes.count == 2)
    try world.put(1, "a", "other")
    try world.settle(only: 1)
    try world.settle()
    #expect(try world.serverState() == ["a": "other "])
    #expect(try world.get(0, "a") == "other")
    // A parked change stays readable here until the user decides.
    #expect(try world.get(0, "b") == "2")
    let waiting = world.devices[0].session.outbox.waiting
    #expect(waiting.count == 1)
    let sequence = try #require(waiting.keys.first)
    _ = try world.devices[0].session.retry([sequence])
    try world.settle()
    #expect(try world.serverState() == ["a": "other ", "b": "2 "])
  }

  @Test("a group whose answer is lost, or whose program is ended, applies once")
  func once() throws {
    let world = try SyncWorld(devices: 1)
    try world.writeTogether(0, (0..<50).map { ("key \($0)", "1") })
    _ = try world.nextPush(0)
    try world.step(0, .answerLost)
    try world.restart(0)
    _ = try world.nextPush(0)
    try world.settle()
    #expect(try world.serverState().count == 50)
    #expect(try world.repeatedOperations().isEmpty)
  }

  @Test("a group that the peer fails on is parked whole, and others go through")
  func poison() throws {
    let world = try SyncWorld(devices: 1)
    try world.writeTogether(0, [("a", "1"), ("poison", "1"), ("b", "1")])
    for number in 0..<30 { try world.put(0, "key \(number)", "1") }
    let session = world.devices[0].session
    for _ in 0..<1000 {
      guard !session.isAtRest, let call = try session.next() else { break }
      if case .pushRequest(let push) = call, push.changes.contains(where: { $0.name == "poison" }) {
        try session.failed(PeerError(.failed, "it cannot digest that"))
      } else {
        do { try session.receive(world.answer(call)) } catch let error as PeerError {
          try session.failed(error)
        }
      }
    }
    #expect(try world.serverState().count == 30)
    #expect(session.outbox.waiting.count == 3)
  }

  @Test(
    "the rest of a group partly out of scope is sent when the scope is widened",
    arguments: [true, false])
  func partlyOutside(conflicts: Bool) throws {
    let world = try SyncWorld()
    world.devices[0].scope = SyncScope(labels: ["s"])
    try world.restart(0)
    try world.put(0, "note", "base", labels: ["s"])
    try world.settle()
    var batch = WriteBatch(atomicAtPeer: true)
    try batch.put("note", "mine", labels: ["s"])
    try batch.put("index", "mine")
    try batch.put("other", "mine", labels: ["s"])
    try world.commit(0, batch)
    #expect(try world.nextPush(0)?.changes.map(\.name) == ["note", "other"])
    if conflicts {
      try world.put(1, "note", "theirs", labels: ["s"])
      try world.settle(only: 1)
    }
    try world.settle()
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
    #expect(try world.serverState() == ["note": "mine s", "other": "mine s"])
    world.devices[0].scope = .everything
    try world.restart(0)
    try world.settle()
    #expect(try world.serverState() == ["note": "mine s", "other": "mine s", "index": "mine "])
    try world.expectEqual()
  }

  @Test("a batch that is too large to apply together is refused when it is written")
  func tooLarge() throws {
    var batch = WriteBatch(atomicAtPeer: true)
    for number in 0..<WriteBatch.mostAtPeer { try batch.put("k\(number)", "v") }
    #expect(throws: TidemarkError.self) { try batch.put("one more", "v") }
    #expect(batch.count == WriteBatch.mostAtPeer)
    batch.removeAll()
    let half = [UInt8](repeating: 0, count: WriteBatch.mostBytesAtPeer / 2)
    try batch.put("a", half)
    #expect(throws: TidemarkError.self) { try batch.put("b", half) }
  }

  @Test("a batch that is used again is another group")
  func usedAgain() throws {
    let world = try SyncWorld(devices: 1)
    var configuration = Store.Configuration()
    configuration.usesThreads = false
    let store = Store(world.devices[0].engine, configuration)
    var batch = WriteBatch(atomicAtPeer: true)
    try batch.put("a", "1")
    try store.blocking.write(batch)
    try store.blocking.write(batch)
    batch.removeAll()
    try batch.put("b", "1")
    try store.blocking.write(batch)
    var groups: [UInt64] = []
    var cursor = LogCursor(
      world.devices[0].engine.reader, from: 1, through: world.devices[0].engine.reader.lastSequence)
    while let entry = try cursor.next() { groups.append(try entry.attributes().atomicGroup) }
    #expect(groups.count == 3)
    #expect(Set(groups).count == 3)
    #expect(!groups.contains(0))
  }
}

extension SyncWorld {
  func writeTogether(_ index: Int, _ puts: [(key: String, value: String)]) throws {
    var batch = WriteBatch(atomicAtPeer: true)
    for put in puts { try batch.put(put.key, put.value) }
    try commit(index, batch)
  }

  /// Commits a batch as a program does.
  func commit(_ index: Int, _ batch: WriteBatch) throws {
    var operations = batch.operations
    operations.numberGroup(devices[index].engine.environment.random.next())
    try devices[index].engine.commit(operations)
  }
}
