import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// A replicator that was let go of must go: it has files open, and an index in memory.
@Suite("The lives of replicators", .timeLimit(.minutes(20)))
struct LifetimeTests {
  /// The objects that should be gone.
  private struct Traces {
    weak var store: Store?
    weak var engine: Engine?
    weak var replicator: Replicator?
    weak var session: SyncSession?

    var isEmpty: Bool { store == nil && engine == nil && replicator == nil && session == nil }
  }

  /// Threads that end may still hold something for a while.
  private func waitForEnd(of traces: Traces) async throws {
    while !traces.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
  }

  private func sessionWithPreparedBatch() throws -> Traces {
    let world = try SyncWorld(devices: 1)
    for number in 0..<3 { try world.put(0, "key \(number)", "value") }
    try world.step(0)
    let device = world.devices[0]
    device.session.limits = SyncLimits(changes: 1)
    #expect(try world.nextPush(0) != nil)
    #expect(try device.session.prepareBatch() != nil)
    return Traces(engine: device.engine, session: device.session)
  }

  @Test("a session goes although it has prepared its next batch, and its engine goes with it")
  func preparedBatch() throws {
    let traces = try sessionWithPreparedBatch()
    #expect(traces.session == nil)
    #expect(traces.engine == nil)
  }

  /// A server takes one change at a time, so that there is always another batch to prepare.
  private func stopWithinPush() async throws -> Traces {
    let peer = try SwitchedPeer(options: SyncHandler.Options(limits: SyncLimits(changes: 1)))
    peer.set { $0.holdsPushes = true }
    let store = try memoryStore()
    for number in 0..<10 { try await store.put("key \(number)", "value") }
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    replicator.start()
    try await peer.wait { $0.pushes.count == 1 }
    await replicator.stop()
    #expect(try await store.pending(for: "home").entries == 10)
    let traces = Traces(store: store, engine: store.engine, replicator: replicator)
    try await store.close()
    return traces
  }

  @Test("a replicator that was stopped within a call goes, and its closed store with it")
  func stoppedReplicator() async throws {
    try await waitForEnd(of: stopWithinPush())
  }

  private func closeUnderReplicator() async throws -> Traces {
    let store = try memoryStore()
    let peer = try SwitchedPeer()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    try await store.put("key", "value")
    replicator.start()
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    let traces = Traces(store: store, engine: store.engine, replicator: replicator)
    try await store.close()
    return traces
  }

  @Test("a store that was closed under its replicator goes, and the replicator with it")
  func closedStore() async throws {
    try await waitForEnd(of: closeUnderReplicator())
  }

  @Test("rounds that are asked for while the replicator is started are made, whoever makes them")
  func onceBesideStart() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    for number in 1...100 {
      try await store.put("key", "\(number)")
      async let first = replicator.syncOnce()
      async let second = replicator.syncOnce()
      replicator.start()
      #expect(try await first.isComplete)
      #expect(try await second.isComplete)
      #expect(try peer.text("key") == "\(number)")
      await replicator.stop()
    }
  }

  @Test("a round that is asked for beside a replicator is made, also when that one is stopped")
  func onceBesideStop() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    for number in 1...100 {
      replicator.start()
      try await store.put("key", "\(number)")
      async let report = replicator.syncOnce()
      if number % 2 == 0 { await Task.yield() }
      await replicator.stop()
      #expect(try await report.isComplete)
      #expect(try peer.text("key") == "\(number)")
    }
  }
}
