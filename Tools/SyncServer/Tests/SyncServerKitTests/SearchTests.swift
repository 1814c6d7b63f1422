import Dispatch
import Synchronization
import Testing
import TidemarkSync

@testable import SyncServerKit

@Suite("Work that takes long", .timeLimit(.minutes(20)))
struct SearchTests {
  /// What jobs count.
  private final class Counts: Sendable {
    struct Values {
      var pulls = 0
      var digests = 0
      var mostDigests = 0
      var refused = 0
    }

    private let values = Mutex(Values())

    func withLock<R: Sendable>(_ body: (inout Values) -> R) -> R {
      values.withLock { values in body(&values) }
    }
  }

  @Test("digests get one thread of a database, and with pulls together all but one")
  func lanes() async throws {
    let pool = WorkPool(threads: 8, perKey: 4, queued: 64)
    let gate = DispatchSemaphore(value: 0)
    let running = Counts()
    try await withThrowingTaskGroup(of: Void.self) { jobs in
      for _ in 0..<3 {
        jobs.addTask {
          try await pool.run("a", .digests) {
            running.withLock {
              $0.digests += 1
              $0.mostDigests = max($0.mostDigests, $0.digests)
            }
            gate.wait()
            running.withLock { $0.digests -= 1 }
          }
        }
        jobs.addTask {
          try await pool.run("a", .pulls) {
            running.withLock { $0.pulls += 1 }
            gate.wait()
          }
        }
      }
      try await eventually {
        running.withLock { $0.pulls + $0.digests }
      } is: {
        $0 == 3
      }
      // With all threads of the database taken this would never come back.
      #expect(try await pool.run("a") { 7 } == 7)
      for _ in 0..<6 { gate.signal() }
      try await jobs.waitForAll()
    }
    #expect(running.withLock { $0.mostDigests } == 1)
    #expect(running.withLock { $0.pulls } == 3)
    await pool.shutDown()
  }

  @Test("a lane that is full refuses, and the others take jobs still")
  func fullLane() async throws {
    let pool = WorkPool(threads: 2, perKey: 2, queued: 16)
    let gate = DispatchSemaphore(value: 0)
    let refused = Counts()
    try await withThrowingTaskGroup(of: Void.self) { jobs in
      for _ in 0..<30 {
        jobs.addTask {
          do throws(Problem) { try await pool.run("a", .pulls) { gate.wait() } } catch {
            refused.withLock { $0.refused += 1 }
          }
        }
      }
      // One has a thread, sixteen wait.
      try await eventually {
        refused.withLock { $0.refused }
      } is: {
        $0 == 13
      }
      #expect(try await pool.run("a") { 7 } == 7)
      for _ in 0..<17 { gate.signal() }
      try await jobs.waitForAll()
    }
    await pool.shutDown()
  }

  @Test("what was charged beyond what there was has to be waited for")
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

  @Test("who has compared too much is told when to come again, and goes on pushing and pulling")
  func share() async throws {
    try await TestServer.run {
      $0.tokens = "one-token-of-some-length *\nanother-token-of-some-length *"
      $0.limits.searchSecondsPerSecond = 1e-6
      $0.limits.searchSecondsAtOnce = 1e-9
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
      #expect((error.retryAfterSeconds ?? 0) > 0)
      let push = WireMessage.pushRequest(.puts(["b"], by: me, number: 2))
      #expect(try await server.call(push, token: one).status == 200)
      // What finds something costs nothing, and what finds nothing counts by itself.
      for (scope, expected) in [([], 200), ([], 200), (["none"], 200), (["none"], 429)] {
        let pull = WireMessage.pullRequest(
          PullRequest(
            replica: .test(2), after: .beginning,
            scope: SyncScope(keyPrefixes: scope.map { Array($0.utf8) })))
        #expect(try await server.call(pull, token: one).status == expected)
      }
      #expect(
        try await server.call(digest, token: "another-token-of-some-length").status == 200)
    }
  }
}
