import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A replicator that heeds the network", .timeLimit(.minutes(20)))
struct NetworkTests {
  private let time = VirtualTime()
  private let network = NetworkSignal()

  private func replicator(
    _ store: Store, _ peer: SwitchedPeer, onExpensive: SyncBudget.Rule = .priority(atLeast: 1),
    onConstrained: SyncBudget.Rule = .nothing, _ direction: SyncDirection = .both
  ) throws -> Replicator {
    try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(
        SyncBudget(network: network, onExpensive: onExpensive, onConstrained: onConstrained),
        direction))
  }

  @Test("over an expensive network only what is urgent goes, and all once it is another")
  func expensive() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    try await peer.write(2, bytes: 10)
    network.condition = .expensive
    let replicator = try replicator(store, peer)
    replicator.start()
    try await store.put("usual", "1")
    try await store.put("urgent", "1", options: PutOptions(priority: 1))
    await replicator.wait { $0.phase == .heldBack(.network(.expensive)) && $0.pushed == 1 }
    #expect(try peer.text("urgent") == "1" && peer.text("usual") == nil)
    #expect(replicator.status.pulled == 0 && replicator.status.pending.entries == 1)
    // A later change goes, too.
    try await store.put("late", "1", options: PutOptions(priority: 9))
    await replicator.wait { $0.pushed == 2 }
    #expect(try peer.text("late") == "1")
    network.condition = .unrestricted
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty && $0.pulled == 2 }
    #expect(try peer.text("usual") == "1")
    // No call stays at the peer that would bring what others write; one that was cancelled may take
    // a moment to end.
    network.condition = .expensive
    await replicator.wait { $0.phase == .heldBack(.network(.expensive)) }
    while peer.state.withLock({ $0.waiting }) != 0 { try await Task.sleep(for: .milliseconds(1)) }
    await replicator.stop()
  }

  @Test(
    "where nothing may go no call is made",
    arguments: [NetworkCondition.constrained, .offline])
  func nothing(condition: NetworkCondition) async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    network.condition = condition
    let replicator = try replicator(store, peer)
    try await store.put("urgent", "1", options: PutOptions(priority: 1))
    let report = try await replicator.syncOnce()
    #expect(report.heldBack == .network(condition) && !report.isComplete && report.pushed == 0)
    replicator.start()
    replicator.retryNow()
    await replicator.wait { $0.phase == .heldBack(.network(condition)) }
    #expect(peer.state.withLock { $0.calls } == 0 && replicator.status.lastSuccess == nil)
    // One that runs says it, too, to whoever asks for a round.
    #expect(try await replicator.syncOnce().heldBack == .network(condition))
    network.condition = .unrestricted
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    #expect(try peer.text("urgent") == "1")
    await replicator.stop()
  }

  @Test("an expensive network takes everything unless it is said otherwise")
  func byDefault() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    network.condition = .expensive
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(network: network)))
    try await store.put("usual", "1")
    #expect(try await replicator.syncOnce().isComplete)
    #expect(try peer.text("usual") == "1")
  }

  @Test("a floor of priority 0 lets all go but what can wait")
  func low() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    network.condition = .expensive
    let replicator = try replicator(store, peer, onExpensive: .priority(atLeast: 0), .push)
    try await store.put("photo", "1", options: PutOptions(priority: -1))
    try await store.put("usual", "1")
    let report = try await replicator.syncOnce()
    #expect(report.pushed == 1 && report.heldBack == .network(.expensive))
    #expect(try peer.text("usual") == "1" && peer.text("photo") == nil)
    network.condition = .unrestricted
    #expect(try await replicator.syncOnce().isComplete)
    #expect(try peer.text("photo") == "1")
  }

  @Test("where nothing is pending and nothing is to be taken nothing is held back")
  func nothingToDo() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    network.condition = .expensive
    let replicator = try replicator(store, peer, .push)
    try await store.put("urgent", "1", options: PutOptions(priority: 1))
    let report = try await replicator.syncOnce()
    #expect(report.isComplete && report.heldBack == nil && report.pushed == 1)
  }

  @Test("a batch that was prepared when everything might go does not go when it may not")
  func prepared() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try replicator(store, peer)
    for number in 0..<9000 { try store.blocking.put(Key("key \(number)"), "1") }
    peer.set { $0.holdsPushes = true }
    replicator.start()
    try await peer.wait { $0.pushes.count == 1 }
    // The next one is formed by then.
    try await replicator.host.perform { _ in }
    network.condition = .expensive
    peer.set { $0.holdsPushes = false }
    await replicator.wait { $0.phase == .heldBack(.network(.expensive)) && $0.pushed > 0 }
    #expect(peer.state.withLock { $0.pushes.count } == 1)
    await replicator.stop()
  }

  @Test("one that waits after a failure tries again when the network has changed")
  func afterFailure() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    peer.isOn = false
    let replicator = try replicator(store, peer, onExpensive: .everything)
    try await store.put("usual", "1")
    replicator.start()
    await replicator.wait { if case .waiting = $0.phase { true } else { false } }
    peer.isOn = true
    // Nothing ends the first part of the pause.
    await time.advance(by: .seconds(11))
    network.condition = .expensive
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    await replicator.stop()
  }

  @Test("a sequence of conditions is followed to its end")
  func follow() async throws {
    let seen = Lock(0)
    let id = network.observe { seen.withLock { $0 += 1 } }
    await network.follow(
      AsyncStream { continuation in
        for condition in [NetworkCondition.offline, .offline, .expensive] {
          continuation.yield(condition)
        }
        continuation.finish()
      })
    #expect(network.condition == .expensive && seen.withLock { $0 } == 2)
    network.stopObserving(id)
    network.condition = .offline
    #expect(seen.withLock { $0 } == 2)
  }
}
