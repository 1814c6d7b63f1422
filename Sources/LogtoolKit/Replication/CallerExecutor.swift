internal import TidemarkEngine

// SAFETY: a job is taken out of the queue once and run once, and the executor lives until the
// task that it serves has ended.

/// Runs a task on the thread that waits for it: commands need no pool of threads, and a thread of
/// the pool that waits for one cannot keep it from going on.
final class CallerExecutor: TaskExecutor {
  private let jobs = Monitor<[UnownedJob]>([])

  func enqueue(_ job: consuming ExecutorJob) {
    let unowned = UnownedJob(job)
    jobs.withLock { $0.append(unowned) }
    jobs.broadcast()
  }

  /// Runs what is there, or waits for it, no longer than a time.
  func work(nanoseconds: UInt64) {
    let next = jobs.wait(timeoutNanoseconds: nanoseconds) { jobs -> [UnownedJob]? in
      guard !jobs.isEmpty else { return nil }
      defer { jobs = [] }
      return jobs
    }
    for job in next ?? [] {
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
