import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkSync

@Suite("The peers of a store", .timeLimit(.minutes(20)))
struct PeersTests {
  @Test("the address of a peer stands with the rest that is known of it")
  func target() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    var configuration = Replicator.Configuration.quick
    configuration.target = "https://example.org/notes"
    let replicator = try store.replicator(named: "home", peer: peer, configuration: configuration)
    _ = try await replicator.syncOnce()
    #expect(try await store.peers().map(\.target) == ["https://example.org/notes"])
  }
}
