import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// The order in which changes go to a peer.
@Suite("The order of what is sent")
struct OrderTests {
  @Test("an entry goes in a batch behind the verdict on the one it comes after")
  func after() throws {
    let world = try SyncWorld(devices: 1)
    let attachment = try world.write(0, "attachment", "bytes")
    try world.write(0, "note", "see there", after: [attachment])
    try world.put(0, "other", "1")
    #expect(try world.nextPush(0)?.changes.map(\.name) == ["attachment", "other"])
    try world.step(0)
    #expect(!world.devices[0].session.isAtRest)
    // The session asks for nothing else before it sends the next batch.
    guard case .pushRequest(let push)? = try world.devices[0].session.next() else {
      Issue.record("no batch follows")
      return
    }
    #expect(push.changes.map(\.name) == ["note"])
    try world.settle()
    #expect(try world.serverState().count == 3)
  }

  @Test("a change after a parked entry is blocked by it, and goes once that is retried")
  func blocked() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let attachment = try world.write(0, "bad attachment", "bytes")
    try world.settle()
    try world.write(0, "other", "goes")
    let note = try world.write(0, "note", "see there", after: [attachment])
    // A change behind it is of another key and does not wait.
    try world.write(0, "third", "goes, too")
    try world.settle()
    #expect(try world.serverState().keys.sorted() == ["other", "third"])
    let session = world.devices[0].session
    let change = try #require(try ReplicationLog(world.devices[0].engine).change(at: note))
    #expect(try session.stateOfUnsent(change) == .blocked(by: attachment))
    #expect(session.isPending(change))

    // Also when the program was ended meanwhile.
    try world.restart(0)
    try world.settle()
    #expect(try world.serverState()["note"] == nil)
    try world.acceptAll()
    _ = try world.devices[0].session.retry([attachment])
    try world.settle()
    #expect(try world.serverState().keys.sorted() == ["bad attachment", "note", "other", "third"])
  }

  @Test("a parked entry that is replaced frees what comes after it, behind what replaced it")
  func replaced() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let attachment = try world.write(0, "bad", "1")
    try world.settle()
    try world.write(0, "note", "see there", after: [attachment])
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.acceptAll()
    try world.put(0, "bad", "2")
    #expect(try world.nextPush(0)?.changes.map(\.name) == ["bad"])
    try world.settle()
    #expect(try world.serverState().keys.sorted() == ["bad", "note"])
  }

  @Test("a later edit of what is held waits with it, and the newest is what goes")
  func editOfHeld() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let attachment = try world.write(0, "bad", "1")
    try world.settle()
    try world.write(0, "note", "1", after: [attachment])
    try world.settle()
    try world.write(0, "note", "2", after: [attachment])
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.acceptAll()
    _ = try world.devices[0].session.retry([attachment])
    try world.settle()
    #expect(try world.serverState()["note"] == "2 ")
  }

  @Test("urgent changes go first, those that can wait last, and each key keeps its order")
  func priority() throws {
    let world = try SyncWorld(devices: 1)
    try world.write(0, "heavy", "1", priority: -1)
    try world.write(0, "usual", "1")
    try world.write(0, "edited", "1")
    try world.write(0, "urgent", "1", priority: 1)
    try world.write(0, "most urgent", "1", priority: 5)
    try world.write(0, "edited", "2", priority: 2)
    let push = try #require(try world.nextPush(0))
    #expect(
      push.changes.map(\.name) == ["most urgent", "edited", "urgent", "usual", "heavy"])
    #expect(push.changes[1].content.value == Array("2".utf8))
    try world.settle()
    #expect(try world.serverState().count == 5)
    #expect(try world.repeatedOperations().isEmpty)
  }

  @Test(
    "a plain edit goes before a group that changes its key, and is not lost when that is refused",
    arguments: ["urgent", "touched", "can wait"])
  func groupBehindEdit(kind: String) throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    try world.write(0, "b", "plain", priority: kind == "can wait" ? -1 : 0)
    if kind == "touched" {
      var touch = WriteBatch()
      try touch.touch("b", maxAge: .seconds(60))
      try world.devices[0].engine.commit(touch.operations)
    }
    var batch = WriteBatch(atomicAtPeer: true)
    try batch.put("a", "1", options: PutOptions(priority: kind == "urgent" ? 5 : 0))
    try batch.put("b", "1")
    try batch.put("bad", "1")
    try world.commit(0, batch)
    try world.settle()
    #expect(try world.serverState() == ["b": "plain "])
    #expect(world.devices[0].session.outbox.waiting.count == 3)
  }

  @Test("a change of a key that comes after what came after the key's older change waits for both")
  func afterItsOwnFollower() throws {
    let world = try SyncWorld(devices: 1)
    let first = try world.write(0, "album", "1")
    let photo = try world.write(0, "photo", "1", after: [first])
    try world.write(0, "album", "2", after: [photo])
    for sent in ["album", "photo", "album"] {
      #expect(try world.nextPush(0)?.changes.map(\.name) == [sent])
      try world.step(0)
    }
    try world.settle()
    #expect(try world.serverState() == ["album": "2 ", "photo": "1 "])
    #expect(world.devices[0].session.outbox.pending.isEmpty)
  }

  @Test("a change that comes after a replaced one waits for nothing that is newer than itself")
  func afterReplaced() throws {
    let world = try SyncWorld(devices: 1)
    let first = try world.write(0, "album", "1")
    try world.write(0, "album", "2")
    try world.settle()
    let photo = try world.write(0, "photo", "1", after: [first])
    try world.write(0, "album", "3", after: [photo])
    try world.settle()
    #expect(try world.serverState() == ["album": "3 ", "photo": "1 "])
    try world.write(0, "photo", "2", after: [first])
    try world.writeTogether(0, [("album", "4"), ("photo", "3")])
    try world.settle()
    #expect(try world.serverState() == ["album": "4 ", "photo": "3 "])
    #expect(world.devices[0].session.outbox.pending.isEmpty)
  }

  @Test("a group that can wait is not overtaken by a later edit of one of its keys")
  func groupThatCanWait() throws {
    let world = try SyncWorld(devices: 1)
    var batch = WriteBatch(atomicAtPeer: true)
    try batch.put("a", "1", options: PutOptions(priority: -1))
    try batch.put("b", "1", options: PutOptions(priority: -1))
    try world.commit(0, batch)
    try world.put(0, "c", "1")
    try world.put(0, "b", "2")
    try world.settle()
    #expect(try world.serverState() == ["a": "1 ", "b": "2 ", "c": "1 "])
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
  }

  @Test("a change that others wait for goes before one that has none waiting")
  func wanted() throws {
    let world = try SyncWorld(devices: 1)
    try world.step(0)
    world.devices[0].session.limits.changes = 1
    try world.write(0, "other photo", "1", priority: -1)
    let photo = try world.write(0, "photo", "1", priority: -1)
    try world.write(0, "note", "1", after: [photo])
    try world.put(0, "usual", "1")
    var pushed: [String] = []
    while let push = try world.nextPush(0) {
      pushed += push.changes.map(\.name)
      try world.step(0)
    }
    #expect(pushed.count == 4)
    #expect(pushed.prefix(2) == ["usual", "photo"])
  }

  @Test("a change that can wait goes when nothing else is there, also after a restart")
  func canWait() throws {
    let world = try SyncWorld(devices: 1)
    for number in 0..<20 { try world.write(0, "heavy \(number)", "1", priority: -1) }
    try world.settle()
    #expect(try world.serverState().count == 20)
    try world.write(0, "heavy", "2", priority: -3)
    try world.restart(0)
    try world.settle()
    #expect(try world.serverState().count == 21)
  }

  @Test("a change that can wait is read when it comes up, and not again for each batch")
  func canWaitOnce() throws {
    let world = try SyncWorld(devices: 1)
    for number in 0..<300 { try world.write(0, "photo \(number)", "1", priority: -1) }
    let session = world.devices[0].session
    try world.step(0)
    session.limits.changes = 10
    var looked: [Int] = []
    for batch in 0..<30 {
      if batch == 15 { try world.write(0, "note", "1") }
      var builder = BatchBuilder(session)
      try builder.run()
      looked.append(builder.looked)
      #expect(builder.items.count == 10)
      #expect(builder.changes.first?.name == "note" || batch != 15)
      try world.step(0)
    }
    #expect(looked[0] <= 310)
    // The first step has sent nothing: it has asked for what is there.
    #expect(looked.dropFirst(2).allSatisfy { $0 <= 11 }, "\(looked)")
    try world.settle()
    #expect(try world.serverState().count == 301)
    #expect(try world.repeatedOperations().isEmpty)
  }

  @Test("a blocked change is not read again for each batch")
  func blockedOnce() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let refused = try world.write(0, "bad", "1")
    try world.settle()
    for number in 0..<300 {
      try world.write(0, "note \(number)", "1", after: [refused], priority: Int64(number % 3) - 1)
    }
    try world.settle()
    let session = world.devices[0].session
    for number in 0..<10 {
      try world.write(0, "other \(number)", "1")
      var builder = BatchBuilder(session)
      try builder.run()
      #expect(builder.looked <= 10)
      #expect(builder.items.count == 1)
      try world.settle()
    }
    try world.acceptAll()
    _ = try session.retry([refused])
    try world.settle()
    #expect(try world.serverState().count == 311)
  }

  @Test("a long chain of entries that come one after the other costs a batch for each link")
  func chain() throws {
    let world = try SyncWorld(devices: 1)
    world.refuse(prefix: "bad")
    let refused = try world.write(0, "bad", "1")
    try world.settle()
    var last = refused
    for number in 0..<100 { last = try world.write(0, "note \(number)", "1", after: [last]) }
    try world.settle()
    #expect(try world.serverState().isEmpty)
    try world.acceptAll()
    _ = try world.devices[0].session.retry([refused])
    let batches = world.devices[0].session.totals.batches
    try world.settle()
    #expect(try world.serverState().count == 101)
    #expect(world.devices[0].session.totals.batches == batches + 101)
  }

  @Test("a change that leaves the scope on its way goes, though the next batch is formed by then")
  func leavesScope() throws {
    let world = try SyncWorld(devices: 1)
    world.devices[0].scope = SyncScope(labels: ["a"])
    try world.restart(0)
    try world.put(0, "k", "1", labels: ["a"])
    #expect(try world.nextPush(0)?.changes.count == 1)
    try world.put(0, "k", "2")
    try world.put(0, "other", "1", labels: ["a"])
    try world.settle()
    #expect(try world.serverState() == ["k": "2 ", "other": "1 a"])
  }
}

extension PushedChange {
  var name: String { String(decoding: key, as: UTF8.self) }
}

extension SyncWorld {
  /// - Returns: the entry's sequence.
  @discardableResult
  func write(
    _ index: Int, _ key: String, _ value: String, after: [UInt64] = [], priority: Int64 = 0
  ) throws -> UInt64 {
    var attributes = EntryAttributes()
    attributes.after = after
    attributes.priority = priority
    var batch = OperationBatch()
    try batch.add(
      .put, key: Array(key.utf8).rawSpan, value: Array(value.utf8).rawSpan,
      attributes: attributes)
    return try devices[index].engine.commit(batch).lastSeen
  }

  /// Lets the server refuse keys.
  func refuse(prefix: String) {
    server.options.validators = [
      SyncValidator(prefix: prefix) { _, _ in
        SyncRejection(code: "bad", message: "not like this")
      }
    ]
  }

  /// The server refuses nothing any more.
  func acceptAll() throws {
    server.options.validators = []
    try server.close()
  }

  @Test("urgent entries beyond what is kept at a time are found once those before have gone")
  func manyUrgent() throws {
    let world = try SyncWorld()
    var batch = OperationBatch()
    for number in 0..<25 {
      var attributes = EntryAttributes()
      attributes.priority = 1
      try batch.add(
        .put, key: Array("key \(number)".utf8).rawSpan, value: [1].rawSpan,
        attributes: attributes)
    }
    try world.devices[0].engine.commit(batch)
    let session = world.devices[0].session
    var outbox = Outbox()
    outbox.decide(1)
    var deferred = DeferredChanges(mostUrgent: 10)
    var found: [UInt64] = []
    for _ in 0..<5 {
      try deferred.findUrgent(outbox, in: session.log)
      #expect(deferred.urgent.count <= 10)
      for change in deferred.urgent {
        found.append(change.sequence)
        outbox.decide(change.sequence)
        deferred.removeUrgent(change.sequence)
      }
    }
    #expect(found == Array(2...25))
  }
}
