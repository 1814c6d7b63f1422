internal import TidemarkEngine

/// The thread that does what nobody waits for: background syncs, index images.
///
/// It starts with the first commit, looks about every 50 ms until all is settled, and sleeps until
/// a commit wakes it.
final class BackgroundThread: Sendable {
  private static let pauseNanoseconds: UInt64 = 50_000_000
  /// After failures it looks less and less often, down to this.
  private static let longestPauseNanoseconds: UInt64 = 10_000_000_000
  /// Looks without anything to sync before it sleeps: a little more than the second after which
  /// the log itself is told how far it is synced.
  private static let looksBeforeSleep = 24

  private struct State {
    var isStopping = false
    var isAsleep = true
    var hasNews = false
    var thread: WorkerThread?
  }

  private let engine: Engine
  private let compactor: CompactionThread?
  private let state = Monitor(State())
  private let failure = Lock<TidemarkError?>(nil)
  private let observation = Lock<Int?>(nil)

  init(_ engine: Engine, _ compactor: CompactionThread?) {
    self.engine = engine
    self.compactor = compactor
  }

  /// The error that the last round of work ended with.
  var lastError: TidemarkError? { failure.withLock { $0 } }

  /// Whether there is a thread.
  var isStarted: Bool { state.withLock { $0.thread != nil } }

  /// Begins to look at what is committed; ``stop()`` lets the store go again.
  func start() {
    let token = engine.observe { [self] in wake() }
    observation.withLock { $0 = token }
  }

  /// Lets the thread end after the work that it is at.
  func stop() {
    if let token = observation.withLock({ $0 }) { engine.stopObserving(token) }
    state.withLock { $0.isStopping = true }
    state.broadcast()
  }

  /// Waits for the thread to end; after ``stop()`` only.
  func join() { state.withLock { $0.thread }?.join() }

  private func wake() {
    let sleeps = state.withLock { state in
      state.hasNews = true
      if state.thread == nil, !state.isStopping { startThread(&state) }
      return state.isAsleep
    }
    if sleeps { state.signal() }
  }

  /// Starts the thread; where the system gives none, the next commit tries again.
  private func startThread(_ state: inout State) {
    let (engine, compactor, monitor, failure) = (engine, compactor, self.state, failure)
    do throws(TidemarkError) {
      state.thread = try WorkerThread(name: "tidemark-work") {
        Self.run(engine, compactor, monitor, failure)
      }
    } catch { failure.withLock { $0 = error } }
  }

  private static func run(
    _ engine: Engine, _ compactor: CompactionThread?, _ state: Monitor<State>,
    _ failure: Lock<TidemarkError?>
  ) {
    var pause = pauseNanoseconds
    while true {
      state.wait { state in
        state.isAsleep = true
        guard state.isStopping || state.hasNews else { return false }
        state.isAsleep = false
        return true
      }
      var quietLooks = 0
      while quietLooks < looksBeforeSleep {
        if state.wait(timeoutNanoseconds: pause, until: { $0.isStopping }) { return }
        let hadNews = state.withLock { state in
          defer { state.hasNews = false }
          return state.hasNews
        }
        do {
          try engine.doBackgroundWork()
          try compactor?.compactIfDue()
          let isSettled =
            engine.isSuspended || engine.lastSequence == engine.durableSequence
          quietLooks = isSettled && !hadNews ? quietLooks + 1 : 0
          if isSettled { failure.withLock { $0 = nil } }
          pause = pauseNanoseconds
        } catch {
          failure.withLock { $0 = error }
          quietLooks = 0
          pause = min(pause * 2, longestPauseNanoseconds)
        }
      }
    }
  }
}
