internal import TidemarkEngine

/// Lets one task sleep until something has happened; what happens while it is awake is not lost.
final class Wakeup: Sendable {
  private struct State {
    var isDue = false
    var sleeper: CheckedContinuation<Void, Never>?
  }

  private let state = Lock(State())

  /// Wakes the task, or keeps it from falling asleep the next time.
  func wake() {
    let sleeper = state.withLock { state in
      defer { state.sleeper = nil }
      if state.sleeper == nil { state.isDue = true }
      return state.sleeper
    }
    sleeper?.resume()
  }

  /// Sleeps until somebody has called ``wake()`` since the last sleep, or the task is cancelled.
  func sleep() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDue = state.withLock { state in
          defer { state.isDue = false }
          if !state.isDue { state.sleeper = continuation }
          return state.isDue
        }
        if isDue { continuation.resume() }
      }
    } onCancel: {
      wake()
    }
  }
}

/// Wakes a task at every change of the visible or the durable sequence, as long as it lives.
final class SequenceWatch: Sendable {
  let wakeup = Wakeup()
  private let engine: Engine
  private let token: Int

  init(_ engine: Engine) {
    self.engine = engine
    token = engine.observe { [wakeup] in wakeup.wake() }
  }

  deinit { engine.stopObserving(token) }
}
