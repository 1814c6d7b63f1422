import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncServer

@Suite("Attachments between devices and a server")
struct AttachmentSessionTests {
  private let film = content(2_000_000)

  private func serverContent(_ world: SyncWorld, _ id: AttachmentID) throws -> [UInt8]? {
    let engine = try world.server.feed().engine
    return try SyncWorld.content(engine, id)
  }

  /// Carries calls of a device out until one is as wanted, which is not made.
  private func step(
    _ world: SyncWorld, _ index: Int, until isWanted: (WireMessage) -> Bool
  ) throws -> WireMessage? {
    let session = world.devices[index].session
    for _ in 0..<200 {
      guard let call = try session.next() else { return nil }
      if isWanted(call) { return call }
      try session.receive(try world.answer(call))
    }
    return nil
  }

  @Test("content goes before the batch that names it, and comes to others as a name")
  func bothWays() throws {
    let world = try SyncWorld()
    let id = try world.attach(0, "film", film)
    try world.put(0, "note", "1")
    try world.settle()
    #expect(try serverContent(world, id) == film)
    let engine = world.devices[1].engine
    #expect(try world.get(1, "film") == "1" && world.get(1, "note") == "1")
    #expect(try SyncWorld.content(engine, id) == nil)
    #expect(
      try ReplicationLog(engine).newestChange(ofKey: Array("film".utf8))?.attributes.attachment
        == id)
    // Its note tells that it is elsewhere, not missing.
    #expect(try engine.attachments.header(of: id.hash)?.isReleased == true)
    #expect(world.devices[0].session.totals.attachmentBytesSent == film.count)
  }

  @Test("other entries are sent and taken between the parts of a content")
  func between() throws {
    let world = try SyncWorld()
    try world.attach(0, "film", film)
    guard case .attachRequest? = try step(world, 0, until: { $0.isPart }) else {
      Issue.record("no part is sent")
      return
    }
    try world.put(0, "note", "1")
    guard case .pushRequest(let push)? = try world.devices[0].session.next() else {
      Issue.record("the content goes first")
      return
    }
    #expect(push.changes.map(\.key) == [Array("note".utf8)])
  }

  @Test("an upload that a kill has ended sends only the parts that are missing")
  func killedUpload() throws {
    let world = try SyncWorld(devices: 1)
    let id = try world.attach(0, "film", film)
    _ = try step(world, 0) { $0.isPart }
    let first = try #require(try world.devices[0].session.next())
    try world.devices[0].session.receive(try world.answer(first))
    let sent = world.devices[0].session.totals.attachmentBytesSent
    #expect(sent > 0 && sent < film.count)
    try world.restart(0)
    try world.server.close()
    try world.settle()
    #expect(world.devices[0].session.totals.attachmentBytesSent == film.count - sent)
    #expect(try serverContent(world, id) == film)
  }

  @Test("a batch under way is not sent before a server that has lost its content has it again")
  func serverLosesContent() throws {
    let world = try SyncWorld(devices: 1)
    let id = try world.attach(0, "film", film)
    guard case .pushRequest? = try step(world, 0, until: { $0.isPush }) else {
      Issue.record("no batch")
      return
    }
    let lost = try world.server.withEngine { engine in
      let parts = try engine.attachments.parts()
      for (_, part) in parts { part.cancel() }
      return parts.count
    }
    #expect(lost == 1)
    world.devices[0].session.disconnect()
    try world.settle()
    #expect(try serverContent(world, id) == film)
    #expect(try world.get(0, "film") == "1")
    #expect(world.devices[0].session.outbox.waiting.isEmpty)
  }

  @Test("content is released once it is acknowledged, and not before")
  func release() throws {
    let world = try SyncWorld(devices: 1)
    let device = world.devices[0]
    device.session.attachmentPolicy.afterUpload = .release
    let id = try world.attach(0, "film", film)
    _ = try step(world, 0) { $0.isPush }
    #expect(try SyncWorld.content(device.engine, id) == film)
    try world.settle()
    #expect(try SyncWorld.content(device.engine, id) == nil)
    #expect(try device.engine.attachments.header(of: id.hash)?.isReleased == true)
    #expect(try serverContent(world, id) == film)
  }

  @Test("an edit of a released entry is sent without its content")
  func editAfterRelease() throws {
    let world = try SyncWorld(devices: 1)
    let device = world.devices[0]
    device.session.attachmentPolicy.afterUpload = .release
    let id = try world.attach(0, "film", film)
    try world.settle()
    var batch = OperationBatch()
    var attributes = EntryAttributes()
    attributes.attachment = id
    try batch.add(
      .put, key: Array("film".utf8).rawSpan, value: Array("2".utf8).rawSpan,
      attributes: attributes)
    try device.engine.commit(batch)
    try world.settle()
    #expect(try world.server.value("film") == "2")
    #expect(device.session.totals.attachmentBytesSent == film.count)
    #expect(device.session.outbox.waiting.isEmpty)
  }

  @Test("a restored server gets the content again, and what nobody has any more is parked")
  func restoredServer() throws {
    let world = try SyncWorld(devices: 2)
    try world.put(0, "first", "1")
    try world.settle()
    try world.server.close()
    let backup = world.server.disk.snapshot()
    let kept = try world.attach(0, "kept", film)
    let other = content(500_000, 5)
    world.devices[1].session.attachmentPolicy.afterUpload = .release
    let released = try world.attach(1, "released", other)
    try world.settle()
    #expect(try serverContent(world, released) == other)
    try world.restoreServer(backup)
    try world.settle(mayStop: true)
    #expect(try serverContent(world, kept) == film)
    #expect(try world.server.value("kept") == "1")
    #expect(try world.server.value("released") == nil)
    let session = world.devices[1].session
    let waiting = try session.waitingForUser()
    #expect(waiting.map(\.reason) == [.parked(SyncSession.contentMissing)])
    // Attached again it goes.
    let engine = world.devices[1].engine
    let writer = try engine.newAttachment()
    try writer.write(other.rawSpan)
    let hold = try writer.finish()
    _ = try session.retry(waiting.map(\.change.sequence))
    try world.settle(mayStop: true)
    #expect(try serverContent(world, hold.id) == other)
    #expect(try world.server.value("released") == "1")
  }

  @Test("entries of a restored server come back from those who never had their content, or wait")
  func adopted() throws {
    let world = try SyncWorld(devices: 2)
    try world.put(0, "first", "1")
    try world.settle()
    try world.server.close()
    let backup = world.server.disk.snapshot()
    let id = try world.attach(0, "film", film)
    try world.settle()
    try world.restoreServer(backup)
    // The one that has never had the content is there first.
    try world.settle(only: 1, mayStop: true)
    #expect(try world.server.value("film") == nil)
    try world.settle(mayStop: true)
    #expect(try world.server.value("film") == "1")
    #expect(try serverContent(world, id) == film)
    #expect(world.devices[1].session.outbox.waiting.isEmpty)
  }

  @Test("two devices that attach other contents to a key are in conflict, and both can be kept")
  func conflict() throws {
    let world = try SyncWorld(devices: 2, resolver: .keepBoth())
    let (one, two) = (content(300_000, 1), content(300_000, 2))
    let ids = [try world.attach(0, "film", one), try world.attach(1, "film", two)]
    try world.settle()
    for id in ids { #expect(try serverContent(world, id) != nil) }
    let state = try SyncWorld.state(world.devices[0].engine)
    #expect(Set(state.keys) == ["film", "film (local)"])
    for index in 0...1 {
      let engine = world.devices[index].engine
      let named = try ["film", "film (local)"].compactMap {
        try ReplicationLog(engine).newestChange(ofKey: Array($0.utf8))?.attributes.attachment
      }
      #expect(Set(named) == Set(ids))
    }
  }

  @Test("small content comes by itself where it is wanted, in parts, and goes on after a kill")
  func eager() throws {
    let world = try SyncWorld(devices: 2)
    let (photo, large) = (content(6_000_000, 3), content(9_000_000, 4))
    let small = try world.attach(0, "photo", photo)
    let tooLarge = try world.attach(0, "large", large)
    try world.settle(only: 0)
    let device = world.devices[1]
    device.session.attachmentPolicy.fetching = .eager(upTo: 7_000_000)
    let part = try #require(try step(world, 1) { $0.kind == .fetchRequest })
    try device.session.receive(try world.answer(part))
    let taken = device.session.totals.attachmentBytesTaken
    #expect(taken > 0 && taken < photo.count)
    try world.restart(1)
    device.session.attachmentPolicy.fetching = .eager(upTo: 7_000_000)
    try world.settle()
    #expect(try SyncWorld.content(device.engine, small) == photo)
    #expect(try SyncWorld.content(device.engine, tooLarge) == nil)
    #expect(device.session.totals.attachmentBytesTaken == photo.count - taken)
  }

  @Test("a group that applies together waits until the content of all is there")
  func group() throws {
    let world = try SyncWorld(devices: 1)
    let device = world.devices[0]
    let writer = try device.engine.newAttachment()
    try writer.write(film.rawSpan)
    let hold = try writer.finish()
    var batch = OperationBatch()
    for (key, id) in [("index", nil), ("film", hold.id as AttachmentID?)] {
      var attributes = EntryAttributes()
      attributes.atomicGroup = OperationBatch.unnumberedGroup | 1
      attributes.attachment = id
      try batch.add(
        .put, key: Array(key.utf8).rawSpan, value: Array("1".utf8).rawSpan,
        attributes: attributes)
    }
    try device.engine.commit(batch)
    guard case .pushRequest(let push)? = try step(world, 0, until: { $0.isPush }) else {
      Issue.record("no batch")
      return
    }
    #expect(push.changes.count == 2)
    #expect(device.session.totals.attachmentBytesSent == film.count)
    try world.settle()
    #expect(try world.server.value("index") == "1" && world.server.value("film") == "1")
  }

  @Test("a change that takes the place of one with an attachment goes without its content")
  func superseded() throws {
    let world = try SyncWorld(devices: 1)
    let id = try world.attach(0, "film", film)
    _ = try step(world, 0) { $0.isPart }
    try world.put(0, "film", "2")
    try world.settle()
    #expect(try world.server.value("film") == "2")
    #expect(try serverContent(world, id) == nil)
    #expect(world.devices[0].session.totals.attachmentBytesSent < film.count)
  }

  @Test("content that the server refuses parks its entry with the server's words, others go")
  func refused() throws {
    let world = try SyncWorld(devices: 1)
    world.server.options.attachmentBytes = 1_000
    try world.attach(0, "film", film)
    try world.put(0, "note", "1")
    try world.settle(mayStop: true)
    #expect(try world.server.value("note") == "1")
    let waiting = try world.devices[0].session.waitingForUser()
    guard case .parked(let rejection)? = waiting.first?.reason else {
      Issue.record("it is not parked")
      return
    }
    #expect(rejection.code == "tooLarge")
  }
}

extension WireMessage {
  fileprivate var isPart: Bool {
    if case .attachRequest(let part) = self { !part.bytes.isEmpty } else { false }
  }

  fileprivate var isPush: Bool { kind == .pushRequest }
}
