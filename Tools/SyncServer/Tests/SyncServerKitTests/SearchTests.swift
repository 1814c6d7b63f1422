import Dispatch
import Synchronization
import Testing
import TidemarkSyncServer

@testable import SyncServerKit

@Suite("Work that takes long", .timeLimit(.minutes(20)))
struct SearchTests {
  private final class Counts: Sendable {
    struct Values {
      /// Jobs that have a thread.
      var running: [WorkPool.Lane: Int] = [:]
      /// The most of a lane that had one at the same time.
      var most: [WorkPool.Lane: Int] = [:]
      var refused = 0

      mutating func begin(_ lane: WorkPool.Lane) {
        running[lane, default: 0] += 1
        most[lane] = max(most[lane] ?? 0, running[lane] ?? 0)
      }
    }

    private let values = Mutex(Values())

    func withLock<R: Sendable>(_ body: (inout Values) -> R) -> R {
      values.withLock { values in body(&values) }
    }
  }

  /// Runs jobs of one database that hold their threads until so many of them run or were refused,
  /// and another job of it was done beside them.
  private func hold(
    _ pool: WorkPool, _ lanes: [WorkPool.Lane], running: Int, refused: Int = 0
  ) async throws -> Counts.Values {
    let gate = DispatchSemaphore(value: 0)
    let counts = Counts()
    try await withThrowingTaskGroup(of: Void.self) { jobs in
      for lane in lanes {
        jobs.addTask {
          do throws(Problem) {
            try await pool.run("a", lane) {
              counts.withLock { $0.begin(lane) }
              gate.wait()
              counts.withLock { $0.running[lane, default: 0] -= 1 }
            }
          } catch { counts.withLock { $0.refused += 1 } }
        }
      }
      try await eventually {
        counts.withLock { [$0.running.values.reduce(0, +), $0.refused] }
      } is: {
        $0 == [running, refused]
      }
      // With all threads of the database taken this would never come back.
      #expect(try await pool.run("a") { 7 } == 7)
      for _ in lanes { gate.signal() }
      try await jobs.waitForAll()
    }
    await pool.shutDown()
    return counts.withLock { $0 }
  }

  @Test("digests get one thread of a database, and with pulls together all but one")
  func lanes() async throws {
    let pool = WorkPool(threads: 8, perKey: 4, queued: 64)
    let lanes: [WorkPool.Lane] = [.digests, .pulls, .digests, .pulls, .digests, .pulls]
    let counts = try await hold(pool, lanes, running: 3)
    #expect(counts.most[.digests] == 1 && counts.refused == 0)
  }

  @Test("a lane that is full refuses, and the others take jobs still")
  func fullLane() async throws {
    let pool = WorkPool(threads: 2, perKey: 2, queued: 16)
    // One has a thread, thirteen wait: a quarter of the eighteen places is kept for calls.
    _ = try await hold(pool, Array(repeating: .pulls, count: 30), running: 1, refused: 16)
  }

  @Test("a charge beyond what there was has to be waited for")
  func debt() {
    let limiter = RateLimiter(rate: 0.5, burst: 10, callers: 4)
    let start = ContinuousClock.now
    #expect(limiter.debt(of: "a", at: start) == nil)
    limiter.charge("a", 9, at: start)
    #expect(limiter.debt(of: "a", at: start) == nil)
    limiter.charge("a", 5, at: start)
    #expect(limiter.debt(of: "a", at: start) == 8)
    #expect(limiter.debt(of: "b", at: start) == nil)
    #expect(limiter.debt(of: "a", at: start + .seconds(7)) == 1)
    #expect(limiter.debt(of: "a", at: start + .seconds(9)) == nil)
    #expect(RateLimiter(rate: 0, burst: 0, callers: 4).debt(of: "a") == nil)
  }

  @Test("a caller that has compared too much is told when to come again, and pushes and pulls on")
  func share() async throws {
    try await TestServer.run {
      $0.tokens = "one-token-of-some-length *\nanother-token-of-some-length *"
      $0.limits.searchShare = 1e-9
      $0.limits.searchAtOnce = .nanoseconds(1)
    } _: { server in
      let one = "one-token-of-some-length"
      let me = ReplicaID.test(1)
      _ = try await server.call(.helloRequest(HelloRequest(replica: me)), token: one)
      _ = try await server.call(.pushRequest(.puts(["a"], by: me)), token: one)
      let digest = WireMessage.digestRequest(DigestRequest(replica: me))
      #expect(try await server.call(digest, token: one).status == 200)
      let (status, answer) = try await server.call(digest, token: one)
      #expect(status == 429 && answer.errorKind == .busy)
      guard case .error(let error) = answer else { throw Unexpected() }
      #expect((error.retryAfter ?? .zero) > .zero)
      let push = WireMessage.pushRequest(.puts(["b"], by: me, number: 2))
      #expect(try await server.call(push, token: one).status == 200)
      // A pull that finds something costs nothing, and one that finds nothing counts by itself.
      for (scope, expected) in [([], 200), ([], 200), (["none"], 200), (["none"], 429)] {
        let pull = WireMessage.pullRequest(
          PullRequest(
            replica: .test(2), after: .beginning,
            scope: SyncScope(keyPrefixes: scope)))
        #expect(try await server.call(pull, token: one).status == expected)
      }
      #expect(
        try await server.call(digest, token: "another-token-of-some-length").status == 200)
    }
  }
}
