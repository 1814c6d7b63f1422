import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A replicator that goes one way")
struct DirectionTests {
  @Test("one that only sends takes nothing of others when its scope has changed before it read")
  func scopeChangedWhilePushing() throws {
    let world = try SyncWorld()
    try world.put(1, "theirs", "1")
    try world.settle(only: 1)
    let device = world.devices[0]
    device.direction = .push
    device.scope = SyncScope(keyPrefixes: ["own"])
    try world.restart(0)
    try world.put(0, "own", "1")
    try world.step(0)
    // The scope changes while the cursor still stands at the beginning.
    device.scope = .everything
    try world.restart(0)
    for _ in 0..<20 {
      guard let call = try device.session.next(.push) else { break }
      if case .pullRequest(let request) = call {
        #expect(request.ownOnly, "it reads what others wrote")
      }
      try world.step(0)
    }
    #expect(try SyncWorld.state(device.engine) == ["own": "1 "])
    #expect(try world.serverState() == ["own": "1 ", "theirs": "1 "])
  }

  @Test("one that only takes sends nothing when its scope has changed before it read")
  func scopeChangedWhilePulling() throws {
    let world = try SyncWorld()
    try world.put(1, "theirs", "1")
    try world.settle(only: 1)
    let device = world.devices[0]
    device.direction = .pull
    device.scope = SyncScope(keyPrefixes: ["own"])
    try world.restart(0)
    try world.put(0, "own", "1")
    try world.step(0)
    device.scope = .everything
    try world.restart(0)
    for _ in 0..<20 {
      guard let call = try device.session.next(.pull) else { break }
      if call.kind == .pushRequest { Issue.record("it sends") }
      try world.step(0)
    }
    #expect(try SyncWorld.state(device.engine) == ["own": "1 ", "theirs": "1 "])
    #expect(try world.serverState() == ["theirs": "1 "])
  }
}
