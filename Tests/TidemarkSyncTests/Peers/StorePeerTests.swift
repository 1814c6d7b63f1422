import Testing
import Tidemark
import TidemarkSync
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("A store as the remote end")
struct StorePeerTests {
  private func configuration(usesThreads: Bool) -> Store.Configuration {
    Store.Configuration(
      environment: Store.Environment(
        fileSystem: SimulatedFileSystem(seed: 1), clock: ManualClock(),
        random: SeededRandom(seed: 2)),
      usesThreads: usesThreads)
  }

  @Test("all calls reach the store, on threads of their own and without", arguments: [false, true])
  func calls(usesThreads: Bool) async throws {
    let peer = try await StorePeer(
      at: "peer", configuration: configuration(usesThreads: usesThreads))
    var a = Device(1)
    let hello = try await peer.hello(HelloRequest(replica: a.id))
    #expect(hello.mark.number == 0 && hello.limits == peer.capabilities.limits)
    a.number = 1
    let pushed = try await peer.push(a.batch([a.put("k", "1")]))
    #expect(pushed.mark.verdicts.map(\.name) == ["applied"])
    let pulled = try await peer.pull(PullRequest(replica: Device(2).id, after: .beginning))
    #expect(pulled.entries.map(\.key) == [Array("k".utf8)])
    let values = try await peer.values(
      ValuesRequest(replica: a.id, keys: [Array("k".utf8)]))
    #expect(values.entries == pulled.entries)
    #expect(try await peer.digest(DigestRequest(replica: a.id)).parts[0].total.keys == 1)
    await peer.close()
    await #expect(throws: PeerError.self) {
      _ = try await peer.hello(HelloRequest(replica: a.id))
    }
  }

  @Test("a pull that waits is woken by what comes, and ends by itself when nothing does")
  func waiting() async throws {
    let peer = try await StorePeer(at: "peer", configuration: configuration(usesThreads: true))
    var a = Device(1)
    _ = try await peer.hello(HelloRequest(replica: a.id))
    let reader = Device(2)
    let nothing = try await peer.pull(
      PullRequest(replica: reader.id, after: .beginning, waitMilliseconds: 1))
    #expect(nothing.entries.isEmpty)
    async let waiting = peer.pull(
      PullRequest(replica: reader.id, after: nothing.cursor, waitMilliseconds: 600_000))
    a.number = 1
    _ = try await peer.push(a.batch([a.put("k", "1")]))
    #expect(try await waiting.entries.map(\.kind) == [.put])
    await peer.close()
  }

  @Test("a store tells by which keys it differs from a peer, and changes nothing")
  func difference() async throws {
    let peer = try await StorePeer(at: "peer", configuration: configuration(usesThreads: false))
    let store = try await Store.open(at: "here", configuration: configuration(usesThreads: false))
    var empty = try await store.difference(from: peer)
    #expect(empty.isEqual && empty.comparisons == 1)
    var a = Device(1)
    _ = try await peer.hello(HelloRequest(replica: a.id))
    a.number = 1
    _ = try await peer.push(
      a.batch([a.put("both", "1"), a.put("there", "1"), a.put("other", "1"), a.put("b", "1")]))
    try await store.write { batch in
      try batch.put("both", "1")
      try batch.put("other", "2")
      try batch.put("here", "1")
      try batch.put("a", "1")
    }
    let last = store.lastSequence
    let found = try await store.difference(from: peer)
    #expect(found.onlyHere == ["a", "here"])
    #expect(found.onlyThere == ["b", "there"])
    #expect(found.different == ["other"])
    #expect(!found.isEqual && store.lastSequence == last)
    let part = try await store.difference(from: peer, scope: SyncScope(keyPrefixes: ["bo"]))
    #expect(part.isEqual)
    await peer.close()
    await #expect(throws: PeerError.self) { empty = try await store.difference(from: peer) }
  }

  @Test("a pull that waits can be cancelled")
  func cancelling() async throws {
    let peer = try await StorePeer(at: "peer", configuration: configuration(usesThreads: true))
    let task = Task {
      try await peer.pull(
        PullRequest(replica: Device(2).id, after: .beginning, waitMilliseconds: 600_000))
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
    await peer.close()
  }
}
