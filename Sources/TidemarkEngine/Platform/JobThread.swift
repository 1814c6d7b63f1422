/// A thread that does one job after another, for work that waits for the disk: the pool on which
/// tasks run must not. The queue needs no limit, since whoever adds a job waits for it.
package final class JobThread: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var isStopping = false
  }

  private let state: Monitor<State>

  /// Starts the thread.
  package init(name: String) throws(TidemarkError) {
    let state = Monitor(State())
    self.state = state
    _ = try WorkerThread(name: name) { Self.run(state) }
  }

  deinit {
    state.withLock { $0.isStopping = true }
    state.broadcast()
  }

  /// Lets the thread do a job after those before it.
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
