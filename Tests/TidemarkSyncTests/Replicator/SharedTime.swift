import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// The time of many replicators: it moves to the end of the shortest sleep once all of them sleep.
final class SharedTime: Sendable {
  let clock = ManualClock()
  private struct Sleeper {
    var end: UInt64
    var continuation: CheckedContinuation<Void, Never>
  }
  private struct State {
    var sleepers: [Int: Sleeper] = [:]
    var nextID = 0
  }
  private let state = Lock(State())
  private let slept = Signal()

  var seconds: Double { Double(clock.monotonicNanoseconds()) / 1e9 }

  func sleep(_ duration: Duration) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let length = duration / .nanoseconds(1)
    let end = clock.monotonicNanoseconds() + UInt64(max(0, length.rounded(.up)))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isCancelled = state.withLock { state in
          if Task.isCancelled { return true }
          state.sleepers[id] = Sleeper(end: end, continuation: continuation)
          return false
        }
        if isCancelled { continuation.resume() } else { slept.raise() }
      }
    } onCancel: {
      state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume()
    }
    try Task.checkCancellation()
  }

  /// Waits until so many sleep.
  func waitForSleepers(_ count: Int) async { await onceSleeping(count) { _ in } }

  /// Moves on to the end of the shortest sleep, once so many sleep.
  func step(sleepers count: Int) async {
    let due = await onceSleeping(count) { state -> [Sleeper] in
      guard let end = state.sleepers.values.map(\.end).min() else { return [] }
      let now = clock.monotonicNanoseconds()
      clock.advance(by: .nanoseconds(Int64(clamping: end - min(end, now))))
      let due = state.sleepers.filter { $0.value.end <= end }
      for id in due.keys { state.sleepers[id] = nil }
      return Array(due.values)
    }
    for sleeper in due ?? [] { sleeper.continuation.resume() }
  }

  /// Waits until `count` tasks sleep, and calls `body` under the same lock: a write may wake one of
  /// them at any other time.
  /// - Returns: nil where the task was cancelled before.
  @discardableResult
  private func onceSleeping<R>(_ count: Int, _ body: (inout State) -> R) async -> R? {
    while !Task.isCancelled {
      let seen = slept.count
      let result = state.withLock { $0.sleepers.count >= count ? body(&$0) : nil }
      if let result { return result }
      await slept.wait(beyond: seen)
    }
    return nil
  }

  /// A store of its own random numbers.
  func store(
    seed: UInt64, files: MemoryFileSystem = MemoryFileSystem(), usesThreads: Bool = false
  ) throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(
          fileSystem: files, clock: clock, random: SeededRandom(seed: seed)),
        usesThreads: usesThreads))
  }

  func configuration(firstRetry: Duration = .seconds(1)) -> Replicator.Configuration {
    var configuration = Replicator.Configuration(firstRetry: firstRetry)
    configuration.sleep = { [self] in try await sleep($0) }
    return configuration
  }
}

/// A peer with an empty feed that notes when it is called, and fails as it is told.
final class ScriptedPeer: Peer {
  struct State {
    /// The failure of every call; nil while all is well.
    var failure: PeerError?
    /// The failure of pulls that wait.
    var pollFailure: PeerError?
    /// When hellos came, in seconds of the shared time.
    var hellos: [Double] = []
  }

  let state = Lock(State())
  private let time: SharedTime
  private let canWait: Bool
  private let range = FeedRange(epochs: [FeedEpoch(epoch: 1, firstOffset: 1)], head: 0)

  init(_ time: SharedTime, canWait: Bool = false) {
    self.time = time
    self.canWait = canWait
  }

  var hellos: [Double] { state.withLock { $0.hellos } }
  func fail(_ failure: PeerError?) { state.withLock { $0.failure = failure } }

  var capabilities: PeerCapabilities { PeerCapabilities(canWait: canWait) }

  func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try state.withLock { state in
      state.hellos.append(time.seconds)
      if let failure = state.failure { throw failure }
    }
    return HelloAnswer(feed: Device(7).id, range: range, mark: ReplicaMark(), time: 0)
  }

  func push(_ request: PushRequest) async throws -> PushAnswer {
    throw PeerError(.unavailable, "nothing is taken")
  }

  func pull(_ request: PullRequest) async throws -> PullAnswer {
    try state.withLock { state in
      if let failure = state.failure { throw failure }
      if request.waitMilliseconds > 0, let failure = state.pollFailure { throw failure }
    }
    if request.waitMilliseconds > 0 {
      try await time.sleep(.milliseconds(Int64(request.waitMilliseconds)))
    }
    return PullAnswer(entries: [], cursor: request.after, range: range, mark: ReplicaMark())
  }

  func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    throw PeerError(.failed, "no")
  }

  func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    throw PeerError(.failed, "no")
  }

  func close() async {}
}
