import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A program that is killed while somebody signs out", .timeLimit(.minutes(20)))
struct SignOutCrashTests {
  private func open(_ disk: SimulatedFileSystem) throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: disk), usesThreads: false))
  }

  /// The disk at every sync of signing out, and what the store held.
  private func moments() async throws -> (points: [DiskSnapshot], before: [String: String]) {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try open(disk)
    let replicator = try store.replicator(named: "home", peer: SwitchedPeer())
    // More than go in one commit.
    for number in 0..<300 { try await store.put("sent/\(number)", "A") }
    _ = try await replicator.syncOnce()
    try await store.delete("sent/1")
    try await store.write(atomicAtPeer: true) { batch in
      try batch.put("group 1", "A")
      try batch.put("group 2", "A")
    }
    try await store.put("unsent", "A")
    let before = try SyncWorld.state(store.engine)
    try await store.flush()
    disk.keepsCrashPoints = true
    try await replicator.signOut(.discard)
    try await store.close()
    return (disk.takeCrashPoints(), before)
  }

  @Test("after a kill at any write a sign-out is complete or not begun, and no change is sent")
  func everySync() async throws {
    let (points, before) = try await moments()
    #expect(points.count > 2)
    var outcomes: Set<Bool> = []
    for (call, point) in points.enumerated() {
      let survivals = Survival.sweep(seed: UInt64(call), randoms: 2)
      for survival in [nil] + survivals.map({ Optional.some($0) }) {
        let comment: Comment = "sync \(call), \(survival.map { "\($0)" } ?? "kill")"
        let disk =
          survival.map { SimulatedFileSystem(point, keeping: $0, seed: 3) }
          ?? SimulatedFileSystem(killedAt: point, seed: 3)
        let store = try open(disk)
        // The first question carries it out.
        let pending = try await store.pending(for: "other")
        let state = try SyncWorld.state(store.engine)
        let hasGone = state.isEmpty
        outcomes.insert(hasGone)
        guard hasGone else {
          #expect(state == before, comment)
          #expect(try await store.peers().map(\.name) == ["home"], comment)
          #expect(try await store.pending(for: "home").entries == 4, comment)
          continue
        }
        #expect(pending.isEmpty, comment)
        #expect(try await store.peers().isEmpty, comment)
        let next = try SwitchedPeer()
        let replicator = try store.replicator(named: "other", peer: next)
        try await store.put("group 1", "B")
        #expect(try await replicator.syncOnce().isComplete, comment)
        let pushed = next.state.withLock { $0.pushes.flatMap(\.changes) }
        #expect(pushed.map(\.name) == ["group 1"], comment)
        #expect(pushed.allSatisfy { $0.content.value == [66] }, comment)
      }
    }
    #expect(outcomes == [true, false])
  }
}
