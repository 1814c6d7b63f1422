import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Pending entries", .timeLimit(.minutes(20)))
struct PendingTests {
  @Test("each key counts once, and only what the program wrote and the peer could use")
  func counts() async throws {
    let store = try memoryStore()
    #expect(try await store.pending().isEmpty)
    for number in 0..<10 { try await store.put("key", "\(number)") }
    try await store.put("second", "12345", labels: ["a", "b"])
    try await store.put("third", "1", labels: ["a"])
    try await store.put("gone", "x")
    try await store.delete("gone")
    try await store.put("cached", "x", options: PutOptions(storageClass: .cache))
    try await store.touch("second")
    let summary = try await store.pending()
    #expect(summary.entries == 3 && summary.bytes == 3 + 1 + 6 + 5 + 5 + 1)
    #expect(try await store.pendingByLabel() == ["a": 2, "b": 1])
    try await store.put("second", "1", labels: ["a"])
    #expect(try await store.pendingByLabel() == ["a": 2])
    let first = try await store.pendingEntries(limit: 2)
    #expect(first.entries.map(\.key) == ["key", "third"])
    let next = try #require(first.next)
    let rest = try await store.pendingEntries(after: next)
    #expect(rest.entries.map(\.key) == ["second"] && rest.next == nil)
    #expect(rest.entries.first?.state == .pending)
    #expect(summary.oldest == first.entries.first?.commitTime)
  }

  @Test("a delete of what the peer has counts, one of what it never had does not")
  func deletes() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer)
    try await store.put("key", "one")
    _ = try await replicator.syncOnce()
    #expect(try await store.pending().isEmpty)
    try await store.delete("key")
    try await store.put("new", "one")
    try await store.delete("new")
    let page = try await store.pendingEntries()
    #expect(page.entries.map(\.kind) == [.delete])
    _ = try await replicator.syncOnce()
    #expect(try await store.pending().isEmpty)
  }

  @Test("outside of the scope nothing is pending, also for whoever looks at the closed store")
  func scope() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(environment: Store.Environment(fileSystem: disk))
    let store = try await Store.open(at: "store", configuration: configuration)
    let peer = try SwitchedPeer()
    var replicator: Replicator? = try store.replicator(
      named: "home", peer: peer, scope: SyncScope(labels: ["in"]))
    _ = try await replicator?.syncOnce()
    try await store.put("a", "1", labels: ["in"])
    try await store.put("b", "1")
    #expect(try await store.pending(for: "home").entries == 1)
    replicator = nil
    #expect(try await store.pending(for: "home").entries == 1)
    #expect(try await store.pending(for: "unknown").entries == 2)
    try await store.close()
    var reading = configuration
    reading.access = .readOnly
    let reader = try await Store.open(at: "store", configuration: reading)
    #expect(try await reader.pending().entries == 1)
    try await reader.close()
  }

  @Test(
    "the status counts what is pending from the first on, whether or not the replicator runs",
    arguments: [true, false])
  func statusCounts(usesThreads: Bool) async throws {
    let peer = try SwitchedPeer()
    peer.isOn = false
    let store = try memoryStore(usesThreads: usesThreads)
    for number in 0..<3 { try await store.put("key \(number)", "value") }
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    #expect(replicator.status.pending.entries == 3)
    try await store.put("key 3", "value")
    #expect(replicator.status.pending.entries == 4)
    try await store.put("key 4", "value")
    for await status in replicator.statuses() {
      #expect(status.phase == .stopped && status.pending.entries == 5)
      break
    }
    await #expect(throws: TidemarkError.self) { _ = try await replicator.syncOnce() }
    try await store.put("key 5", "value")
    #expect(replicator.status.pending.entries == 6)
    peer.isOn = true
    _ = try await replicator.syncOnce()
    #expect(replicator.status.pending.isEmpty)
  }

  @Test("no status that a stream begins with is without a count, while the replicator starts")
  func statusesCount() async throws {
    let peer = try SwitchedPeer()
    peer.set { $0.holdsPushes = true }
    let store = try memoryStore()
    for number in 0..<3 { try await store.put("key \(number)", "value") }
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    let statuses = replicator.statuses()
    replicator.start()
    for await status in statuses {
      #expect(status.pending.entries == 3, "\(status.phase)")
      if status.phase == .pushing { break }
    }
    peer.set { $0.holdsPushes = false }
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    await replicator.stop()
  }

  @Test("several peers: what one of them lacks counts once")
  func severalPeers() async throws {
    let store = try memoryStore()
    let (a, b) = (try SwitchedPeer(), try SwitchedPeer())
    let first = try store.replicator(
      named: "a", peer: a, scope: SyncScope(keyPrefixes: ["a/"]))
    let second = try store.replicator(
      named: "b", peer: b, scope: SyncScope(keyPrefixes: ["b/"]))
    _ = try await (first.syncOnce(), second.syncOnce())
    try await store.put("a/1", "1")
    try await store.put("b/1", "1")
    try await store.put("c/1", "1")
    #expect(try await store.pending().entries == 2)
    await #expect(throws: TidemarkError.self) { _ = try await store.pendingEntries() }
    _ = try await first.syncOnce()
    #expect(try await store.pending().entries == 1)
    #expect(try await store.peers().map(\.name) == ["a", "b"])
  }

  @Test(
    "the count is always that of a walk through the log",
    arguments: 1...8 as ClosedRange<UInt64>)
  func model(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let validator = SyncValidator { change, _ in
      String(decoding: change.content.value, as: UTF8.self).hasPrefix("bad")
        ? SyncRejection(code: "invalid", message: "bad") : nil
    }
    let peer = try SwitchedPeer(options: SyncHandler.Options(validators: [validator]))
    let (store, other) = (try memoryStore(), try memoryStore())
    let resolver: ConflictResolver = seed % 3 == 0 ? .ask : seed % 3 == 1 ? .localWins : .remoteWins
    let replicator = try store.replicator(named: "home", peer: peer, resolver: resolver)
    let second = try other.replicator(named: "home", peer: peer)
    for _ in 0..<160 {
      let key = "key \(generator.int(below: 8))"
      switch generator.int(below: 14) {
      case 0..<4: try await store.put(Key(key), "\(generator.int(below: 100))", labels: ["x"])
      case 4: try await store.put(Key(key), "bad \(generator.int(below: 100))")
      case 5, 6: try await store.delete(Key(key))
      case 7: try await store.touch(Key(key))
      case 8: try await other.put(Key(key), "other \(generator.int(below: 100))")
      case 9: _ = try? await second.syncOnce()
      case 10: peer.set { $0.losesAnswers = generator.chance(0.3) }
      case 11: peer.isOn = generator.chance(0.8)
      default: _ = try? await replicator.syncOnce()
      }
      let live = try await store.pending(for: "home")
      let walked = try await replicator.host.perform { state in
        try Self.walk(try state.session())
      }
      #expect(
        live.entries + live.parked + live.needsDecision == walked.count, "seed \(seed)")
      #expect(
        try await store.pendingEntries(for: "home").entries.map(\.sequence) == walked,
        "seed \(seed)")
    }
    peer.set {
      $0.losesAnswers = false
      $0.isOn = true
    }
    _ = try await replicator.syncOnce()
    #expect(try await store.pending(for: "home").entries == 0, "seed \(seed)")
    #expect(try peer.repeats() == 0, "seed \(seed)")
  }

  /// The pending entries, by the rule, key by key.
  private static func walk(_ session: SyncSession) throws -> [UInt64] {
    var pending: Set<UInt64> = []
    var cursor = session.log.entries(from: 1, through: session.log.head)
    while let entry = try cursor.next() {
      guard let change = try session.log.newestChange(ofKey: entry.key), change.isOwn,
        session.isPending(change), try session.isWorthSending(change)
      else { continue }
      pending.insert(change.sequence)
    }
    return pending.sorted()
  }
}
