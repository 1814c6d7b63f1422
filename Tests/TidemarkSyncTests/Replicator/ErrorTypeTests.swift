import Testing
import Tidemark
import TidemarkEngine
import TidemarkSync

@Suite("Errors of the sync")
struct ErrorTypeTests {
  /// Compiles only while all of these throw `TidemarkError` and nothing else.
  private func everything(
    _ store: Store, _ replicator: Replicator, _ receipt: WriteReceipt
  ) async throws(TidemarkError) -> Int {
    _ = try await replicator.syncOnce()
    for receipt in replicator.receipts(for: receipt) {
      _ = try await receipt.current
      _ = try await receipt.outcome()
    }
    for entry in try await replicator.parked() {
      try await replicator.retry(entry.sequence)
      try await replicator.discard(entry.sequence)
    }
    for conflict in try await replicator.conflicts() {
      try await replicator.decide(conflict.key, .local)
    }
    _ = try await store.alias(forKey: "a", at: "home")
    _ = try await store.peers()
    _ = try await store.pendingEntries(for: "home")
    _ = try await store.pendingByLabel(for: "home")
    _ = try store.blocking.parked(for: "home")
    return try await store.pending(for: "home").entries + replicator.pending.entries
  }

  @Test("calls of a program throw TidemarkError and nothing else")
  func typed() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let receipt = try await store.put("a", "1")
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    #expect(try await everything(store, replicator, receipt) == 0)
    #expect(try store.blocking.retryParked(all: [99], for: "home").isEmpty)
    #expect(await code { try await replicator.discard(99) } == .invalidArgument)
  }

  @Test("a peer's failure is the cause of the error, with the peer's own words")
  func peerFailed() async throws {
    let peer = try SwitchedPeer()
    peer.set { $0.failures = [PeerError(.busy, "later", retryAfter: .seconds(7))] }
    let replicator = try memoryStore().replicator(named: "home", peer: peer)
    let error = await #expect(throws: TidemarkError.self) { try await replicator.syncOnce() }
    #expect(error?.code == .peerFailed && error?.message == "the peer: later")
    #expect(error?.peerError == PeerError(.busy, "later", retryAfter: .seconds(7)))
  }

  @Test("a round whose task is cancelled says so with a code")
  func cancelled() async throws {
    let peer = try SwitchedPeer()
    let replicator = try memoryStore().replicator(named: "home", peer: peer)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await replicator.syncOnce()
    }
    #expect(await code { try await task.value } == .cancelled)
  }
}
