import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Many deletions at once", .timeLimit(.minutes(20)))
struct DeletionsTests {
  /// A store with 200 keys, and a peer at which 150 of them are gone, as a comparison will show.
  private func bereft() async throws -> (Store, SwitchedPeer, Replicator) {
    // Nobody keeps its deletes.
    let peer = try SwitchedPeer(options: SyncHandler.Options(lease: nil))
    let store = try memoryStore()
    for number in 0..<200 { try await store.put("key \(number)", "value") }
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    _ = try await replicator.syncOnce()
    for number in 0..<150 { try peer.store.blocking.delete("key \(number)") }
    _ = try peer.store.blocking.compact(dropHistory: true)
    peer.set { $0.failures = [PeerError(.cursorGone, "deletes may be gone")] }
    #expect(await code { try await replicator.syncOnce() } == .peerFailed)
    return (store, peer, replicator)
  }

  @Test("one round says how many keys are at stake, and does nothing until somebody has decided")
  func once() async throws {
    let (store, _, replicator) = try await bereft()
    try await store.put("new", "1")
    for _ in 0..<2 {
      let error = await #expect(throws: TidemarkError.self) { try await replicator.syncOnce() }
      #expect(error?.code == .undecidedDeletions)
      #expect(error?.cause as? UndecidedDeletionsError == UndecidedDeletionsError(keys: 150))
    }
    #expect(try store.count() == 201)
    try await replicator.decideDeletions(.accept)
    #expect(try await replicator.syncOnce().isComplete)
    #expect(try store.count() == 51)
    await #expect(throws: TidemarkError.self) { try await replicator.decideDeletions(.accept) }
  }

  @Test("a replicator that runs pauses, and brings the keys back if it is told to")
  func running() async throws {
    let (store, peer, replicator) = try await bereft()
    replicator.start()
    await replicator.wait { $0.phase == .paused(.deletionsToDecide(keys: 150)) }
    #expect(try store.count() == 200)
    try await replicator.decideDeletions(.restore)
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    #expect(try peer.store.count() == 200)
    #expect(try store.count() == 200)
    await replicator.stop()
  }

  @Test("a replicator that waits for a decision asks its peer again, and deletes nothing for it")
  func asksAgain() async throws {
    let (store, peer, replicator) = try await bereft()
    replicator.start()
    await replicator.wait { $0.phase == .paused(.deletionsToDecide(keys: 150)) }
    let calls = peer.state.withLock { $0.calls }
    while peer.state.withLock({ $0.calls }) < calls + 3 {
      try await Task.sleep(for: .milliseconds(1))
    }
    await replicator.wait { $0.phase == .paused(.deletionsToDecide(keys: 150)) }
    #expect(try store.count() == 200)
    await replicator.stop()
  }
}
