internal import DequeModule
internal import NIOPosix
internal import TidemarkSyncServer

/// Threads for work that waits for the disk: a fixed number, of which one database gets no more
/// than its part, waiting or not, so that a slow one does not stop the others.
///
/// Within a database work has lanes, each with a queue of its own. What may take long gets no more
/// than all threads of the database but one: pushes find a thread however much others compare.
final class WorkPool: Sendable {
  /// Kinds of work of one key.
  enum Lane: Int, CaseIterable {
    /// Short work.
    case calls
    /// May look at much and find little.
    case pulls
    /// Reads all values of a database; one at a time.
    case digests
  }

  private typealias Job = @Sendable () -> Void

  /// The work of one key.
  private struct Row {
    /// By lane: how many jobs are with the threads, and those that wait until there are fewer.
    var started = Lane.allCases.map { _ in 0 }
    var held = Lane.allCases.map { _ in Deque<Job>() }
    /// Which lane comes first when there is room again: each in its turn.
    var turn = 0

    func mayStart(_ lane: Lane, _ most: Int) -> Bool {
      let long = started[Lane.pulls.rawValue] + started[Lane.digests.rawValue]
      guard started[Lane.calls.rawValue] + long < most else { return false }
      switch lane {
      case .calls: return true
      case .pulls: return long < max(1, most - 1)
      case .digests: return long < max(1, most - 1) && started[lane.rawValue] == 0
      }
    }

    /// Takes out a job that may start now.
    mutating func next(_ most: Int) -> (Lane, Job)? {
      for offset in Lane.allCases.indices {
        let lane = Lane.allCases[(turn + offset) % Lane.allCases.count]
        guard mayStart(lane, most), let job = held[lane.rawValue].popFirst() else { continue }
        turn = lane.rawValue + 1
        started[lane.rawValue] += 1
        return (lane, job)
      }
      return nil
    }
  }

  private struct State {
    var rows: [String: Row] = [:]
    var count = 0
  }

  private let threads: NIOThreadPool
  private let perKey: Int
  private let most: Int
  /// The most jobs that one key and lane may hold, so that it leaves room for others.
  private let mostHeld: Int
  private let state = PosixMutex(State())

  /// Starts the threads.
  /// - Parameters:
  ///   - threads: how many.
  ///   - perKey: most that one key gets.
  ///   - queued: most jobs that wait.
  init(threads: Int, perKey: Int, queued: Int) {
    self.threads = NIOThreadPool(numberOfThreads: max(1, threads))
    self.perKey = max(1, perKey)
    most = max(1, queued) + max(1, threads)
    mostHeld = max(queued / 4, min(queued, 16))
    self.threads.start()
  }

  /// Runs a job on one of the threads.
  /// - Throws: what the job throws; `busy` when too many wait.
  func run<Result: Sendable>(
    _ key: String, _ lane: Lane = .calls,
    _ body: @escaping @Sendable () throws(Problem) -> Result
  ) async throws(Problem) -> Result {
    try await run(
      key, lane,
      finishing: { (finish) throws(Problem) in finish(.success(try body())) })
  }

  /// Runs a job on one of the threads which says itself when it is done: once, and maybe on another
  /// thread, after it has given its own back. What it throws instead is its failure.
  /// - Throws: what the job fails with; `busy` when too many wait.
  func run<Result: Sendable>(
    _ key: String, _ lane: Lane = .calls,
    finishing body:
      @escaping @Sendable (
        @escaping @Sendable (Swift.Result<Result, Problem>) -> Void
      ) throws(Problem) -> Void
  ) async throws(Problem) -> Result {
    let outcome: Swift.Result<Result, Problem> = await withCheckedContinuation { continuation in
      let isTaken = start(key, lane) {
        do throws(Problem) { try body { continuation.resume(returning: $0) } } catch {
          continuation.resume(returning: .failure(error))
        }
      }
      if !isTaken {
        let busy = Problem(.busy, "the server has too much to do", retryAfter: .seconds(1))
        continuation.resume(returning: .failure(busy))
      }
    }
    return try outcome.get()
  }

  /// Ends the threads when all jobs are done.
  func shutDown() async { try? await threads.shutdownGracefully() }

  private func start(_ key: String, _ lane: Lane, _ job: @escaping Job) -> Bool {
    let mayStart: Bool? = state.withLock { state in
      guard state.count < most else { return nil }
      var row = state.rows[key] ?? Row()
      let mayStart = row.mayStart(lane, perKey)
      if mayStart {
        row.started[lane.rawValue] += 1
      } else {
        guard row.held[lane.rawValue].count < mostHeld else { return nil }
        row.held[lane.rawValue].append(job)
      }
      state.count += 1
      state.rows[key] = row
      return mayStart
    }
    if mayStart == true { submit(key, lane, job) }
    return mayStart != nil
  }

  private func submit(_ key: String, _ lane: Lane, _ job: @escaping Job) {
    threads.submit { [self] _ in
      job()
      finish(key, lane)
    }
  }

  /// A job of a key has ended: others of it may begin.
  private func finish(_ key: String, _ lane: Lane) {
    let next: [(Lane, Job)] = state.withLock { state in
      state.count -= 1
      guard var row = state.rows[key] else { return [] }
      row.started[lane.rawValue] -= 1
      var jobs: [(Lane, Job)] = []
      while let job = row.next(perKey) { jobs.append(job) }
      state.rows[key] = row.started.allSatisfy { $0 == 0 } ? nil : row
      return jobs
    }
    for (lane, job) in next { submit(key, lane, job) }
  }
}
