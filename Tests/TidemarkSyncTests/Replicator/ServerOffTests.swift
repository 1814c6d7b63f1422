import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync

@Suite("A replicator whose server comes and goes", .timeLimit(.minutes(20)))
struct ServerOffTests {
  private static let keys = 45

  /// How many keys the server has otherwise, as it itself says.
  private func differing(_ store: Store, _ peer: SwitchedPeer) throws -> Int {
    try (0..<Self.keys).count { try peer.text("key \($0)") != store.text("key \($0)") }
  }

  @Test("pending entries are counted exactly, and go by themselves in the order of writes")
  func comesAndGoes() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    replicator.start()
    for turn in 0..<7 {
      peer.isOn = turn % 2 == 1
      for number in 0..<200 {
        let key = Key("key \((number + turn) % (30 + turn))")
        if number % 11 == 5 {
          try await store.delete(key)
        } else {
          try await store.put(key, "\(turn) \(number)")
        }
      }
      if peer.isOn { continue }
      // No call is under way then, and none gets through.
      await replicator.wait { if case .waiting = $0.phase { true } else { false } }
      #expect(try await store.pending(for: "home").entries == differing(store, peer))
    }
    #expect(try differing(store, peer) > 0)
    peer.isOn = true
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    #expect(try differing(store, peer) == 0)
    #expect(try await store.pending(for: "home").isEmpty)
    await replicator.stop()
    var last: [[UInt8]: UInt64] = [:]
    for change in peer.state.withLock({ $0.pushes.flatMap(\.changes) }) {
      #expect(last[change.key] ?? 0 < change.sequence)
      last[change.key] = change.sequence
    }
    #expect(try peer.repeats() == 0)
  }
}
