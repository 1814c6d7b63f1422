internal import TidemarkEngine

// SAFETY: every job is run once, by the thread that takes it out of the queue, and the executor
// lives until `run` has returned, which is after the task that it serves has ended.

/// Runs a task on the thread that waits for it: commands need no pool of threads, and a thread of
/// the pool that waits for one cannot keep it from going on.
final class CallerExecutor: TaskExecutor {
  private let jobs = Monitor<[UnownedJob]>([])

  func enqueue(_ job: consuming ExecutorJob) {
    let unowned = unsafe UnownedJob(job)
    jobs.withLock { unsafe $0.append(unowned) }
    jobs.broadcast()
  }

  /// Runs what is there, or waits for it, no longer than a time.
  func work(nanoseconds: UInt64) {
    let next = unsafe jobs.wait(timeoutNanoseconds: nanoseconds) { jobs -> [UnownedJob]? in
      guard unsafe !jobs.isEmpty else { return nil }
      defer { unsafe jobs = [] }
      return unsafe jobs
    }
    for unsafe job in unsafe next ?? [] {
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
