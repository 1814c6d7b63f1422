internal import DequeModule
internal import NIOPosix
internal import TidemarkSyncServer

/// A fixed number of threads for work that blocks on the disk. One key (a database) gets only some
/// of them, so that a slow database does not stop the others.
///
/// The work of a key has lanes, each with its own queue. The lanes with long work leave at least
/// one of the key's threads to short work, so that pushes do not wait for digests.
final class WorkPool: Sendable {
  /// Kinds of work of one key.
  enum Lane: Int, CaseIterable {
    /// Short work.
    case calls
    /// May read much and find little.
    case pulls
    /// May read all values of a database, so only one runs at a time.
    case digests
  }

  private typealias Job = @Sendable () -> Void

  /// The work of one key.
  private struct Row {
    /// By lane: how many jobs are submitted to the threads, and the queue of others.
    var started = Lane.allCases.map { _ in 0 }
    var held = Lane.allCases.map { _ in Deque<Job>() }
    /// The lane that comes first when another job may start: each in turn.
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

    /// Removes from the queues a job that may start now.
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
  /// The most jobs in the queue of one key and lane, so that there is room for others.
  private let mostHeld: Int
  private let state = PosixMutex(State())

  /// Starts the threads.
  /// - Parameters:
  ///   - threads: how many.
  ///   - perKey: most threads that one key gets.
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
      key, lane, patience: nil,
      finishing: { (finish) throws(Problem) in finish(.success(try body())) })
  }

  /// Runs a job on one of the threads that completes by a call of its argument, exactly once, also
  /// later and on another thread; or by throwing instead.
  /// - Parameter patience: how long it may wait for a thread: a call that nobody waits for any more
  ///   would keep others from theirs. Nil for as long as it takes.
  /// - Throws: what the job fails with; `busy` when too many wait, or it has waited too long.
  func run<Result: Sendable>(
    _ key: String, _ lane: Lane = .calls, patience: Duration? = .seconds(10),
    finishing body:
      @escaping @Sendable (
        @escaping @Sendable (Swift.Result<Result, Problem>) -> Void
      ) throws(Problem) -> Void
  ) async throws(Problem) -> Result {
    let asked = ContinuousClock.now
    let outcome: Swift.Result<Result, Problem> = await withCheckedContinuation { continuation in
      let isTaken = start(key, lane) {
        if let patience, .now - asked > patience {
          let busy = Problem(.busy, "the database is busy", retryAfter: .seconds(1))
          return continuation.resume(returning: .failure(busy))
        }
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
      // Long polls may take three quarters of the places: after a failover thousands of them wake
      // at once, and a hello or a push would find no place. A refused one tries again in a second.
      guard state.count < (lane == .calls ? most : most - most / 4) else { return nil }
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

  /// Notes the end of a job, and starts others of its key.
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
