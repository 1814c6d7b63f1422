internal import DequeModule
internal import NIOPosix
internal import Synchronization
internal import TidemarkSync

/// Threads for work that waits for the disk: a fixed number, of which one database gets no more
/// than its part, waiting or not, so that a slow one does not stop the others.
final class WorkPool: Sendable {
  private typealias Job = @Sendable () -> Void

  private struct State {
    /// By key: how many jobs are with the threads.
    var started: [String: Int] = [:]
    /// By key: those that wait until there are fewer.
    var held: [String: Deque<Job>] = [:]
    var count = 0
  }

  private let threads: NIOThreadPool
  private let perKey: Int
  private let most: Int
  /// Of one key, so that it leaves room for others.
  private let mostHeld: Int
  private let state = Mutex(State())

  /// Starts the threads.
  /// - Parameters:
  ///   - threads: how many.
  ///   - perKey: most that one key gets.
  ///   - queued: most jobs that wait.
  init(threads: Int, perKey: Int, queued: Int) {
    self.threads = NIOThreadPool(numberOfThreads: max(1, threads))
    self.perKey = max(1, perKey)
    most = max(1, queued) + max(1, threads)
    mostHeld = max(queued / 2, min(queued, 16))
    self.threads.start()
  }

  /// Runs a job on one of the threads.
  /// - Throws: what the job throws; `busy` when too many wait.
  func run<Result: Sendable>(
    _ key: String, _ body: @escaping @Sendable () throws(Problem) -> Result
  ) async throws(Problem) -> Result {
    let outcome: Swift.Result<Result, Problem> = await withCheckedContinuation { continuation in
      let isTaken = start(key) {
        continuation.resume(returning: Swift.Result { () throws(Problem) in try body() })
      }
      if !isTaken {
        let busy = PeerError(.busy, "the server has too much to do", retryAfterSeconds: 1)
        continuation.resume(returning: .failure(Problem(busy)))
      }
    }
    return try outcome.get()
  }

  /// Ends the threads when all jobs are done.
  func shutDown() async { try? await threads.shutdownGracefully() }

  private func start(_ key: String, _ job: @escaping Job) -> Bool {
    let mayStart: Bool? = state.withLock { state in
      guard state.count < most else { return nil }
      state.count += 1
      guard state.started[key, default: 0] < perKey else {
        guard state.held[key]?.count ?? 0 < mostHeld else {
          state.count -= 1
          return nil
        }
        state.held[key, default: []].append(job)
        return false
      }
      state.started[key, default: 0] += 1
      return true
    }
    if mayStart == true { submit(key, job) }
    return mayStart != nil
  }

  private func submit(_ key: String, _ job: @escaping Job) {
    threads.submit { [self] _ in
      job()
      finish(key)
    }
  }

  /// A job of a key has ended: the next one of it may begin.
  private func finish(_ key: String) {
    let next: Job? = state.withLock { state in
      state.count -= 1
      if let job = state.held[key]?.popFirst() {
        if state.held[key]?.isEmpty == true { state.held[key] = nil }
        return job
      }
      let left = state.started[key, default: 1] - 1
      state.started[key] = left > 0 ? left : nil
      return nil
    }
    if let next { submit(key, next) }
  }
}
