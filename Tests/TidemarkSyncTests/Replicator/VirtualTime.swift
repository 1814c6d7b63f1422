import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncServer

/// A clock that the test moves, and sleepers that it wakes so.
final class VirtualTime: Sendable {
  let clock = ManualClock()
  let files = MemoryFileSystem()
  private let moved = Signal()
  private let sleepers = Lock(0)
  private let slept = Signal()

  /// Opens the store, as of the same disk each time.
  func store() throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: files, clock: clock)))
  }

  /// Lets time pass once somebody sleeps: who is about to would sleep on.
  func advance(by duration: Duration) async {
    while true {
      let seen = slept.count
      // A sleeper that is cancelled, as by a time limit, does not wait any more.
      if sleepers.withLock({ $0 }) > 0 || Task.isCancelled { break }
      await slept.wait(beyond: seen)
    }
    pass(duration)
  }

  /// Lets time pass.
  func pass(_ duration: Duration) {
    clock.advance(by: duration)
    moved.raise()
  }

  func configuration(_ budget: SyncBudget, _ direction: SyncDirection = .both)
    -> Replicator.Configuration
  {
    var configuration = Replicator.Configuration(
      direction: direction, firstRetry: .seconds(40), longestRetry: .seconds(4000), budget: budget)
    configuration.sleep = { [self] duration in
      let parts = duration.components
      let end =
        clock.monotonicNanoseconds() + UInt64(parts.seconds) * 1_000_000_000
        + UInt64(parts.attoseconds / 1_000_000_000)
      sleepers.withLock { $0 += 1 }
      slept.raise()
      defer { sleepers.withLock { $0 -= 1 } }
      while true {
        let seen = moved.count
        if clock.monotonicNanoseconds() >= end { return }
        await moved.wait(beyond: seen)
        try Task.checkCancellation()
      }
    }
    return configuration
  }
}

extension Replicator {
  func waitUntilHeldBack() async {
    await wait { if case .heldBack = $0.phase { true } else { false } }
  }
}

extension SwitchedPeer {
  /// Bytes of keys and values in all pushes, and 64 for each change.
  var sentBytes: Int {
    state.withLock { state in
      state.pushes.flatMap(\.changes).reduce(0) {
        $0 + $1.key.count + $1.content.value.count + 64
      }
    }
  }

  /// Lets somebody else write.
  func write(_ count: Int, bytes: Int) async throws {
    let other = try memoryStore()
    for number in 0..<count {
      try await other.put(
        Key("theirs \(number)"), String(repeating: "t", count: bytes))
    }
    let report = try await other.replicator(named: "x", peer: HandlerPeer(handler)).syncOnce()
    #expect(report.applied == count)
  }
}
