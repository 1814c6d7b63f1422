import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("A token that reaches other entries than before")
struct ReachTests {
  private static func to(_ prefixes: String...) -> SyncAccess {
    SyncAccess(to: SyncScope(keyPrefixes: prefixes))
  }

  /// Device 1 has written, and device 0 has all that its token reaches.
  private func world(
    keys: Int = 3, reaching access: SyncAccess, resolver: ConflictResolver = .localWins
  ) throws -> SyncWorld {
    let world = try SyncWorld(resolver: resolver)
    for number in 0..<keys {
      try world.put(1, "a/\(number)", "\(number)")
      try world.put(1, "b/\(number)", "\(number)")
    }
    world.devices[0].access = access
    try world.settle()
    return world
  }

  private func keys(_ world: SyncWorld) throws -> [String] {
    try SyncWorld.state(world.devices[0].engine).keys.sorted()
  }

  @Test("widened brings what lies before the cursor", arguments: [to("a/", "b/"), .everything])
  func widened(access: SyncAccess) throws {
    let world = try world(reaching: Self.to("a/"))
    #expect(try keys(world) == ["a/0", "a/1", "a/2"])
    world.devices[0].access = access
    try world.settle()
    #expect(try keys(world).count == 6)
    try world.expectEqual()
  }

  @Test("narrowed takes what it does not reach, unasked and here only, and gives it back")
  func narrowed() throws {
    let world = try world(keys: 150, reaching: .everything)
    world.devices[0].access = Self.to("a/")
    try world.settle()
    #expect(try keys(world).count == 150 && keys(world).allSatisfy { $0.hasPrefix("a/") })
    #expect(try world.serverState().count == 300)
    #expect(world.devices[0].session.totals.pushed == 0, "nothing was deleted for others")
    world.devices[0].access = .everything
    try world.settle()
    try world.expectEqual()
    #expect(try keys(world).count == 300)
  }

  @Test("nothing at all is a reach, too")
  func nothing() throws {
    let world = try world(reaching: .everything)
    world.devices[0].access = SyncAccess(to: SyncScope())
    try world.settle()
    #expect(try keys(world).isEmpty)
  }

  @Test("an own change that was not sent stays, is refused, and can be sent once it is in reach")
  func unsent() throws {
    let world = try world(reaching: .everything)
    try world.put(0, "b/1", "mine")
    world.devices[0].access = Self.to("a/")
    try world.settle()
    #expect(try keys(world) == ["a/0", "a/1", "a/2", "b/1"])
    #expect(try world.get(0, "b/1") == "mine")
    let reasons = world.devices[0].session.outbox.waiting.map(\.value)
    guard case .parked(let rejection)? = reasons.first, reasons.count == 1 else {
      Issue.record("\(reasons)")
      return
    }
    #expect(rejection.code == "outOfScope")
    world.devices[0].access = .everything
    try world.settle()
    try world.expectEqual()
    #expect(try world.serverState()["b/1"] == "mine ")
  }

  @Test(
    "a change that was refused for its reach goes by itself with a wider one",
    arguments: ["put", "delete", "group", "follower", "again"])
  func refusedForReach(kind: String) throws {
    let world = try world(reaching: .everything)
    world.devices[0].access = Self.to("a/")
    try world.settle()
    switch kind {
    case "delete": try world.delete(0, "b/1")
    case "group": try world.writeTogether(0, [("a/new", "1"), ("b/new", "1")])
    case "follower":
      let first = try world.write(0, "b/new", "1")
      try world.write(0, "a/new", "1", after: [first])
    default: try world.put(0, "b/new", "1")
    }
    try world.settle()
    let before = try world.serverState()
    #expect(before.keys.allSatisfy { !$0.hasSuffix("new") })
    #expect(codes(world).isEmpty == (kind == "delete"))
    try world.restart(0)
    if kind == "again" {
      world.devices[0].access = Self.to("a/", "c/")
      try world.settle()
      #expect(codes(world) == ["outOfScope"])
    }
    world.devices[0].access = Self.to("a/", "b/")
    try world.settle()
    try world.expectEqual()
    #expect(codes(world).isEmpty)
    if kind != "delete" { #expect(try world.serverState()["b/new"] == "1 ") }
  }

  @Test("a change between two pulls is noticed by the page, of which nothing is taken")
  func betweenPulls() throws {
    let world = try world(reaching: Self.to("a/"))
    try world.put(1, "b/new", "x")
    try world.settle(only: 1)
    let session = world.devices[0].session
    world.devices[0].access = Self.to("b/")
    let page = try world.answer(.pullRequest(session.pullRequest()), world.devices[0].access)
    let cursor = session.progress.cursor
    #expect(throws: PeerError.self) { try session.receive(page) }
    #expect(session.progress.cursor == cursor)
    #expect(try keys(world) == ["a/0", "a/1", "a/2"])
    try session.failed(PeerError(.busy, "as the replicator says"))
    try world.settle()
    #expect(try keys(world) == ["b/0", "b/1", "b/2", "b/new"])
  }

  /// The codes of the rejections that wait at a device.
  private func codes(_ world: SyncWorld) -> [String] {
    world.devices[0].session.outbox.waiting.map {
      if case .parked(let rejection) = $0.value { rejection.code } else { "\($0.value)" }
    }
  }

  @Test("a batch is not taken under another reach than the one that its sender was told")
  func betweenHelloAndPush() throws {
    let world = try world(reaching: Self.to("a/"))
    try world.put(0, "b/mine", "x")
    world.devices[0].session.disconnect()
    try world.step(0)
    world.devices[0].access = Self.to("b/")
    try world.step(0)
    #expect(world.lastError?.kind == .busy && world.lastError?.message.contains("reaches") == true)
    world.devices[0].access = Self.to("a/")
    try world.settle()
    #expect(try world.serverState()["b/mine"] == nil && codes(world) == ["outOfScope"])
  }

  @Test("an edit that waits out of reach survives a comparison that finds nothing of its key")
  func comparedWhileWaiting() throws {
    let deleteWins = ConflictResolver(deleteEdit: .deleteWins) { _ in .local }
    let world = try world(reaching: .everything, resolver: deleteWins)
    try world.put(0, "b/1", "mine")
    world.devices[0].access = Self.to("a/")
    try world.settle()
    #expect(codes(world) == ["outOfScope"])
    try world.devices[0].session.failed(PeerError(.leaseExpired, "away for too long"))
    try world.settle()
    #expect(try world.get(0, "b/1") == "mine" && codes(world) == ["outOfScope"])
  }

  @Test("a change stays when what it is at odds with leaves the reach before it was told")
  func conflictOutOfReach() throws {
    let world = try world(reaching: .everything, resolver: .remoteWins)
    try world.put(1, "b/new", "theirs")
    try world.settle(only: 1)
    try world.put(0, "b/new", "mine")
    try world.step(0)
    #expect(world.devices[0].session.outbox.waiting.count == 1)
    world.devices[0].access = Self.to("a/")
    try world.settle()
    #expect(try world.get(0, "b/new") == "mine" && codes(world) == ["outOfScope"])
  }

  @Test("a key that was out of reach when all was compared comes back with a wider one")
  func outOfReachWhileAway() throws {
    let mine = SyncAccess(to: SyncScope(labels: ["me"]))
    let world = try SyncWorld()
    try world.put(1, "k", "1", labels: ["me"])
    world.devices[0].access = mine
    try world.settle()
    try world.put(1, "k", "1", labels: ["them"])
    try world.settle(only: 1)
    try world.devices[0].session.failed(PeerError(.leaseExpired, "away for too long"))
    try world.settle()
    #expect(try keys(world).isEmpty)
    world.devices[0].access = .everything
    try world.settle()
    try world.expectEqual()
  }

  @Test("a restart in the middle of the comparison goes on with it")
  func restarted() throws {
    let world = try world(reaching: .everything)
    world.devices[0].access = Self.to("a/")
    world.devices[0].session.disconnect()
    try world.step(0)
    #expect(world.devices[0].session.progress.resync?.evicts == true)
    try world.restart(0)
    try world.settle()
    #expect(try keys(world) == ["a/0", "a/1", "a/2"])
  }

  @Test("a peer that does not tell its reach is compared with nothing")
  func untold() throws {
    let world = try world(reaching: Self.to("a/"))
    let session = world.devices[0].session
    session.disconnect()
    guard case .helloRequest(let request)? = try session.next(),
      case .helloAnswer(var answer) = try world.answer(.helloRequest(request), .everything)
    else { throw PeerError(.failed, "no hello") }
    answer.reach = nil
    try session.receive(.helloAnswer(answer))
    #expect(session.progress.resync == nil)
    session.disconnect()
    #expect(try world.step(0) && session.progress.resync == nil, "it is the same as before")
  }

  @Test("equal scopes have equal reaches, however they are written, and an empty one is not all")
  func values() {
    let scope = SyncScope(labels: ["x", "y"], prefixBytes: [[1], [2]])
    let other = SyncScope(labels: ["y", "x", "x"], prefixBytes: [[2], [1], [2]])
    #expect(SyncAccess(to: scope).reach == SyncAccess(to: other, canPush: false).reach)
    let reaches = [
      nil, SyncScope(), scope, SyncScope(labels: ["x"]), SyncScope(labels: ["y"]),
      SyncScope(keyPrefixes: ["x"]),
    ].map { SyncAccess(to: $0).reach }
    #expect(Set(reaches).count == reaches.count && reaches[0] == 0)
  }
}
