/// A thread that does one job after another, for work that waits for disk or network, which would
/// block the pool on which tasks run. The queue has no limit of its own: its owners have only a few
/// jobs at a time.
package final class JobThread: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var isStopping = false
  }

  private let state: Monitor<State>

  package init(name: String) throws(TidemarkError) {
    let state = Monitor(State())
    self.state = state
    _ = try WorkerThread(name: name) { Self.run(state) }
  }

  /// Lets the thread end after the jobs that were added; it is not waited for.
  deinit {
    state.withLock { $0.isStopping = true }
    state.broadcast()
  }

  /// Adds a job; jobs run in the order in which they were added.
  package func add(_ job: @escaping @Sendable () -> Void) {
    state.withLock { $0.jobs.append(job) }
    state.signal()
  }

  private static func run(_ state: Monitor<State>) {
    while true {
      let jobs = state.wait { state -> [@Sendable () -> Void]? in
        if state.jobs.isEmpty { return state.isStopping ? [] : nil }
        defer { state.jobs = [] }
        return state.jobs
      }
      if jobs.isEmpty { return }
      for job in jobs { job() }
    }
  }
}
