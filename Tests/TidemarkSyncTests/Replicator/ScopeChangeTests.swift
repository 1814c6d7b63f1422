import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("The scope of a live replicator", .timeLimit(.minutes(20)))
struct ScopeChangeTests {
  private let peer: SwitchedPeer
  private let store: Store

  init() throws {
    peer = try SwitchedPeer()
    store = try memoryStore()
    for project in ["a", "b"] { try peer.store.blocking.put("\(project)/1", "there") }
  }

  private func replicator() throws -> Replicator {
    try store.replicator(named: "home", peer: peer, scope: SyncScope(keyPrefixes: ["a/"]))
  }

  @Test("a scope that is changed brings what it has in addition, and sends what is written there")
  func once() async throws {
    let replicator = try replicator()
    #expect(try await replicator.syncOnce().isComplete)
    #expect(try store.text("a/1") == "there")
    #expect(try store.text("b/1") == nil)
    try await store.put("b/2", "here")
    #expect(try await replicator.state(forKey: "b/2") == .local)
    try await replicator.setScope(SyncScope(keyPrefixes: ["a/", "b/"]))
    #expect(try await replicator.syncOnce().isComplete)
    #expect(try store.text("b/1") == "there")
    #expect(try peer.text("b/2") == "here")
    try await replicator.setScope(SyncScope(keyPrefixes: ["b/"]))
    try await store.put("a/2", "here")
    #expect(try await replicator.syncOnce().isComplete)
    #expect(try peer.text("a/2") == nil)
    #expect(try store.text("a/1") == "there")
    try await store.close()
  }

  @Test("a replicator that runs goes on with the new scope, whatever it has asked for")
  func running() async throws {
    let replicator = try replicator()
    replicator.start()
    try await peer.wait { $0.polls > 0 }
    try await replicator.setScope(SyncScope(keyPrefixes: ["b/"]))
    for await status in replicator.statuses() where status.phase == .idle {
      if try store.text("b/1") == "there" { break }
    }
    #expect(replicator.status.entriesToTake == 0)
    await replicator.stop()
    try await store.close()
  }
}
